//! Any bytes as a message of the live protocol: what is read is written the same.

#![no_main]

use anabranch_protocol::live::hello::{MAX_MESSAGE, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::decode(bytes) else { return };
    let written = message.encode();
    assert!(bytes.len() <= MAX_MESSAGE);
    assert_eq!(written[..2], u16::try_from(bytes.len()).unwrap().to_be_bytes());
    assert_eq!(written[2..], *bytes);
});
