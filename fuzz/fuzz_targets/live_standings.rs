//! Any bytes as what live senders that share an uplink tell each other: what is read is written the same.

#![no_main]

use anabranch_protocol::live::standing::{MAX_STANDINGS, Standings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(standings) = Standings::decode(bytes) else { return };
    assert!(bytes.len() <= MAX_STANDINGS);
    assert_eq!(standings.encode(), bytes);
});
