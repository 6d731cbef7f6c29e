//! Any bytes that come as a live stream: segments stay within their bounds, and nothing panics.

#![no_main]

use anabranch_media::segments::{Segmenter, Window};
use anabranch_units::{Bytes, Duration};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|stream: &[u8]| {
    let target = Duration::from_millis(200);
    let mut segmenter = Segmenter::new(Duration::from_secs(1), Bytes::kib(8), None).with_parts(target);
    let mut window = Window::new(("live-", ".ts"), Duration::from_secs(3), Bytes::kib(64)).with_parts(target);
    let (mut joined, mut added) = (Vec::new(), 0);
    for (number, packets) in stream.chunks(7 * 188).enumerate() {
        let cuts = segmenter.push(packets, Duration::from_millis(number as u64));
        let mut parts = segmenter.take_parts().into_iter().peekable();
        for cut in cuts {
            while let Some(part) = parts.next_if(|part| part.segment <= added) {
                window.push_part(&part);
                joined.extend(part.bytes);
            }
            added += 1;
            assert!(std::mem::take(&mut joined) == cut.bytes);
            assert!(cut.bytes.len() <= 9 << 10 && cut.duration <= Duration::from_secs(31));
            window.push(&cut, segmenter.target().expect("a segment decides it"));
        }
        for part in parts {
            assert_eq!(part.segment, added);
            window.push_part(&part);
            joined.extend(part.bytes);
        }
    }
    // A playlist that was found is one as well.
    let _ = window.resume(stream, |_| Some(Bytes::new(1)));
    window.playlist(true);
});
