use anabranch_units::Ratio;
use http::HeaderMap;

use super::*;
use crate::proxy::films::Wanted;
use crate::proxy::secrets::Secrets;

/// What the rung above needs beside the one whose segment is asked for with this query.
fn next_rung(playlists: &Playlists, url: &Url, query: Option<&str>) -> Option<Ratio> {
    let (part, _) = playlists.part(url, None).unwrap();
    let (presentation, segment) = part.segment().unwrap();
    let hints = playlists.hints(&Cmcd::of(&HeaderMap::new(), query), url, presentation);
    let wanted = Wanted { place: Place { url: url.clone(), bytes: None }, secrets: Secrets::default() };
    let (told, _) = presentation.asked(segment, &wanted, hints).unwrap();
    told.next_rung
}

#[test]
fn a_segment_is_got_with_what_the_rung_above_it_needs() {
    let at = |path: &str| Url::parse("https://a.example/").unwrap().join(path).unwrap();
    let list = |text: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{text}\n#EXT-X-ENDLIST\n");
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8\n\
                #EXT-X-STREAM-INF:BANDWIDTH=800000\nlow.m3u8\n";
    let description = "<MPD mediaPresentationDuration=\"PT8S\"><Period><AdaptationSet>\
                       <SegmentTemplate media=\"$RepresentationID$-$Number$.m4s\" duration=\"4\"/>\
                       <Representation id=\"a\" bandwidth=\"800000\"/><Representation id=\"b\" bandwidth=\"2000000\"/>\
                       </AdaptationSet></Period></MPD>";
    let playlists = Playlists::default();
    let read = |kind, text: &str, path| playlists.read(kind, text.as_bytes(), &at(path), Bytes::mib(1));
    read(PlaylistKind::Hls, main, "all.m3u8");
    read(PlaylistKind::Hls, &list("low.ts"), "low.m3u8");
    read(PlaylistKind::Hls, &list("high.ts"), "high.m3u8");
    read(PlaylistKind::Dash, description, "film.mpd");
    assert_eq!(next_rung(&playlists, &at("low.ts"), None), Some(Ratio::new(2, 1)));
    assert_eq!(next_rung(&playlists, &at("high.ts"), None), None);
    assert_eq!(next_rung(&playlists, &at("a-1.m4s"), None), Some(Ratio::new(5, 2)));
    // Its screen has no use for more than a megabit.
    assert_eq!(next_rung(&playlists, &at("low.ts"), Some("CMCD=tb%3D1000")), None);
}
