//! Any bytes as frames of the striping protocol: what is read is written the same, and memory follows what
//! arrived.

#![no_main]

use anabranch_protocol::stripe::frame::{Frame, MAX_FRAME_BYTES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    while let Ok(Some((frame, length))) = Frame::decode(rest) {
        assert!(length > 0 && length <= MAX_FRAME_BYTES);
        let mut written = Vec::new();
        frame.encode(&mut written);
        assert_eq!(written, rest[..length]);
        assert_eq!(Frame::decode(&rest[..length - 1]), Ok(None));
        rest = &rest[length..];
    }
});
