//! Playlists whose references are led through a local endpoint.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use anabranch_media::playlist::{
    LARGEST_PLAYLIST, Listing, PlaylistError, PlaylistKind, Track, listing, rewrite,
};
use proptest::prelude::*;
use url::Url;

const PREFIX: &str = "http://127.0.0.1:8080/";

fn rewritten(kind: PlaylistKind, body: &str) -> String {
    let base = Url::parse("https://example.org/films/a/master.m3u8?token=1").unwrap();
    String::from_utf8(rewrite(kind, body.as_bytes(), &base, PREFIX).unwrap()).unwrap()
}

fn hls(lines: &str) -> String {
    let playlist = rewritten(PlaylistKind::Hls, &format!("#EXTM3U\n{lines}"));
    playlist.strip_prefix("#EXTM3U\n").unwrap().to_owned()
}

fn dash(content: &str) -> String {
    let description = rewritten(PlaylistKind::Dash, &format!("<MPD>{content}</MPD>"));
    description.strip_prefix("<MPD>").unwrap().strip_suffix("</MPD>").unwrap().to_owned()
}

#[test]
fn hls_references_in_lines() {
    for (reference, expected) in [
        ("https://cdn.example/1.ts", "http://127.0.0.1:8080/https://cdn.example/1.ts"),
        ("//cdn.example/1.ts", "http://127.0.0.1:8080/https://cdn.example/1.ts"),
        ("/other/1.ts?x=1", "http://127.0.0.1:8080/https://example.org/other/1.ts?x=1"),
        ("../b/1.ts", "http://127.0.0.1:8080/https://example.org/films/b/1.ts"),
        ("../../../../1.ts", "http://127.0.0.1:8080/https://example.org/1.ts"),
        ("1.ts", "1.ts"),
        ("sub/1.ts?next=../x", "sub/1.ts?next=../x"),
        ("./a:b.ts", "./a:b.ts"),
        ("data:text/plain,x", "data:text/plain,x"),
        ("http://127.0.0.1:8080/https://cdn.example/1.ts", "http://127.0.0.1:8080/https://cdn.example/1.ts"),
        ("https://{$host}/1.ts", "http://127.0.0.1:8080/https://{$host}/1.ts"),
        ("{$path}/1.ts", "{$path}/1.ts"),
        // It leads through the endpoint already.
        ("http://127.0.0.1:8080/https://{$host}/1.ts", "http://127.0.0.1:8080/https://{$host}/1.ts"),
    ] {
        assert_eq!(hls(reference), expected);
    }
}

/// A relative reference that stays must lead to the same place through the endpoint.
#[test]
fn references_that_stay_lead_through_the_endpoint() {
    let base = Url::parse("https://example.org/films/a/master.m3u8?token=1").unwrap();
    let proxied = Url::parse(&format!("{PREFIX}{base}")).unwrap();
    for reference in ["1.ts", "./1.ts", "sub/1.ts?x#y", "?only=query", "a/b/c/", "with space.ts", "%41.ts"] {
        assert_eq!(hls(reference), reference);
        let there = proxied.join(reference).unwrap();
        assert_eq!(there.as_str(), format!("{PREFIX}{}", base.join(reference).unwrap()));
    }
}

