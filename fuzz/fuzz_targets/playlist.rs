//! Any text as a playlist: what was rewritten can be rewritten again, and then nothing is left to change;
//! and what it lists is found or not. With one rung of its ladder it is no longer than before, and has no other.

#![no_main]

use anabranch_media::playlist::{
    PlaylistKind, are_interchangeable, listing, rewrite, rung_sets, variants, with_rungs, with_variant,
};
use libfuzzer_sys::fuzz_target;
use url::Url;

const PREFIX: &str = "http://127.0.0.1:8080/";

fuzz_target!(|body: &[u8]| {
    let base = Url::parse("https://example.org/films/a/list?token=1").expect("a URL");
    for variant in variants(body, &base) {
        let one = with_variant(body, &base, &variant.url).expect("text that was read before");
        assert!(one.len() <= body.len() && variants(&one, &base).iter().all(|left| left.url == variant.url));
    }
    are_interchangeable((body, &base), (body, &base));
    let lowest = vec![0; rung_sets(body).len()];
    if let Ok(one) = with_rungs(body, &lowest) {
        assert!(rung_sets(&one).iter().all(|set| set.rungs.len() == 1));
    }
    for kind in [PlaylistKind::Hls, PlaylistKind::Dash] {
        let _ = listing(kind, body, &base);
        let Ok(once) = rewrite(kind, body, &base, PREFIX) else { continue };
        let Ok(twice) = rewrite(kind, &once, &base, PREFIX) else { panic!("what was rewritten is refused") };
        if kind == PlaylistKind::Hls {
            assert_eq!(String::from_utf8_lossy(&twice), String::from_utf8_lossy(&once));
        }
    }
});
