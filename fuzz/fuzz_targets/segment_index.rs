//! Any bytes as a segment index of DASH: its parts follow each other, in bounds, and none is empty.

#![no_main]

use anabranch_media::playlist::{Place, segments_of_index};
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|index: &[u8]| {
    let url = Url::parse("https://example.org/film.mp4").expect("a URL");
    let place = Place { url, bytes: Some(700..700 + index.len() as u64) };
    let mut end = 700;
    for segment in segments_of_index(index, &place).unwrap_or_default() {
        let bytes = segment.place.bytes.expect("a part");
        assert!(bytes.start >= end && bytes.start < bytes.end);
        end = bytes.end;
    }
});
