//! Any bytes that come as a live stream: segments stay within their bounds, and nothing panics.

#![no_main]

use anabranch_media::segments::{Segmenter, Window};
use anabranch_units::{Bytes, Duration};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|stream: &[u8]| {
    let mut segmenter = Segmenter::new(Duration::from_secs(1), Bytes::kib(8), None);
    let mut window = Window::new(("live-", ".ts"), Duration::from_secs(3), Bytes::kib(64));
    for (number, packets) in stream.chunks(7 * 188).enumerate() {
        for cut in segmenter.push(packets, Duration::from_millis(number as u64)) {
            assert!(cut.bytes.len() <= 9 << 10 && cut.duration <= Duration::from_secs(31));
            window.push(&cut, segmenter.target().expect("a segment decides it"));
        }
    }
    // A playlist that was found is one as well.
    let _ = window.resume(stream, |_| Some(Bytes::new(1)));
    window.playlist(true);
});
