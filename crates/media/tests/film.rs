//! The probe of a film's rate, on real films and on bytes that are none.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::ops::Range;
use std::process::Command;
use std::sync::LazyLock;

use anabranch_media::{Container, MediaFacts, MediaProbe, Step};
use anabranch_units::Duration;
use proptest::prelude::*;

/// How long the films made here play.
const SECONDS: f64 = 12.0;

/// What came of a probe: its facts and the ranges that it fetched.
struct Probed {
    facts: Option<MediaFacts>,
    fetched: Vec<Range<u64>>,
}

/// Probes a film of which a server tells `size` and can give `film`.
fn probe_as(film: &[u8], size: Option<u64>, content_type: Option<&str>) -> Probed {
    let mut probe = MediaProbe::new(size, content_type);
    let mut fetched = Vec::new();
    loop {
        match probe.next() {
            Step::Need { offset, length } => {
                assert!((1..=1 << 20).contains(&length), "{length} bytes at once");
                assert!(fetched.len() < 16, "the probe does not end: {fetched:?}");
                let end = offset.saturating_add(length);
                assert!(size.is_none_or(|size| end <= size), "{offset}+{length} is beyond the film");
                let there = film.len() as u64;
                probe.provide(offset, &film[offset.min(there) as usize..end.min(there) as usize]);
                fetched.push(offset..end);
            }
            Step::Done(facts) => return Probed { facts, fetched },
        }
    }
}

fn probe(film: &[u8]) -> Probed {
    probe_as(film, Some(film.len() as u64), None)
}

/// Makes a film with ffmpeg; `None`, said aloud, without ffmpeg.
fn make(name: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"])
        .args(["-f", "lavfi", "-i", "sine=frequency=440", "-t", "12"])
        .args(arguments)
        .arg(&path)
        .status();
    match made {
        Ok(status) => assert!(status.success(), "ffmpeg could not make {name}"),
        Err(error) => {
            anabranch_testkit::skipped(format_args!("no real film {name}: ffmpeg does not run: {error}"));
            return None;
        }
    }
    Some(std::fs::read(path).unwrap())
}

const H264: [&str; 9] = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "2M", "-c:a", "aac", "-shortest"];

fn h264(name: &str, more: &[&str]) -> Option<Vec<u8>> {
    make(name, &[&H264[..], more].concat())
}

/// One film of each kind, made once for all tests.
static FILMS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let films = [
        ("index-last.mp4", h264("a.mp4", &[])),
        ("index-first.mp4", h264("b.mp4", &["-movflags", "+faststart"])),
        ("fragmented.mp4", h264("c.mp4", &["-movflags", "+frag_keyframe+empty_moov"])),
        ("stream.ts", h264("d.ts", &[])),
        ("film.mkv", h264("e.mkv", &[])),
        ("live.mkv", h264("f.mkv", &["-live", "1"])),
        (
            "film.webm",
            make(
                "g.webm",
                &[
                    "-c:v",
                    "libvpx",
                    "-deadline",
                    "realtime",
                    "-cpu-used",
                    "8",
                    "-b:v",
                    "1M",
                    "-c:a",
                    "libopus",
                ],
            ),
        ),
    ];
    films.into_iter().filter_map(|(name, film)| Some((name, film?))).collect()
});

fn film(name: &str) -> Option<&'static [u8]> {
    FILMS.iter().find(|(known, _)| *known == name).map(|(_, film)| &film[..])
}

/// Checks the facts of a film against its size and the length it was made with.
fn check(facts: &MediaFacts, container: Container, film: &[u8], tolerance: f64) {
    assert_eq!(facts.container, container);
    let duration = facts.duration.unwrap().as_secs_f64();
    assert!((duration / SECONDS - 1.0).abs() < tolerance, "plays {duration} s");
    let rate = film.len() as f64 * 8.0 / SECONDS;
    assert!((facts.mean_rate.as_f64() / rate - 1.0).abs() < tolerance, "{} is not {rate}", facts.mean_rate);
}

