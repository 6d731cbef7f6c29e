//! Any bytes as the packets that a server sends over QUIC, in any order: what is lost is never more than what
//! was numbered.

#![no_main]

use anabranch_http::tcp::Arrivals;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let arrivals = Arrivals::default();
    let (mut rest, mut number, mut last) = (input, 0_u64, 0);
    // A step to the packet's number, the length of its frames, and these.
    while let [step, length, frames @ ..] = rest {
        let (frames, behind) = frames.split_at(frames.len().min((*length).into()));
        number = match step {
            0xff => u64::MAX >> 2,
            step => number.saturating_add_signed(i64::from(*step) - 16).min(u64::MAX >> 2),
        };
        arrivals.came(number, frames);
        last = last.max(number);
        assert!(arrivals.came_and_lost().1 <= last);
        rest = behind;
    }
});
