//! Randomness: every consumer has its own stream of numbers, so that what one of them draws never moves
//! another.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream number `stream` of a run with `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let state = (u128::from(mixed(seed)) << 64) | u128::from(mixed(stream ^ mixed(!seed)));
        let mut generator = Pcg64Mcg::new(state);
        // The first number of a multiplicative generator still shows its state.
        generator.next_u64();
        Self(generator)
    }

    /// Uniform from zero up to, not including, one.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform from zero up to, not including, `end`; zero if that is zero.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Normally distributed (Box and Muller 1958).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        mean + deviation * radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Exponentially distributed around `mean`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }
}

/// Spreads every bit of a number over all (the finaliser of SplitMix64, Steele and others 2014).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
