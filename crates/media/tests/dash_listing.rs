//! What descriptions of DASH list.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anabranch_media::playlist::{Listing, Place, PlaylistKind, Track, listing, segments_of_index};
use proptest::prelude::*;
use url::Url;

fn base() -> Url {
    Url::parse("https://example.org/films/film.mpd?token=1").unwrap()
}

fn read(content: &str, attributes: &str) -> Option<Vec<Track>> {
    let text = format!(
        "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" {attributes}>{content}</MPD>"
    );
    match listing(PlaylistKind::Dash, text.as_bytes(), &base())? {
        Listing::Tracks(tracks) => Some(tracks),
        Listing::Renditions(_) => panic!("it names no other playlists"),
    }
}

/// Of a presentation of ten seconds.
#[track_caller]
fn tracks(content: &str) -> Vec<Track> {
    read(content, "mediaPresentationDuration=\"PT10S\"").unwrap()
}

/// Where a segment is in its directory, which bytes, and how many milliseconds it plays.
type Told = (String, Option<(u64, u64)>, u64);

fn told(track: &Track) -> Vec<Told> {
    let of = |place: &Place| place.url.as_str().trim_start_matches("https://example.org/films/").to_owned();
    let bytes = |place: &Place| place.bytes.as_ref().map(|bytes| (bytes.start, bytes.end));
    let segments = track.segments.iter();
    segments.map(|one| (of(&one.place), bytes(&one.place), one.play_time.as_millis())).collect()
}

fn files(track: &Track) -> Vec<(String, u64)> {
    told(track).into_iter().map(|(name, _, millis)| (name, millis)).collect()
}

fn named(name: &str, millis: u64) -> (String, u64) {
    (name.to_owned(), millis)
}

#[test]
fn a_template_with_numbers_fills_the_period() {
    let found = tracks(
        "<Period><AdaptationSet contentType=\"video\"><SegmentTemplate timescale=\"1000\" duration=\"4000\" \
         startNumber=\"7\" media=\"$RepresentationID$/$Number%03d$.m4s\" initialization=\"$RepresentationID$/i.mp4\"/>\
         <Representation id=\"low\" bandwidth=\"1\"/><Representation id=\"high\" bandwidth=\"2\"/></AdaptationSet>\
         <AdaptationSet contentType=\"audio\"><Representation id=\"tone\">\
         <SegmentTemplate duration=\"5\" media=\"tone$Number$\"/></Representation></AdaptationSet></Period>",
    );
    assert_eq!(found.len(), 3);
    assert_eq!(
        files(&found[0]),
        [named("low/007.m4s", 4000), named("low/008.m4s", 4000), named("low/009.m4s", 2000)]
    );
    assert_eq!(found[1].initializations[0].url.path(), "/films/high/i.mp4");
    assert_eq!(files(&found[2]), [named("tone1", 5000), named("tone2", 5000)]);
    assert!(found[0].group == found[1].group && found[0].group != found[2].group);
    assert!(found.iter().all(|track| track.first == Some(0)));
    assert_eq!(found.iter().map(|track| track.rate.as_bps()).collect::<Vec<_>>(), [1, 2, 0]);
}

/// What a representation does not say of a template, what is around it does.
#[test]
fn a_timeline_tells_times_and_lengths() {
    let found = tracks(
        "<BaseURL>a/</BaseURL><Period><BaseURL>b/</BaseURL><AdaptationSet><SegmentTemplate timescale=\"10\">\
         <SegmentTimeline><S t=\"100\" d=\"20\" r=\"1\"/><S d=\"5\"/><S t=\"150\" d=\"10\" r=\"-1\"/><S t=\"170\" d=\"1\"/>\
         </SegmentTimeline></SegmentTemplate><Representation id=\"v\"><SegmentTemplate media=\"$Time$-$Number$\"/>\
         </Representation></AdaptationSet></Period>",
    );
    let names = ["100-1", "120-2", "140-3", "150-4", "160-5", "170-6"].map(|name| format!("a/b/{name}"));
    let lengths = [2000, 2000, 500, 1000, 1000, 100];
    assert_eq!(files(&found[0]), names.into_iter().zip(lengths).collect::<Vec<_>>());
}

#[test]
fn a_list_names_files_and_parts_of_them() {
    let found = tracks(
        "<Period><AdaptationSet><Representation id=\"v\"><BaseURL>film.mp4</BaseURL>\
         <SegmentList timescale=\"2\" duration=\"8\"><Initialization range=\"0-99\"/><SegmentURL mediaRange=\"100-299\"/>\
         <SegmentURL mediaRange=\"300-399\" indexRange=\"300-309\"/><SegmentURL media=\"last.mp4\"/></SegmentList>\
         </Representation></AdaptationSet></Period>",
    );
    let expected = [
        ("film.mp4".to_owned(), Some((100, 300)), 4000),
        ("film.mp4".to_owned(), Some((300, 400)), 4000),
        ("last.mp4".to_owned(), None, 4000),
    ];
    assert_eq!(told(&found[0]), expected);
    assert_eq!(found[0].initializations[0].bytes, Some(0..100));
}

