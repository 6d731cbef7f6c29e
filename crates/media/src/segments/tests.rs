use std::cell::RefCell;
use std::collections::BTreeSet;

use anabranch_units::{Bytes, Duration};
use mpeg2ts_reader::mpegts_crc::sum32;
use mpeg2ts_reader::packet::Packet;
use proptest::prelude::*;

use super::*;

const MAP: u16 = 0x1000;
const VIDEO: u16 = 0x100;
const SOUND: u16 = 0x101;
const TICKS_PER_MILLISECOND: u64 = 90;
const WRAPS: u64 = 1 << 33;

fn packet(pid: u16, is_start: bool, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (pid | if is_start { 0x4000 } else { 0 }).to_be_bytes();
    let mut packet = vec![0x47, high, low];
    // An adaptation field fills it up.
    let filled = Packet::SIZE - 4 - payload.len();
    packet.push(if filled > 0 { 0x30 } else { 0x10 });
    if filled > 0 {
        packet.push((filled - 1).try_into().unwrap());
        packet.extend([0].iter().chain(&[0xff; 183]).take(filled - 1));
    }
    packet.extend(payload);
    packet
}

fn section(mut table: Vec<u8>) -> Vec<u8> {
    table[2] = (table.len() + 4 - 3).try_into().unwrap();
    table.extend(sum32(&table).to_be_bytes());
    [vec![0], table].concat()
}

/// The tables of a program with H.264 and AAC.
fn tables(version: u8) -> Vec<u8> {
    let association = [&[0, 0xb0, 0, 0, 1, 0xc1, 0, 0], &[0u8, 1, 0xf0, 0][..]].concat();
    let map = [
        &[2, 0xb0, 0, 0, 1, 0xc1 | version << 1, 0, 0, 0xe1, 0, 0xf0, 0][..],
        &[0x1b, 0xe1, 0, 0xf0, 0, 0x0f, 0xe1, 1, 0xf0, 0],
    ]
    .concat();
    [packet(0, true, &section(association)), packet(MAP, true, &section(map))].concat()
}

fn stamp(millis: u64) -> [u8; 5] {
    let ticks = millis * TICKS_PER_MILLISECOND % WRAPS;
    let byte = |shift: u32, mask: u64| (ticks >> shift & mask) as u8;
    [0x21 | byte(30, 7) << 1, byte(22, 0xff), byte(15, 0x7f) << 1 | 1, byte(7, 0xff), byte(0, 0x7f) << 1 | 1]
}

fn elementary(id: u8, length: u16, millis: u64, payload: &[u8]) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    [&[0, 0, 1, id, high, low, 0x80, 0x80, 5], &stamp(millis)[..], payload].concat()
}

/// A picture of two packets.
fn picture(millis: u64, is_key: bool) -> Vec<u8> {
    let unit: &[u8] = if is_key { &[0, 0, 0, 1, 0x67, 9] } else { &[0, 0, 0, 1, 0x41, 9] };
    let begins = packet(VIDEO, true, &elementary(0xe0, 0, millis, unit));
    [begins, packet(VIDEO, false, &[7; 184])].concat()
}

/// 25 pictures a second from `from` on, a key frame every `distance` milliseconds.
fn film(from: u64, millis: u64, distance: u64) -> Vec<u8> {
    let pictures = (0..millis / 40).map(|number| number * 40);
    let pictures = pictures.map(|time| picture(from + time, time % distance == 0));
    tables(0).into_iter().chain(pictures.flatten()).collect()
}

fn segmenter() -> Segmenter {
    Segmenter::new(Duration::from_secs(2), Bytes::mib(1), None)
}

fn durations(cuts: &[Cut]) -> Vec<u64> {
    cuts.iter().map(|cut| cut.duration.as_millis()).collect()
}

const NOW: Duration = Duration::from_secs(1_000_000);

