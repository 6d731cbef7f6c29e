//! `anabranch proxy` before a player of segments that are parts of one file: a playlist is one session.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use anabranch_testkit::{Answer, Asked, ScriptedServer, film};
use play_support::{LIMIT, Program, Response, get};

/// What is before the segments.
const INITIALIZATION: usize = 1000;
/// Bytes of a segment, which plays four seconds.
const SIZE: usize = 300_000;
const SEGMENTS: usize = 12;

fn whole() -> Vec<u8> {
    film(INITIALIZATION + SEGMENTS * SIZE)
}

fn segment(number: usize) -> Range<usize> {
    INITIALIZATION + number * SIZE..INITIALIZATION + (number + 1) * SIZE
}

/// A playlist of HLS of one file.
fn origin(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> ScriptedServer {
    ScriptedServer::of(&whole(), move |asked| {
        if asked.target != "/list.m3u8" {
            return answer(asked);
        }
        let segments: String = (0..SEGMENTS)
            .map(|number| match number {
                0 => format!("#EXTINF:4,\n#EXT-X-BYTERANGE:{SIZE}@{INITIALIZATION}\nfilm.mp4\n"),
                _ => format!("#EXTINF:4,\n#EXT-X-BYTERANGE:{SIZE}\nfilm.mp4\n"),
            })
            .collect();
        let text = format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"film.mp4\",BYTERANGE=\"{INITIALIZATION}@0\"\n\
             {segments}#EXT-X-ENDLIST\n"
        );
        let lines = [
            "Content-Type: application/vnd.apple.mpegurl".to_owned(),
            format!("Content-Length: {}", text.len()),
        ];
        Answer::head("200 OK", &lines).send(text)
    })
}

fn proxy(origin: &ScriptedServer) -> (Program, SocketAddr) {
    let mut program = Program::start(["proxy", "--listen", "127.0.0.1:0"]);
    let (address, _) = program.endpoint();
    assert_eq!(get(address, &format!("/{}list.m3u8", origin.url), &[]).status, 200);
    (program, address)
}

fn part(origin: &ScriptedServer, proxy: SocketAddr, range: &Range<usize>) -> Response {
    let range = format!("Range: bytes={}-{}", range.start, range.end - 1);
    get(proxy, &format!("/{}film.mp4", origin.url), &[&range])
}

/// Of which segments bytes were asked for.
fn asked(origin: &ScriptedServer) -> Vec<usize> {
    let first = |head: &str| {
        let range = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned))?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        let number = first.checked_sub(INITIALIZATION)? / SIZE;
        assert!(last < segment(number).end, "{first}-{last} is in no segment");
        Some(number)
    };
    let heads = origin.heads();
    let of_film = heads.iter().filter(|head| head.starts_with("GET /film.mp4"));
    let mut numbers: Vec<_> = of_film.filter_map(|head| first(head)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "{what} has not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn parts_of_one_file_are_fetched_ahead_over_the_same_connections() {
    let (origin, film) = (origin(Asked::good), whole());
    let (_program, address) = proxy(&origin);
    let initialization = part(&origin, address, &(0..INITIALIZATION));
    assert!(initialization.status == 206 && initialization.body == film[..INITIALIZATION]);
    for number in 0..4 {
        let range = segment(number);
        let response = part(&origin, address, &range);
        assert_eq!(response.status, 206, "{}", response.text());
        let told = format!("bytes {}-{}/{}", range.start, range.end - 1, film.len());
        assert_eq!(response.header("content-range"), told);
        assert!(response.body == film[range], "other bytes in {number}");
        // 30 s behind the start of what was asked for.
        wait_until("what is played next", || asked(&origin).last() == Some(&(number + 7)));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(asked(&origin), (0..=10).collect::<Vec<_>>(), "and nothing more");
    let (requests, connections) = (origin.requests(), origin.connections().len());
    assert!(connections <= 6, "{connections} connections for {requests} requests");
}

#[test]
fn a_part_of_a_segment_is_got_of_that_segment_and_what_is_in_several_of_the_file() {
    let (origin, film) = (origin(Asked::good), whole());
    let (_program, address) = proxy(&origin);
    for range in [
        segment(2).start + 10..segment(2).end - 10,
        segment(1).start..segment(3).end,
        0..film.len(),
        segment(SEGMENTS - 1).end - 5..film.len(),
    ] {
        let response = part(&origin, address, &range);
        let told = format!("bytes {}-{}/{}", range.start, range.end - 1, film.len());
        assert_eq!((response.status, response.header("content-range")), (206, told.as_str()));
        assert!(response.body == film[range.clone()], "other bytes in {range:?}");
    }
}

#[test]
fn of_a_server_without_ranges_the_file_is_got_as_a_whole() {
    let (origin, film) = (origin(Asked::whole), whole());
    let (_program, address) = proxy(&origin);
    for number in 0..2 {
        let response = part(&origin, address, &segment(number));
        assert_eq!(response.status, 206, "{}", response.text());
        assert!(response.body == film[segment(number)], "other bytes in {number}");
    }
}