#[test]
fn what_has_an_index_lists_where_it_is() {
    let found = tracks(
        "<Period><AdaptationSet><Representation id=\"v\"><BaseURL>film.mp4</BaseURL>\
         <SegmentBase indexRange=\"700-799\"><Initialization range=\"0-699\"/></SegmentBase>\
         </Representation></AdaptationSet></Period>",
    );
    let index = found[0].index.clone().unwrap();
    assert_eq!((index.url.path(), index.bytes), ("/films/film.mp4", Some(700..800)));
    assert!(found[0].segments.is_empty());
}

#[test]
fn a_rung_goes_on_in_the_next_period_where_it_was_in_the_last() {
    let period = |id: &str, name: &str| {
        format!(
            "<Period id=\"{name}\" duration=\"PT4S\"><AdaptationSet id=\"1\"><SegmentTemplate duration=\"2\" \
             media=\"{name}/$RepresentationID$$Number$\"/><Representation id=\"a\"/><Representation id=\"{id}\"/>\
             </AdaptationSet></Period>"
        )
    };
    let found = tracks(&[period("b", "p"), period("c", "q")].concat());
    let told: Vec<_> = found.iter().map(|track| (track.first, files(track).len())).collect();
    assert_eq!(told, [(Some(0), 4), (Some(0), 2), (Some(2), 2)]);
    assert_eq!(files(&found[0])[2], named("q/a1", 2000));
}

#[test]
fn of_a_live_one_the_segments_of_its_timeline_are_listed_without_numbers_that_are_kept() {
    let template = |inside: &str| {
        format!(
            "<Period start=\"PT0S\"><AdaptationSet><SegmentTemplate duration=\"2\" media=\"$Number$\">{inside}</SegmentTemplate>\
             <Representation id=\"v\"/></AdaptationSet></Period>"
        )
    };
    let live = "type=\"dynamic\"";
    let found =
        read(&template("<SegmentTimeline><S t=\"900\" d=\"2\" r=\"999\"/></SegmentTimeline>"), live).unwrap();
    assert_eq!((found[0].first, found[0].segments.len()), (None, 300));
    assert_eq!(files(&found[0]).last(), Some(&named("1000", 2000)), "the last ones");
    assert_eq!(read(&template(""), live), None, "its clock tells which there are");
}

#[test]
fn what_asks_for_endless_segments_is_bounded() {
    for content in [
        "<SegmentTemplate timescale=\"4000000000\" duration=\"1\" media=\"$Number$\"/>",
        "<SegmentTemplate media=\"$Time$\"><SegmentTimeline><S d=\"1\" r=\"9223372036854775807\"/></SegmentTimeline></SegmentTemplate>",
        "<SegmentTemplate timescale=\"4000000000\" media=\"$Time$\"><SegmentTimeline><S d=\"1\" r=\"-1\"/></SegmentTimeline></SegmentTemplate>",
    ] {
        let representations = "<Representation/>".repeat(100);
        let found =
            tracks(&format!("<Period><AdaptationSet>{content}{representations}</AdaptationSet></Period>"));
        let listed: usize = found.iter().map(|track| track.segments.len()).sum();
        assert_eq!(listed, 50_000, "{content}");
    }
}

fn box_of(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len() + 8).unwrap().to_be_bytes();
    [&size[..], kind, content].concat()
}

/// An index of segments of these sizes, of 1500 ms each.
fn index(sizes: &[u32]) -> Vec<u8> {
    let numbers = [0, 1, 1000, 0, 30, u32::try_from(sizes.len()).unwrap()];
    let mut content: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    content.extend(sizes.iter().flat_map(|size| [*size, 1500, 0x9000_0000]).flat_map(u32::to_be_bytes));
    box_of(b"sidx", &content)
}

#[test]
fn an_index_lists_parts_of_its_file() {
    let bytes = [box_of(b"free", &[0; 3]), index(&[100, 200])].concat();
    let place = Place { url: base(), bytes: Some(700..700 + bytes.len() as u64) };
    let found = segments_of_index(&bytes, &place).unwrap();
    let behind = 700 + bytes.len() as u64 + 30;
    let parts: Vec<_> = found.iter().map(|one| one.place.bytes.clone().unwrap()).collect();
    assert_eq!(parts, [behind..behind + 100, behind + 100..behind + 300]);
    assert!(found.iter().all(|one| one.play_time.as_millis() == 1500));
    // A part that leads to a further index, one of no bytes, and an index that was cut off.
    assert_eq!(segments_of_index(&index(&[100, 0x8000_0064]), &place), None);
    assert_eq!(segments_of_index(&index(&[0]), &place), None);
    assert_eq!(segments_of_index(&bytes[..bytes.len() - 1], &place), None);
    let last = Place { url: base(), bytes: Some(u64::MAX - 100..u64::MAX) };
    assert_eq!(segments_of_index(&bytes, &last), None);
}

proptest! {
    #[test]
    fn no_description_makes_it_panic(attributes in "(?s).{0,60}", inside in "(?s).{0,60}") {
        for element in ["SegmentTemplate", "SegmentList", "SegmentBase"] {
            let text = format!(
                "<MPD><Period><AdaptationSet><Representation><{element} {attributes}>{inside}</{element}>\
                 </Representation></AdaptationSet></Period></MPD>"
            );
            let _ = listing(PlaylistKind::Dash, text.as_bytes(), &base());
        }
    }

    #[test]
    fn no_index_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let place = Place { url: base(), bytes: None };
        let _ = segments_of_index(&bytes, &place);
        let _ = segments_of_index(&box_of(b"sidx", &bytes), &place);
    }
}