#[test]
fn hls_references_in_attributes() {
    let through = "http://127.0.0.1:8080/https://c/x";
    for (tag, expected) in [
        (
            r#"#EXT-X-KEY:METHOD=AES-128,URI="https://c/x",IV=0x1"#,
            format!(r#"#EXT-X-KEY:METHOD=AES-128,URI="{through}",IV=0x1"#),
        ),
        (
            r#"#EXT-X-MAP:URI="https://c/x",BYTERANGE="5@0""#,
            format!(r#"#EXT-X-MAP:URI="{through}",BYTERANGE="5@0""#),
        ),
        (
            r#"#EXT-X-MEDIA:TYPE=AUDIO,NAME="a,URI=b",URI="https://c/x""#,
            format!(r#"#EXT-X-MEDIA:TYPE=AUDIO,NAME="a,URI=b",URI="{through}""#),
        ),
        (
            r#"#EXT-X-CONTENT-STEERING:SERVER-URI="https://c/x",PATHWAY-ID="p""#,
            format!(r#"#EXT-X-CONTENT-STEERING:SERVER-URI="{through}",PATHWAY-ID="p""#),
        ),
        (
            r#"#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="f.m3u8""#,
            r#"#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="f.m3u8""#.into(),
        ),
        (
            r#"#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://key""#,
            r#"#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://key""#.into(),
        ),
        (
            r#"#EXT-X-SESSION-DATA:DATA-ID="u",VALUE="https://c/x""#,
            r#"#EXT-X-SESSION-DATA:DATA-ID="u",VALUE="https://c/x""#.into(),
        ),
        (r#"#EXTINF:9,URI="https://c/x""#, r#"#EXTINF:9,URI="https://c/x""#.into()),
        (r#"# URI="https://c/x""#, r#"# URI="https://c/x""#.into()),
        (r#"#EXT-X-BROKEN:A,=,"URI="#, r#"#EXT-X-BROKEN:A,=,"URI="#.into()),
        (r#"#EXT-X-OPEN:URI="https://c/x"#, r#"#EXT-X-OPEN:URI="https://c/x"#.into()),
    ] {
        assert_eq!(hls(tag), expected);
    }
}

#[test]
fn what_is_not_a_reference_stays_byte_for_byte() {
    let playlist = "\u{feff}#EXTM3U\r\n#EXT-X-VERSION:7\r\n\r\n# a \
                    note\n#EXT-X-NEW:A=1,B=\"x\",C\n#EXTINF:4.0,\n1.ts\n#EXT-X-ENDLIST";
    assert_eq!(rewritten(PlaylistKind::Hls, playlist), playlist);
    let description = "<?xml version=\"1.0\"?>\n<!-- a note --><MPD  a = '1'\n b=\"&lt;\" ><![CDATA[x]]><?p \
                       i?>&amp;<BaseURL>sub/</BaseURL><E /></MPD>\n";
    assert_eq!(
        rewritten(PlaylistKind::Dash, description).replace("<E />", "<E/>"),
        description.replace("<E />", "<E/>")
    );
}

#[test]
fn dash_references_in_elements() {
    for (content, expected) in [
        ("<BaseURL>https://c/x/</BaseURL>", "<BaseURL>http://127.0.0.1:8080/https://c/x/</BaseURL>"),
        (
            "<BaseURL>/x/?a=1&amp;b=2</BaseURL>",
            "<BaseURL>http://127.0.0.1:8080/https://example.org/x/?a=1&amp;b=2</BaseURL>",
        ),
        (
            "<Location>https://c/x.mpd</Location>",
            "<Location>http://127.0.0.1:8080/https://c/x.mpd</Location>",
        ),
        ("<BaseURL>x/</BaseURL>", "<BaseURL>x/</BaseURL>"),
        ("<d:BaseURL>https://c/</d:BaseURL>", "<d:BaseURL>http://127.0.0.1:8080/https://c/</d:BaseURL>"),
        ("<BaseURL/>", "<BaseURL/>"),
        ("<Title>https://c/x/</Title>", "<Title>https://c/x/</Title>"),
    ] {
        assert_eq!(dash(content), expected);
    }
}

#[test]
fn dash_references_in_attributes() {
    for (content, expected) in [
        (
            r#"<SegmentTemplate media="https://c/$Number%05d$.m4s" initialization="i.mp4" timescale="1"/>"#,
            r#"<SegmentTemplate media="http://127.0.0.1:8080/https://c/$Number%05d$.m4s" initialization="i.mp4" timescale="1"/>"#,
        ),
        (
            r#"<Initialization sourceURL='/i?a="b"&amp;c' range="0-1"/>"#,
            r#"<Initialization sourceURL="http://127.0.0.1:8080/https://example.org/i?a=%22b%22&amp;c" range="0-1"/>"#,
        ),
        (
            r#"<Period xlink:href="urn:mpeg:dash:resolve-to-zero:2013"/>"#,
            r#"<Period xlink:href="urn:mpeg:dash:resolve-to-zero:2013"/>"#,
        ),
        (r#"<X label="https://c/x"/>"#, r#"<X label="https://c/x"/>"#),
        (r#"<SegmentURL media="s.m4s" note='"'/>"#, r#"<SegmentURL media="s.m4s" note='"'/>"#),
        (
            r#"<SegmentURL media="//c/s" note='"'/>"#,
            r#"<SegmentURL media="http://127.0.0.1:8080/https://c/s" note='"'/>"#,
        ),
    ] {
        assert_eq!(dash(content), expected);
    }
}

/// A reference from the root counts from the nearest BaseURL before it, and no longer than its element lasts.
#[test]
fn dash_references_count_from_their_base() {
    let through = |host: &str| format!(r#"<S media="http://127.0.0.1:8080/https://{host}/s"/>"#);
    let content = r#"<P><BaseURL>https://one/a/</BaseURL><BaseURL>https://two/</BaseURL><A><BaseURL>https://three/</BaseURL><S media="/s"/></A><S media="/s"/></P><S media="/s"/>"#;
    let result = dash(content);
    let places = ["three", "one", "example.org"].map(|host| result.find(&through(host)).unwrap());
    assert!(places.is_sorted(), "{result}");
}

#[test]
fn what_is_no_playlist_is_refused() {
    let base = Url::parse("https://example.org/").unwrap();
    let refuse = |kind, body: &[u8]| rewrite(kind, body, &base, PREFIX).unwrap_err();
    assert!(matches!(refuse(PlaylistKind::Hls, b"<html>"), PlaylistError::NotPlaylist(_)));
    assert!(matches!(refuse(PlaylistKind::Dash, b"<html></html>"), PlaylistError::NotPlaylist(_)));
    assert!(matches!(refuse(PlaylistKind::Dash, b"<MPD><a></MPD>"), PlaylistError::Xml(_)));
    assert!(matches!(refuse(PlaylistKind::Hls, b"#EXTM3U\n\xff"), PlaylistError::NotText(_)));
    assert!(matches!(
        refuse(PlaylistKind::Hls, &vec![b'#'; LARGEST_PLAYLIST + 1]),
        PlaylistError::TooLong(_)
    ));
    let deep = format!("<MPD>{}", "<a>".repeat(100));
    assert!(matches!(refuse(PlaylistKind::Dash, deep.as_bytes()), PlaylistError::NotPlaylist(_)));
}

/// A long base and many short references to it must not make a playlist grow without bound.
#[test]
fn a_playlist_that_would_burst_is_refused() {
    let base = Url::parse(&format!("https://example.org/{}/x", "a".repeat(8000))).unwrap();
    let playlist = format!("#EXTM3U\n{}", "./../../a\n./..\nb/../c\n".repeat(100_000));
    let long = Url::parse(&format!("https://example.org/x/{}/y/z", "a".repeat(8000))).unwrap();
    assert!(rewrite(PlaylistKind::Hls, playlist.as_bytes(), &base, PREFIX).is_err());
    assert!(rewrite(PlaylistKind::Hls, playlist.as_bytes(), &long, PREFIX).is_err());
    let description = format!("<MPD>{}</MPD>", "<S media='../a'/>".repeat(100_000));
    assert!(rewrite(PlaylistKind::Dash, description.as_bytes(), &long, PREFIX).is_err());
}

#[test]
fn the_kind_is_told_by_type_and_extension() {
    let url = |name: &str| Url::parse(&format!("https://example.org/{name}?x=.mpd")).unwrap();
    let detect = |content_type, name| PlaylistKind::detect(content_type, &url(name));
    assert_eq!(detect(Some("application/vnd.apple.mpegurl; charset=utf-8"), "x"), Some(PlaylistKind::Hls));
    assert_eq!(detect(Some("Audio/MpegURL"), "x"), Some(PlaylistKind::Hls));
    assert_eq!(detect(Some("application/dash+xml"), "x"), Some(PlaylistKind::Dash));
    assert_eq!(detect(None, "a.M3U8"), Some(PlaylistKind::Hls));
    assert_eq!(detect(Some("text/xml"), "a.mpd"), Some(PlaylistKind::Dash));
    assert_eq!(detect(Some("video/mp4"), "a.m3u8"), None);
    assert_eq!(detect(None, "a.mp4"), None);
    assert_eq!(detect(None, ""), None);
}

#[track_caller]
fn tracks(kind: PlaylistKind, text: &str, base: &Url) -> Vec<Track> {
    match listing(kind, text.as_bytes(), base) {
        Some(Listing::Tracks(tracks)) => tracks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn segments_are_listed_in_the_order_of_play() {
    let base = Url::parse("https://example.org/films/low.m3u8?token=1").unwrap();
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-MAP:URI=\"init.mp4\"\n\
                #EXTINF:4.5,\n7.m4s\n#EXTINF:2,a title\nhttps://b.example/8.m4s#x\n";
    let [Track { first, segments, initializations, .. }] = &tracks(PlaylistKind::Hls, text, &base)[..] else {
        panic!("it lists one track");
    };
    let listed: Vec<_> =
        segments.iter().map(|one| (one.place.url.as_str(), one.play_time.as_millis())).collect();
    assert_eq!(listed, [("https://example.org/films/7.m4s", 4500), ("https://b.example/8.m4s", 2000)]);
    assert_eq!((*first, initializations[0].url.as_str()), (Some(7), "https://example.org/films/init.mp4"));
}

#[test]
fn rungs_are_of_one_kind_and_sounds_of_another() {
    let base = Url::parse("https://example.org/films/all.m3u8").unwrap();
    let text = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"one\",URI=\"one.m3u8\"\n\
                #EXT-X-STREAM-INF:BANDWIDTH=800000,AUDIO=\"a\"\nlow.m3u8\n\
                #EXT-X-STREAM-INF:BANDWIDTH=3000000,AVERAGE-BANDWIDTH=2000000,AUDIO=\"a\"\nhigh.m3u8\n\
                #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=80000,URI=\"frames.m3u8\"\n";
    let Some(Listing::Renditions(found)) = listing(PlaylistKind::Hls, text.as_bytes(), &base) else {
        panic!("it lists renditions");
    };
    let names: Vec<_> = found.iter().map(|one| one.url.path().trim_start_matches("/films/")).collect();
    assert_eq!(names, ["low.m3u8", "high.m3u8", "one.m3u8"]);
    assert!(found[0].group == found[1].group && found[0].group != found[2].group);
    let rates: Vec<_> = found.iter().map(|one| one.rate.as_bps()).collect();
    assert_eq!(rates, [800_000, 2_000_000, 0], "the mean one where it is told");
}

#[test]
fn parts_of_one_file_follow_each_other_where_no_offset_is_told() {
    let base = Url::parse("https://example.org/all.m3u8").unwrap();
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"700@0\"\n\
                #EXTINF:4,\n#EXT-X-BYTERANGE:1000@700\nall.mp4\n#EXTINF:3,\n#EXT-X-BYTERANGE:50\nall.mp4\n\
                #EXTINF:4,\n#EXT-X-BYTERANGE:10@5000\nall.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:20\nother.mp4\n";
    let [Track { segments, initializations, .. }] = &tracks(PlaylistKind::Hls, text, &base)[..] else {
        panic!("it lists one track");
    };
    let parts: Vec<_> = segments.iter().map(|one| (one.place.url.path(), one.place.bytes.clone())).collect();
    let of = |path, range| (path, Some(range));
    assert_eq!(
        parts,
        [
            of("/all.mp4", 700..1700),
            of("/all.mp4", 1700..1750),
            of("/all.mp4", 5000..5010),
            of("/other.mp4", 0..20)
        ]
    );
    assert_eq!((initializations.len(), initializations[0].bytes.clone()), (1, Some(0..700)));
    for wrong in ["0@5", "2@18446744073709551615"] {
        let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:4,\n#EXT-X-BYTERANGE:{wrong}\nx.ts\n");
        assert_eq!(listing(PlaylistKind::Hls, text.as_bytes(), &base), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,300}", kind in prop_oneof![Just(PlaylistKind::Hls), Just(PlaylistKind::Dash)]) {
        let base = Url::parse("https://example.org/a/b").unwrap();
        let _ = rewrite(kind, text.as_bytes(), &base, PREFIX);
        let _ = rewrite(kind, format!("#EXTM3U\n#EXT-X-MAP:{text}").as_bytes(), &base, PREFIX);
        let _ = rewrite(kind, format!("<MPD a=\"{text}").as_bytes(), &base, PREFIX);
        let _ = listing(kind, format!("#EXTM3U\n#EXTINF:{text}").as_bytes(), &base);
    }

    /// Rewriting what was rewritten changes nothing.
    #[test]
    fn once_is_enough(lines in proptest::collection::vec("(https?://[a-z]{1,5}|/|\\.\\./)?[a-z/]{0,10}", 0..10)) {
        let once = hls(&lines.join("\n"));
        prop_assert_eq!(hls(&once), once);
    }
}