#[test]
fn an_mp4_with_its_index_first_takes_one_read() {
    let Some(film) = film("index-first.mp4") else { return };
    let Probed { facts, fetched } = probe(film);
    let facts = facts.unwrap();
    check(&facts, Container::Mp4, film, 0.02);
    assert_eq!(facts.index, None);
    assert_eq!(fetched.len(), 1);
}

#[test]
fn an_mp4_with_its_index_last_takes_two_reads_and_tells_where_the_index_is() {
    let Some(film) = film("index-last.mp4") else { return };
    let Probed { facts, fetched } = probe(film);
    let facts = facts.unwrap();
    check(&facts, Container::Mp4, film, 0.02);
    let index = facts.index.unwrap();
    assert_eq!(&film[index.start as usize + 4..][..4], b"moov");
    assert_eq!(index.end, film.len() as u64);
    assert_eq!(fetched.len(), 2, "{fetched:?}");
    assert!(fetched.iter().map(|range| range.end - range.start).sum::<u64>() < 100_000);
}

#[test]
fn films_that_do_not_say_how_long_they_are() {
    for name in ["fragmented.mp4", "live.mkv"] {
        let Some(film) = film(name) else { return };
        assert_eq!(probe(film).facts, None, "{name}");
    }
}

#[test]
fn a_fragmented_mp4_with_a_movie_extends_header() {
    let film = [
        mp4_box(b"ftyp", b"isom\0\0\0\0"),
        mp4_box(
            b"moov",
            &[movie_header(1000, 0), mp4_box(b"mvex", &mp4_box(b"mehd", &[0, 0, 0, 0, 0, 0, 0x27, 0x10]))]
                .concat(),
        ),
        mp4_box(b"mdat", &[0; 5000]),
    ]
    .concat();
    let facts = probe(&film).facts.unwrap();
    assert_eq!(facts.duration, Some(Duration::from_secs(10)));
    assert_eq!(facts.mean_rate.as_bps(), film.len() as u64 * 8 / 10);
}

/// The last plays for a quarter of a nanosecond.
#[test]
fn an_mp4_whose_clock_or_duration_is_senseless() {
    for (timescale, duration) in [(0, 1000), (1000, 0), (1000, u32::MAX), (u32::MAX, 1)] {
        let film = [mp4_box(b"ftyp", b"isom"), mp4_box(b"moov", &movie_header(timescale, duration))].concat();
        assert_eq!(probe(&film).facts, None, "{duration} of {timescale}");
    }
}

#[test]
fn a_transport_stream_takes_its_head_and_its_tail() {
    let Some(film) = film("stream.ts") else { return };
    let Probed { facts, fetched } = probe(film);
    check(&facts.unwrap(), Container::MpegTs, film, 0.05);
    assert!(film.len() > 2 << 20, "the film is too short for this test: {}", film.len());
    assert_eq!(fetched.last().unwrap().end, film.len() as u64);
    let known = probe_as(film, Some(film.len() as u64), Some("video/MP2T"));
    check(&known.facts.unwrap(), Container::MpegTs, film, 0.05);
    assert_eq!(known.fetched.len(), 2);
}

#[test]
fn a_transport_stream_of_unknown_size_has_the_rate_of_its_head() {
    let Some(film) = film("stream.ts") else { return };
    let facts = probe_as(film, None, None).facts.unwrap();
    assert_eq!(facts.duration, None);
    let rate = film.len() as f64 * 8.0 / SECONDS;
    assert!((facts.mean_rate.as_f64() / rate - 1.0).abs() < 0.5, "{} is far from {rate}", facts.mean_rate);
}

#[test]
fn matroska_and_webm_tell_duration_and_cues() {
    for name in ["film.mkv", "film.webm"] {
        let Some(film) = film(name) else { return };
        let Probed { facts, fetched } = probe(film);
        let facts = facts.unwrap();
        check(&facts, Container::Matroska, film, 0.02);
        let index = facts.index.unwrap();
        assert_eq!(film[index.start as usize..][..4], [0x1c, 0x53, 0xbb, 0x6b], "{name}");
        assert!(index.end <= film.len() as u64);
        assert_eq!(fetched.len(), 2, "{name}: {fetched:?}");
    }
}

