//! Any conditions and ranges in a request for a film: the reply is one of those of RFC 9110, and its parts
//! lie in the film.

#![no_main]

use anabranch_server::{Piece, Representation, Validators, content_reply, precondition_reply};
use libfuzzer_sys::fuzz_target;

const SIZE: u64 = 1_000_000;
const NAMES: [&str; 6] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];

fuzz_target!(|lines: &[u8]| {
    let mut headers = http::HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Some((name, value)) = line.split_first() else { continue };
        if let Ok(value) = http::HeaderValue::from_bytes(value) {
            headers.append(NAMES[usize::from(*name) % NAMES.len()], value);
        }
    }
    let film = Representation {
        size: SIZE,
        media_type: "video/mp4".into(),
        validators: Validators {
            etag: "\"a\"".into(),
            modified: "Sat, 21 Nov 2026 \
            20:46:34 GMT"
                .parse()
                .ok(),
        },
    };
    if let Some(reply) = precondition_reply(&headers, &film) {
        assert!(matches!(reply.status.as_u16(), 304 | 412));
    }
    let reply = content_reply(&http::Method::GET, &headers, &film);
    let of_film = reply.pieces.iter().filter_map(|piece| match piece {
        Piece::File(range) => Some(range),
        Piece::Text(_) => None,
    });
    let parts: Vec<_> = of_film.collect();
    assert!(parts.iter().all(|part| part.start <= part.end && part.end <= SIZE));
    match reply.status.as_u16() {
        200 => assert_eq!(parts, [&(0..SIZE)]),
        206 => assert!((1..=16).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty())),
        416 => assert!(parts.is_empty()),
        other => panic!("{other}"),
    }
});
