//! Random numbers for set-ups that are drawn from the seed, the same on every machine.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// Draws a number below another, for ever.
pub(crate) fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    // An odd factor spreads small seeds; a multiplicative generator needs an odd state.
    let mut random =
        Pcg64Mcg::new((u128::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)) | 1);
    random.next_u64();
    move |end| ((u128::from(random.next_u64()) * end as u128) >> 64) as usize
}