#[test]
fn a_size_that_is_not_known_or_a_page_of_text() {
    if let Some(film) = film("index-first.mp4") {
        assert_eq!(probe_as(film, None, None).facts, None);
    }
    let page = probe_as(b"<html>", Some(6), Some("text/html; charset=utf-8"));
    assert_eq!((page.facts, page.fetched.len()), (None, 0));
    let nothing = probe_as(b"", Some(0), None);
    assert_eq!((nothing.facts, nothing.fetched.len()), (None, 0));
}

#[test]
fn an_answer_that_was_not_asked_for_changes_nothing_and_is_not_awaited_forever() {
    let mut probe = MediaProbe::new(Some(1 << 30), None);
    let wanted = probe.next();
    probe.provide(77, b"....ftyp");
    assert_eq!(probe.next(), wanted);
    for _ in 0..16 {
        probe.provide(77, b"");
    }
    assert_eq!(probe.next(), Step::Done(None));
}

#[test]
fn endless_boxes_end_the_probe() {
    // Every read shows a box that leads a little further, for petabytes.
    let mut probe = MediaProbe::new(Some(1 << 50), None);
    let mut reads = 0;
    while let Step::Need { offset, .. } = probe.next() {
        probe.provide(offset, &[&(1u32 << 30).to_be_bytes()[..], b"free"].concat());
        reads += 1;
    }
    assert_eq!((reads, probe.next()), (16, Step::Done(None)));
}

/// A box of ISO/IEC 14496-12.
fn mp4_box(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32 + 8).to_be_bytes(), &kind[..], payload].concat()
}

/// A movie header of version 0.
fn movie_header(timescale: u32, duration: u32) -> Vec<u8> {
    let payload = [&[0; 12][..], &timescale.to_be_bytes(), &duration.to_be_bytes(), &[0; 80]].concat();
    mp4_box(b"mvhd", &payload)
}

/// Films cut anywhere: at all of the first bytes, and here and there in the rest.
#[test]
fn every_film_cut_anywhere_is_survived() {
    for (name, film) in FILMS.iter() {
        let cuts = (0..3000).chain((3000..film.len()).step_by(film.len() / 500 + 1));
        for cut in cuts.take_while(|cut| *cut < film.len()) {
            // A film that is short, and a film of which the server cannot give what it promised.
            probe(&film[..cut]);
            let promised = probe_as(&film[..cut], Some(film.len() as u64), None);
            if let (Some(facts), false) = (promised.facts, name.ends_with("ts")) {
                assert!(
                    (facts.duration.unwrap().as_secs_f64() / SECONDS - 1.0).abs() < 0.02,
                    "{name} cut at {cut}"
                );
            }
        }
    }
}

/// Beginnings that lead into each of the readers.
fn beginning() -> impl Strategy<Value = Vec<u8>> {
    let clock = [&[0x47, 0x01, 0x00, 0x30, 0x07, 0x10][..], &[0; 182]].concat();
    prop_oneof![
        Just(Vec::new()),
        Just(mp4_box(b"ftyp", b"isom")),
        Just([mp4_box(b"ftyp", b"isom"), b"\0\0\xff\xffmoov".to_vec()].concat()),
        Just([mp4_box(b"ftyp", b"isom"), b"\0\0\xff\xffmoov\0\0\0\x6cmvhd".to_vec()].concat()),
        Just(b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff".to_vec()),
        Just(b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff\x15\x49\xa9\x66\xc0".to_vec()),
        Just(b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff\x11\x4d\x9b\x74\xc0".to_vec()),
        Just(clock.repeat(4)),
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        beginning in beginning(),
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        size in proptest::option::of(any::<u64>()),
    ) {
        let film = [beginning, bytes].concat();
        probe(&film);
        probe_as(&film, size, None);
    }

    #[test]
    fn no_damage_to_a_film_makes_it_panic(
        which in any::<prop::sample::Index>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        prop_assume!(!FILMS.is_empty());
        let (_, film) = which.get(&FILMS);
        let mut film = film[..film.len().min(40_000)].to_vec();
        for (place, byte) in damage {
            // Mostly in the headers, where it hurts.
            let place = place.index(film.len().min(1000));
            film[place] = byte;
        }
        probe(&film);
    }
}
