//! Any bytes served as a film: the probe ends, asks for what it may, and does not panic.

#![no_main]

use anabranch_media::{MediaProbe, Step};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|film: &[u8]| {
    let size = film.len() as u64;
    // The server may also promise more than it has, or nothing.
    for promised in [Some(size), Some(size.saturating_mul(1000)), None] {
        let mut probe = MediaProbe::new(promised, None);
        let mut reads = 0;
        while let Step::Need { offset, length } = probe.next() {
            assert!((1..=1 << 20).contains(&length) && reads < 16);
            reads += 1;
            let end = offset.saturating_add(length).min(size);
            probe.provide(offset, &film[offset.min(size) as usize..end as usize]);
        }
    }
});
