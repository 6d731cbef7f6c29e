//! Any bytes as a chunked body, whole and in small pieces: the payload is the same, and no byte is read
//! twice.

#![no_main]

use anabranch_http::ChunkedDecoder;
use libfuzzer_sys::fuzz_target;

/// Decodes a body that arrives in pieces of `piece` bytes; `None` when its framing is broken.
fn decode(body: &[u8], piece: usize) -> Option<(Vec<u8>, bool)> {
    let mut decoder = ChunkedDecoder::default();
    let (mut payload, mut used, mut arrived) = (Vec::new(), 0, 0);
    while !decoder.is_done() {
        let framing = decoder.advance(&body[used..arrived]).ok()?;
        used += framing;
        assert!(used <= arrived);
        let data = usize::try_from(decoder.data()).unwrap_or(usize::MAX).min(arrived - used);
        payload.extend_from_slice(&body[used..used + data]);
        decoder.took(data as u64);
        used += data;
        if framing + data == 0 {
            if arrived == body.len() {
                break;
            }
            arrived = (arrived + piece).min(body.len());
        }
    }
    Some((payload, decoder.is_done()))
}

fuzz_target!(|body: &[u8]| {
    let whole = decode(body, body.len().max(1));
    let pieces = decode(body, 3);
    assert_eq!(whole, pieces);
});