#[test]
fn segments_begin_with_tables_and_a_key_frame() {
    let mut segmenter = segmenter();
    // The stream is joined where no player could begin.
    let mut cuts = segmenter.push(&[tables(0), picture(960, false)].concat(), NOW);
    cuts.extend(segmenter.push(&film(1000, 7000, 1000), NOW));
    cuts.extend(segmenter.finish());
    assert_eq!(durations(&cuts), [2000, 2000, 2000, 1000]);
    assert_eq!(segmenter.target(), Some(Duration::from_secs(2)));
    for (number, cut) in cuts.iter().enumerate() {
        let packets: Vec<&[u8]> = cut.bytes.chunks(Packet::SIZE).collect();
        let pids: Vec<u16> = packets.iter().map(|it| u16::from_be_bytes([it[1], it[2]]) & 0x1fff).collect();
        assert_eq!(pids[..3], [0, MAP, VIDEO]);
        // Counters of the tables go on.
        assert_eq!([packets[0][3] & 15, packets[1][3] & 15], [number as u8; 2]);
        let first = number as u64 * 2000;
        let pictures = (0..cut.duration.as_millis() / 40).map(|picture| first + picture * 40);
        let expected: Vec<u8> = pictures.flat_map(|at| picture(1000 + at, at % 1000 == 0)).collect();
        assert_eq!(packets[2..].concat(), expected, "segment {number}");
        assert!(!cut.is_discontinuity);
    }
}

#[test]
fn the_date_follows_the_media_and_not_the_jitter() {
    let mut segmenter = segmenter();
    let mut dates = Vec::new();
    for (number, jitter) in [0, 300, 900, 100, 2500].into_iter().enumerate() {
        let at = number as u64 * 2000;
        let now = NOW + Duration::from_millis(at + jitter);
        let film = film(at, 2000, 2000);
        dates.extend(segmenter.push(&film, now).into_iter().map(|cut| cut.date));
    }
    dates.extend(segmenter.finish().into_iter().map(|cut| cut.date));
    let since: Vec<u64> = dates.iter().map(|date| (*date - NOW).as_millis()).collect();
    // The last one comes so late that the clocks have gone apart.
    assert_eq!(since, [0, 2000, 4000, 6000, 10_500]);
}

#[test]
fn time_stamps_that_start_again_go_on() {
    let mut segmenter = segmenter();
    let before_wrap = WRAPS / TICKS_PER_MILLISECOND - 3000;
    let mut cuts = segmenter.push(&film(before_wrap, 8000, 1000), NOW);
    cuts.extend(segmenter.finish());
    assert_eq!(durations(&cuts), [2000, 2000, 2000, 2000]);
    assert!(cuts.iter().all(|cut| !cut.is_discontinuity));
}

