//! Ladders: which rungs a playlist has, and the playlist with one of them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anabranch_media::playlist::{are_interchangeable, rung_sets, variants, with_rungs, with_variant};
use proptest::prelude::*;
use url::Url;

fn base() -> Url {
    Url::parse("https://example.org/films/all.m3u8").unwrap()
}

const MASTER: &str = "#EXTM3U\n\
    #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"one\",URI=\"one.m3u8\"\n\
    #EXT-X-STREAM-INF:BANDWIDTH=3500000,AVERAGE-BANDWIDTH=3000000,RESOLUTION=640x360,CODECS=\"avc1.4d401e,mp4a.40.2\",AUDIO=\"a\"\n\
    high.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=256x144,CODECS=\"mp4a.40.2, avc1.42c014\",AUDIO=\"a\"\n\
    # a comment\n\
    low.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=256x144,CODECS=\"mp4a.40.2, avc1.42c014\",AUDIO=\"a\"\n\
    https://other.example/low.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1280x720,CODECS=\"hvc1.1.6.L93,mp4a.40.2\",AUDIO=\"a\"\n\
    other-codec.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1280x720,CODECS=\"avc1.4d401f,mp4a.40.2\",AUDIO=\"b\"\n\
    other-sound.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\n\
    sound.m3u8\n\
    #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=80000,URI=\"frames.m3u8\"\n";

#[test]
fn rungs_are_what_a_player_can_go_to_and_fro_between() {
    let found: Vec<_> = variants(MASTER.as_bytes(), &base())
        .into_iter()
        .map(|variant| (variant.url.path().to_owned(), variant.rate.as_bps(), variant.height))
        .collect();
    let expected = [
        ("/films/low.m3u8".to_owned(), 800_000, Some(144)),
        ("/films/high.m3u8".to_owned(), 3_000_000, Some(360)),
    ];
    assert_eq!(found, expected);
    // Where there is nothing but sound, sounds are rungs.
    let sounds = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\na.m3u8\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=128000,CODECS=\"mp4a.40.2\"\nb.m3u8\n";
    assert_eq!(variants(sounds.as_bytes(), &base()).len(), 2);
    for nothing in ["", "#EXTM3U\n#EXTINF:4,\n1.ts\n", "<MPD/>"] {
        assert_eq!(variants(nothing.as_bytes(), &base()), [], "{nothing}");
    }
}

#[test]
fn one_variant_stays_with_its_renditions() {
    let keep = base().join("low.m3u8").unwrap();
    let text = String::from_utf8(with_variant(MASTER.as_bytes(), &base(), &keep).unwrap()).unwrap();
    let expected = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"one\",URI=\"one.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=256x144,CODECS=\"mp4a.40.2, avc1.42c014\",AUDIO=\"a\"\n\
        # a comment\n\
        low.m3u8\n";
    assert_eq!(text, expected);
    assert_eq!(variants(text.as_bytes(), &base()).len(), 1);
}

/// What is listed must be there when it is asked for: fuzzing found lists of which the parser saw other lines than
/// what cuts them.
#[test]
fn what_is_no_text_or_cut_in_two_has_the_rungs_that_can_be_kept() {
    let mut no_text = MASTER.as_bytes().to_vec();
    no_text.extend_from_slice(b"# \xff\n");
    assert_eq!(variants(&no_text, &base()), []);
    let tags = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n#EXT-X-STREAM-INF:BANDWIDTH=2000,COD#EXTM3U\nlow.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=3000\n";
    let found = variants(tags.as_bytes(), &base());
    assert_eq!(found.iter().map(|variant| variant.rate.as_bps()).collect::<Vec<_>>(), [2000]);
    let kept = with_variant(tags.as_bytes(), &base(), &found[0].url).unwrap();
    assert_eq!(
        String::from_utf8(kept).unwrap(),
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2000,COD#EXTM3U\nlow.m3u8\n"
    );
}

