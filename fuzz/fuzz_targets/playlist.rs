//! Any text as a playlist: what was rewritten can be rewritten again, and then nothing is left to change;
//! and what it lists is found or not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use anabranch_media::playlist::{PlaylistKind, listing, rewrite};
use url::Url;

const PREFIX: &str = "http://127.0.0.1:8080/";

fuzz_target!(|body: &[u8]| {
    let base = Url::parse("https://example.org/films/a/list?token=1").expect("a URL");
    for kind in [PlaylistKind::Hls, PlaylistKind::Dash] {
        let _ = listing(kind, body, &base);
        let Ok(once) = rewrite(kind, body, &base, PREFIX) else { continue };
        let Ok(twice) = rewrite(kind, &once, &base, PREFIX) else { panic!("what was rewritten is refused") };
        if kind == PlaylistKind::Hls {
            assert_eq!(String::from_utf8_lossy(&twice), String::from_utf8_lossy(&once));
        }
    }
});