#[test]
fn another_time_or_program_begins_another_part() {
    for (second, is_apart) in [(4000, false), (0, true), (3920, true), (100_000, true)] {
        let mut segmenter = segmenter();
        let mut cuts = segmenter.push(&film(0, 4000, 1000), NOW);
        cuts.extend(segmenter.push(&film(second, 4000, 1000), NOW));
        cuts.extend(segmenter.finish());
        assert_eq!(durations(&cuts), [2000, 2000, 2000, 2000], "{second}");
        let parts: Vec<bool> = cuts.iter().map(|cut| cut.is_discontinuity).collect();
        assert_eq!(parts, [false, false, is_apart, false], "{second}");
    }
    let mut segmenter = segmenter();
    let mut cuts = segmenter.push(&film(0, 3000, 1000), NOW);
    cuts.extend(segmenter.push(&tables(1), NOW));
    cuts.extend(segmenter.push(&[picture(3000, false), picture(3040, true)].concat(), NOW));
    cuts.extend(segmenter.finish());
    assert_eq!(durations(&cuts), [2000, 1000, 40]);
    assert_eq!(cuts.iter().map(|cut| cut.is_discontinuity).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn no_segment_is_longer_than_the_target_duration() {
    let mut segmenter = segmenter();
    let film = [film(0, 3000, 3000), picture(3000, true)].concat();
    let mut cuts = segmenter.push(&film, NOW);
    let rest: Vec<u8> = (1..1000).flat_map(|number| picture(3000 + number * 40, false)).collect();
    cuts.extend(segmenter.push(&rest, NOW));
    assert_eq!(segmenter.target(), Some(Duration::from_secs(3)));
    assert!(cuts.len() > 10);
    // Rounded, as the standard compares them.
    assert!(durations(&cuts).iter().all(|duration| *duration < 3500), "{:?}", durations(&cuts));
}

#[test]
fn a_segment_has_all_of_the_sound_that_began_in_it() {
    let mut segmenter = segmenter();
    let sound = |is_start: bool| match is_start {
        true => packet(SOUND, true, &elementary(0xc0, 8 + 170 + 184, 0, &[1; 170])),
        false => packet(SOUND, false, &[2; 184]),
    };
    let head = [film(0, 2000, 2000), sound(true), picture(2000, true), sound(false), picture(2040, false)];
    let mut cuts = segmenter.push(&head.concat(), NOW);
    assert_eq!(durations(&cuts), [2000], "it is there when the sound has ended");
    let [begins, ends] = [sound(true), sound(false)];
    assert!(cuts[0].bytes.ends_with(&[begins, ends].concat()));
    // Sound of which the rest is lost ends with the next segment.
    let lost = [sound(true), film(4000 - 40 * 49, 4000, 4000)].concat();
    cuts.extend(segmenter.push(&lost, NOW));
    cuts.extend(segmenter.finish());
    assert!(cuts.len() >= 2, "{:?}", durations(&cuts));
}

#[test]
fn sound_alone_is_cut_anywhere() {
    let mut segmenter = segmenter();
    let map = [&[2, 0xb0, 0, 0, 1, 0xc1, 0, 0, 0xe1, 1, 0xf0, 0][..], &[0x0f, 0xe1, 1, 0xf0, 0]].concat();
    let tables = [tables(0)[..Packet::SIZE].to_vec(), packet(MAP, true, &section(map))].concat();
    let mut cuts = segmenter.push(&tables, NOW);
    for millis in (0..9000).step_by(100) {
        cuts.extend(segmenter.push(&packet(SOUND, true, &elementary(0xc0, 18, millis, &[1; 10])), NOW));
    }
    assert_eq!(durations(&cuts), [2000; 4]);
}

#[test]
fn a_stream_without_an_end_stays_within_its_memory() {
    let mut segmenter = Segmenter::new(Duration::from_secs(2), Bytes::kib(100), None);
    let mut cuts = segmenter.push(&[tables(0), picture(0, true)].concat(), NOW);
    for _ in 0..2000 {
        cuts.extend(segmenter.push(&packet(VIDEO, false, &[3; 184]), NOW));
    }
    assert!(!cuts.is_empty());
    assert!(cuts.iter().all(|cut| cut.bytes.len() <= 100 * 1024 + Packet::SIZE));
}

fn window() -> Window {
    Window::new(("live-", ".ts"), Duration::from_secs(8), Bytes::mib(1))
}

fn cut(is_discontinuity: bool, bytes: usize) -> Cut {
    Cut { bytes: vec![0; bytes], duration: Duration::from_millis(2002), date: NOW, is_discontinuity }
}

const TARGET: Duration = Duration::from_secs(2);

#[test]
fn the_playlist_is_that_of_the_standard() {
    let mut window = window();
    assert!(window.push(&cut(false, 188), TARGET).is_empty());
    assert!(window.push(&cut(true, 188), TARGET).is_empty());
    let expected = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n\
        #EXT-X-PROGRAM-DATE-TIME:1970-01-12T13:46:40.000Z\n#EXTINF:2.002,\nlive-0.ts\n\
        #EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:1970-01-12T13:46:40.000Z\n#EXTINF:2.002,\nlive-1.ts\n";
    assert_eq!(String::from_utf8(window.playlist(false)).unwrap(), expected);
    assert_eq!(String::from_utf8(window.playlist(true)).unwrap(), format!("{expected}#EXT-X-ENDLIST\n"));
}

#[test]
fn the_window_moves_and_keeps_what_players_still_get() {
    let mut window = window();
    let mut there = BTreeSet::new();
    for number in 0..100 {
        there.insert(number);
        for gone in window.push(&cut(number % 10 == 5, 1000), TARGET) {
            assert!(there.remove(&window.number(&gone).unwrap()));
        }
        assert!(there.iter().all(|number| window.has(*number)) && there.len() <= 10, "{there:?}");
    }
    let text = String::from_utf8(window.playlist(false)).unwrap();
    // 8 s are four of them and some milliseconds; ten parts had begun before.
    assert!(text.contains("#EXT-X-MEDIA-SEQUENCE:96\n#EXT-X-DISCONTINUITY-SEQUENCE:10\n"), "{text}");
    assert_eq!((there.first(), there.last()), (Some(&91), Some(&99)));
}

#[test]
fn the_disk_is_used_no_more_than_it_may_be() {
    let mut window = window();
    let sizes = RefCell::new(std::collections::BTreeMap::new());
    for number in 0..50 {
        let size = if number == 40 { 2 << 20 } else { 300_000 };
        sizes.borrow_mut().insert(number, size);
        for gone in window.push(&cut(false, size), TARGET) {
            sizes.borrow_mut().remove(&window.number(&gone).unwrap());
        }
        let sum: usize = sizes.borrow().values().sum();
        assert!(sum <= 1 << 20 || sizes.borrow().len() == 1, "{sum}");
    }
}

#[test]
fn parts_are_whole_pictures_and_make_the_segment() {
    let mut segmenter = segmenter().with_parts(Duration::from_millis(300));
    let (mut parts, mut cuts) = (Vec::new(), Vec::new());
    for packets in film(0, 5000, 1000).chunks(Packet::SIZE) {
        cuts.extend(segmenter.push(packets, NOW));
        parts.extend(segmenter.take_parts());
        // A player has a part when the picture after it begins.
        let whole: Duration = parts.iter().map(|part| part.duration).sum();
        assert!(whole <= Duration::from_millis(5000));
    }
    cuts.extend(segmenter.finish());
    parts.extend(segmenter.take_parts());
    assert_eq!(durations(&cuts), [2000, 2000, 1000]);
    for (number, cut) in cuts.iter().enumerate() {
        let mine: Vec<&Part> = parts.iter().filter(|part| part.segment == number as u64).collect();
        let lengths: Vec<u64> = mine.iter().map(|part| part.duration.as_millis()).collect();
        let expected =
            if number < 2 { vec![280, 280, 280, 280, 280, 280, 280, 40] } else { vec![280, 280, 280, 160] };
        assert_eq!(lengths, expected);
        let bytes: Vec<u8> = mine.iter().flat_map(|part| part.bytes.clone()).collect();
        assert!(bytes == cut.bytes, "segment {number}");
        assert!(mine[0].is_independent && !mine[1].is_independent);
        assert_eq!(mine[0].start, Some(Start { date: cut.date, is_discontinuity: false }));
        assert!(mine[1..].iter().all(|part| part.start.is_none()));
    }
    assert!(parts.is_sorted_by_key(|part| part.segment));
}

#[test]
fn the_playlist_has_the_newest_parts() {
    let mut window = window().with_parts(Duration::from_millis(300));
    let mut there = BTreeSet::new();
    for number in 0..20 {
        for part in 0..7 {
            assert_eq!(window.part_file(), format!("live-{number}.{part}.ts"));
            there.insert(window.part_file());
            let (bytes, duration) = (vec![0; 188], Duration::from_millis(286));
            let start = (part == 0).then_some(Start { date: NOW, is_discontinuity: false });
            window.push_part(&Part { segment: number, bytes, duration, is_independent: part == 0, start });
        }
        there.insert(format!("live-{number}.ts"));
        for gone in window.push(&cut(false, 7 * 188), TARGET) {
            assert!(there.remove(&gone), "{gone}");
        }
        // Those of three segments are listed, and those of one more are still there.
        let files = there.iter().filter(|file| window.is_part(file)).count();
        assert!(files <= 5 * 7, "{there:?}");
    }
    let start = Some(Start { date: NOW, is_discontinuity: true });
    let (bytes, duration) = (vec![0; 188], TARGET / 8);
    window.push_part(&Part { segment: 20, bytes, duration, is_independent: true, start });
    let text = String::from_utf8(window.playlist(false)).unwrap();
    assert!(
        text.starts_with(
            "#EXTM3U\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.900\n\
             #EXT-X-PART-INF:PART-TARGET=0.300\n#EXT-X-VERSION:9\n"
        ),
        "{text}"
    );
    assert!(
        text.ends_with(
            "live-19.ts\n#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:1970-01-12T13:46:40.000Z\n\
             #EXT-X-PART:DURATION=0.250,URI=\"live-20.0.ts\",INDEPENDENT=YES\n"
        ),
        "{text}"
    );
    assert!(text.contains("URI=\"live-17.0.ts\"") && !text.contains("live-16.0.ts"), "{text}");
    // All that is listed is there.
    let listed = text.split('"').skip(1).step_by(2).filter(|file| *file != "live-20.0.ts");
    assert!(listed.clone().count() > 14 && listed.clone().all(|file| there.contains(file)), "{text}");
    assert!(!String::from_utf8(window.playlist(true)).unwrap().contains("PART"));
    // A program that is started again lists no part of the one before.
    let mut second = self::window().with_parts(Duration::from_millis(300));
    second.resume(text.as_bytes(), |_| Some(Bytes::new(1000))).unwrap();
    assert_eq!(second.next(), 20);
    assert!(!String::from_utf8(second.playlist(false)).unwrap().contains("X-PART:"));
}

#[test]
fn a_playlist_is_gone_on_with() {
    let mut first = window();
    for number in 0..9 {
        first.push(&cut(number == 2, 1000), TARGET);
    }
    let playlist = first.playlist(true);
    let mut second = window();
    second.resume(&playlist, |number| (number != 6).then_some(Bytes::new(1000))).unwrap();
    assert_eq!((second.next(), second.target()), (9, Some(TARGET)));
    second.push(&cut(true, 1000), TARGET);
    let text = String::from_utf8(second.playlist(false)).unwrap();
    assert!(text.contains("SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n"), "{text}");
    assert!(text.ends_with("live-9.ts\n") && !text.contains("ENDLIST"), "{text}");
    for foreign in ["no playlist", "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n../film.ts\n"] {
        assert_eq!(window().resume(foreign.as_bytes(), |_| None), Err(WindowError::Format));
    }
    assert_eq!(window().resume(&vec![b'#'; 100 << 20], |_| None), Err(WindowError::TooLong));
}

proptest! {
    #[test]
    fn anything_can_come(
        pieces in prop::collection::vec((0usize..9, any::<u64>(), prop::collection::vec(any::<u8>(), 376)), 0..60),
    ) {
        let mut segmenter = Segmenter::new(Duration::ZERO, Bytes::kib(8), None);
        let mut window = window();
        for (kind, number, noise) in pieces {
            let piece = match kind {
                0 => noise,
                1 => tables(number as u8 & 7),
                2 => [&[0x47, 0x40, 0][..], &noise[3..]].concat(),
                3 => [&[0x47, 0x50, 0][..], &noise[3..]].concat(),
                4 => [&[0x47, 0x41, 0][..], &noise[3..188]].concat(),
                5 => [&[0x47, 0x41, 0, 0x10, 0, 0, 1, 0xe0][..], &noise[8..188]].concat(),
                6 => packet(SOUND, number % 2 == 0, &noise[..100]),
                _ => picture(number % 100_000, number % 3 == 0),
            };
            for cut in segmenter.push(&piece, Duration::from_millis(number % 1_000_000)) {
                prop_assert!(cut.bytes.len() % Packet::SIZE == 0 && cut.bytes.len() <= 9 << 10);
                prop_assert!(cut.duration.as_millis() < 31_000);
                window.push(&cut, segmenter.target().unwrap());
                prop_assert!(m3u8_rs::parse_playlist_res(&window.playlist(false)).is_ok());
            }
        }
    }
}