#[test]
fn segments_stand_for_each_other_where_nothing_else_tells_them_apart() {
    let list = |text: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{text}");
    let low = Url::parse("https://example.org/low/list.m3u8").unwrap();
    let high = Url::parse("https://example.org/high/list.m3u8").unwrap();
    let ended = "#EXTINF:4,\n1.ts\n#EXTINF:3.96,\n2.ts\n#EXT-X-ENDLIST\n";
    let live = "#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:4,\n7.ts\n#EXTINF:3,\n8.ts\n";
    for (one, other, are) in [
        (ended, "#EXTINF:4,\nx.ts\n#EXTINF:4.0,\ny.ts\n#EXT-X-ENDLIST\n", true),
        (ended, "#EXTINF:4,\n1.ts\n#EXTINF:3,\n2.ts\n#EXT-X-ENDLIST\n", false),
        (ended, "#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n", false),
        (ended, "#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n", false),
        (ended, "#EXT-X-MEDIA-SEQUENCE:1\n#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n", false),
        (ended, "#EXTINF:4,\n1.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n", false),
        (ended, "#EXT-X-MAP:URI=\"i.mp4\"\n#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n", false),
        (ended, "#EXTINF:4,\n#EXT-X-BYTERANGE:9@0\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n", false),
        (
            ended,
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n",
            false,
        ),
        // One has moved on since the other was read.
        (live, "#EXT-X-MEDIA-SEQUENCE:8\n#EXTINF:3,\n8.ts\n#EXTINF:4,\n9.ts\n", true),
        (live, "#EXT-X-MEDIA-SEQUENCE:8\n#EXTINF:4,\n8.ts\n#EXTINF:4,\n9.ts\n", false),
        (live, "#EXT-X-MEDIA-SEQUENCE:18446744073709551615\n#EXTINF:3,\n8.ts\n", false),
        (live, "", false),
    ] {
        let (one, other) = (list(one), list(other));
        let given = ((one.as_bytes(), &low), (other.as_bytes(), &high));
        assert_eq!(are_interchangeable(given.0, given.1), are, "{other}");
        assert_eq!(are_interchangeable(given.1, given.0), are, "{other}");
    }
    // The same name of a key is another key in another directory.
    let keyed = |key: &str| {
        list(&format!("#EXT-X-KEY:METHOD=AES-128,URI=\"{key}\",IV=0x1\n#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n"))
    };
    for (key, are) in [("key", false), ("/key", true)] {
        let text = keyed(key);
        assert_eq!(are_interchangeable((text.as_bytes(), &low), (text.as_bytes(), &high)), are, "{key}");
    }
}

const DESCRIPTION: &str = "<MPD><Period><AdaptationSet contentType=\"video\">\
    <Representation id=\"h\" bandwidth=\"3000000\" height=\"360\"><SegmentTemplate media=\"h\"/></Representation>\
    <Representation id=\"l\" bandwidth=\"800000\" height=\"144\"/></AdaptationSet>\
    <AdaptationSet id=\"s\"><Representation mimeType=\"audio/mp4\" bandwidth=\"64000\"/></AdaptationSet></Period>\
    <Period><AdaptationSet mimeType=\"video/mp4\"><Representation id=\"a\"/><Representation id=\"b\"/></AdaptationSet></Period></MPD>";

#[test]
fn a_description_keeps_one_representation_of_each_set() {
    let sets = rung_sets(DESCRIPTION.as_bytes());
    let found: Vec<Vec<_>> = sets
        .iter()
        .map(|set| {
            set.rungs.iter().map(|rung| (rung.name.as_str(), rung.rate.as_bps(), rung.height)).collect()
        })
        .collect();
    assert_eq!(found[0], [("#0/h", 3_000_000, Some(360)), ("#0/l", 800_000, Some(144))]);
    assert_eq!(found[1], [("s/#0", 64_000, None)]);
    assert_eq!(sets.iter().map(|set| set.is_picture).collect::<Vec<_>>(), [true, false, true]);
    let text = String::from_utf8(with_rungs(DESCRIPTION.as_bytes(), &[1, 0, 0]).unwrap()).unwrap();
    let expected = "<MPD><Period><AdaptationSet contentType=\"video\">\
        <Representation id=\"l\" bandwidth=\"800000\" height=\"144\"/></AdaptationSet>\
        <AdaptationSet id=\"s\"><Representation mimeType=\"audio/mp4\" bandwidth=\"64000\"/></AdaptationSet></Period>\
        <Period><AdaptationSet mimeType=\"video/mp4\"><Representation id=\"a\"/></AdaptationSet></Period></MPD>";
    assert_eq!(text, expected);
    let text = String::from_utf8(with_rungs(DESCRIPTION.as_bytes(), &[0, 0, 1]).unwrap()).unwrap();
    assert!(
        text.contains("<SegmentTemplate media=\"h\"/></Representation></AdaptationSet>")
            && !text.contains("id=\"a\"")
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,300}", keep in proptest::collection::vec(0usize..3, 0..4)) {
        let master = format!("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{text}");
        for variant in variants(master.as_bytes(), &base()) {
            let one = with_variant(master.as_bytes(), &base(), &variant.url).unwrap();
            prop_assert!(one.len() <= master.len());
        }
        let list = format!("#EXTM3U\n#EXTINF:4,\n{text}");
        are_interchangeable((list.as_bytes(), &base()), (text.as_bytes(), &base()));
        let description = format!("<MPD><Period><AdaptationSet>{text}");
        rung_sets(description.as_bytes());
        let _ = with_rungs(description.as_bytes(), &keep);
    }
}
