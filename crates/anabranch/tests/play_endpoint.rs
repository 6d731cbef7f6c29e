//! `anabranch play` as a player sees it: raw requests to its endpoint, and real players.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::io::Read;
use std::time::{Duration, Instant};

use anabranch_testkit::film;
use anabranch_units::Rate;
use play_support::{
    Origin, Program, SeekingPlayer, assert_same, frames, get, raw_origin, read_response, real_film, request,
    send, tool,
};

const SIZE: usize = 3_000_000;

/// A film of noise, its server, and the program that plays it.
struct Playing {
    film: Vec<u8>,
    address: std::net::SocketAddr,
    path: String,
    program: Program,
    origin: Origin,
    directory: tempfile::TempDir,
}

fn play(size: usize, rate: Option<Rate>, options: &[&str]) -> Playing {
    let directory = tempfile::tempdir().unwrap();
    let film = film(size);
    std::fs::write(directory.path().join("a film.mp4"), &film).unwrap();
    let origin = Origin::start(directory.path(), rate);
    let url = origin.url("a%20film.mp4");
    let mut program = Program::start(["play", &url].iter().chain(options));
    let (address, path) = program.endpoint();
    Playing { film, address, path, program, origin, directory }
}

#[test]
fn ranges_heads_and_conditions_of_one_film() {
    let Playing { film, address, path, program: _program, origin: _origin, directory: _directory } =
        play(SIZE, None, &[]);
    assert_eq!(path, "/a%20film.mp4");
    let total = film.len();

    let head = request(address, "HEAD", &path, &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), total.to_string());
    assert_eq!(head.header("accept-ranges"), "bytes");
    assert_eq!(head.header("content-type"), "video/mp4");
    let etag = head.header("etag").to_owned();
    assert!(etag.starts_with('"') && etag.len() > 2, "{etag}");

    // The tail first, as players that look for an index do, then a suffix, the middle, the start.
    let cases = [
        (format!("bytes={}-", total - 5000), total - 5000..total),
        ("bytes=-1".into(), total - 1..total),
        (format!("bytes=-{}", total * 2), 0..total),
        (format!("bytes=1000000-{}", total * 2), 1_000_000..total),
        ("bytes=0-0".into(), 0..1),
        ("bytes=0-".into(), 0..total),
    ];
    for (range, part) in cases {
        let response = get(address, "/a%20film%2Emp4?x=1", &[&format!("Range: {range}")]);
        assert_eq!(response.status, 206, "{range}");
        let expected = format!("bytes {}-{}/{total}", part.start, part.end - 1);
        assert_eq!(response.header("content-range"), expected);
        assert_eq!(response.header("etag"), etag);
        assert_same(&response.body, &film[part], &range);
    }

    for range in [format!("bytes={total}-"), "bytes=-0".into()] {
        let response = get(address, &path, &[&format!("Range: {range}")]);
        assert_eq!((response.status, response.header("content-range")), (416, &*format!("bytes */{total}")));
    }

    let several = get(address, &path, &["Range: bytes=5-9,100-199"]);
    assert_eq!(several.status, 206);
    let boundary = several.header("content-type").strip_prefix("multipart/byteranges; boundary=").unwrap();
    let mut expected = Vec::new();
    for part in [5..10, 100..200] {
        let (first, last) = (part.start, part.end - 1);
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: video/mp4\r\nContent-Range: bytes \
             {first}-{last}/{total}\r\n\r\n"
        );
        expected.extend_from_slice(head.as_bytes());
        expected.extend_from_slice(&film[part]);
    }
    expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert!(several.body == expected);

    let conditions = [
        (format!("If-Range: {etag}"), 206),
        ("If-Range: \"another\"".into(), 200),
        (format!("If-None-Match: {etag}"), 304),
        ("If-Match: \"another\"".into(), 412),
    ];
    for (condition, status) in conditions {
        let response = get(address, &path, &["Range: bytes=10-19", &condition]);
        assert_eq!(response.status, status, "{condition}");
        if status == 200 {
            assert!(response.body == film);
        }
    }
    assert_eq!(request(address, "POST", &path, &[]).status, 405);
    let page = get(address, "/", &["Range: bytes=0-1", "Origin: http://localhost:3000"]);
    assert_eq!((page.status, page.header("access-control-allow-origin")), (206, "http://localhost:3000"));
    for elsewhere in ["/any/path/film.mp4", "/favicon.ico", "/http://127.0.0.1:1/film.mp4", "/a%20film.mp4/"]
    {
        let response = get(address, elsewhere, &[]);
        assert_eq!((response.status, response.text().contains("the film is at /a%20film.mp4")), (404, true));
    }
    let metrics = get(address, "/metrics", &[]);
    assert!(metrics.text().contains("anabranch_connections"), "{}", metrics.text());
}

#[test]
fn overlapping_ranges_at_once() {
    let Playing { film, address, path, program: _program, origin: _origin, directory: _directory } =
        play(SIZE, Some(Rate::from_mbps(40)), &[]);
    let parts = [0..2_000_000, 1_000_000..3_000_000, 500_000..2_500_000];
    let streams = parts
        .clone()
        .map(|part| send(address, "GET", &path, &[&format!("Range: bytes={}-{}", part.start, part.end - 1)]));
    let readers: Vec<_> =
        streams.into_iter().map(|stream| std::thread::spawn(move || read_response(stream))).collect();
    for (reader, part) in readers.into_iter().zip(parts) {
        let response = reader.join().unwrap();
        assert_eq!(response.status, 206);
        assert_same(&response.body, &film[part], "an overlapping range");
    }
}

#[test]
fn a_storm_of_seeks() {
    let Playing { film, address, path, program: _program, origin: _origin, directory: _directory } =
        play(SIZE, None, &[]);
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    for seek in 0..50 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let start = usize::try_from(random % SIZE as u64).unwrap();
        let mut stream = send(address, "GET", &path, &[&format!("Range: bytes={start}-")]);
        if seek % 2 == 0 {
            // A player that seeks away leaves in the middle.
            let mut some = [0; 4000];
            let count = stream.read(&mut some).unwrap();
            assert!(some[..count].starts_with(b"HTTP/1.1 206"));
        } else {
            let response = read_response(stream);
            assert_same(&response.body, &film[start..], &format!("seek {seek} to {start}"));
        }
    }
}

#[test]
fn a_player_that_hangs_up_ends_the_work_for_it() {
    let rate = Rate::from_mbps(16);
    let playing = play(40_000_000, Some(rate), &["--rate", "max", "--memory", "64MiB"]);
    let mut stream = send(playing.address, "GET", &playing.path, &[]);
    let mut some = vec![0; 200_000];
    stream.read_exact(&mut some).unwrap();
    drop(stream);
    // What is under way still comes; then the server has nothing to do.
    let began = Instant::now();
    let mut before = playing.origin.sent();
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = playing.origin.sent();
        if now == before {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(12), "{now} bytes were sent, and more are");
        before = now;
    }
    assert!(before < 30_000_000, "{before} bytes for a player that took {}", some.len());
    // The film is still there for the next one.
    let response = get(playing.address, &playing.path, &["Range: bytes=39999990-"]);
    assert!(response.body == playing.film[39_999_990..]);
}

#[test]
fn it_ends_when_the_film_was_read_to_its_end() {
    let mut playing = play(SIZE, None, &[]);
    let tail = get(playing.address, &playing.path, &["Range: bytes=0-99"]);
    assert_eq!(tail.body.len(), 100);
    assert!(get(playing.address, &playing.path, &[]).body == playing.film);
    let (code, said) = playing.program.ended();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_server_without_ranges_is_played_from_the_start() {
    // More than is kept in memory.
    let film = film(3_000_000);
    let body = film.clone();
    for is_size_known in [true, false] {
        let body = body.clone();
        let origin = raw_origin(move |_| {
            let length =
                if is_size_known { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: video/mp4\r\n{length}\r\n");
            [head.into_bytes(), body.clone()].concat()
        });
        let mut program = Program::start(["play", "--memory", "1MiB", &format!("http://{origin}/film")]);
        let (address, path) = program.endpoint();
        let mut stream = send(address, "GET", &path, &["Range: bytes=0-"]);
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        let end = got.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&got[..end]).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200") && head.contains("accept-ranges: none"), "{head}");
        assert!(!head.contains("etag"), "{head}");
        assert_eq!(head.contains("content-length: 3000000"), is_size_known, "{head}");
        let body = if is_size_known { got[end + 4..].to_vec() } else { unchunk(&got[end + 4..]) };
        assert_same(&body, &film, "the whole film");
        let (code, said) = program.ended();
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Players read an index at the end first.
#[test]
fn a_film_that_fits_into_memory_is_read_from_its_end_though_its_server_knows_no_ranges() {
    let film = film(3_000_000);
    let body = film.clone();
    let origin = raw_origin(move |_| {
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.into_bytes(), body.clone()].concat()
    });
    let mut program = Program::start(["play", &format!("http://{origin}/film")]);
    let (address, path) = program.endpoint();
    for (range, expected) in [
        ("Range: bytes=2999000-", &film[2_999_000..]),
        ("Range: bytes=0-", &film),
        ("Range: bytes=1000-1999", &film[1000..2000]),
    ] {
        assert_same(&get(address, &path, &[range]).body, expected, range);
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
        if length == 0 {
            return body;
        }
    }
}

#[test]
fn a_replica_dies_on_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let film = film(4_000_000);
    std::fs::write(directory.path().join("film"), &film).unwrap();
    let mut first = Origin::start(directory.path(), Some(Rate::from_mbps(12)));
    let second = Origin::start(directory.path(), Some(Rate::from_mbps(12)));
    let mut program = Program::start(["play", &first.url("film"), &second.url("film"), "--rate", "max"]);
    let (address, path) = program.endpoint();
    let mut stream = send(address, "GET", &path, &[]);
    let mut got = vec![0; 1_000_000];
    stream.read_exact(&mut got).unwrap();
    first.kill();
    stream.read_to_end(&mut got).unwrap();
    let end = got.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert_same(&got[end + 4..], &film, "the film");
    let (code, said) = program.ended();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn without_any_server_it_fails_with_a_message() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("film"), film(4_000_000)).unwrap();
    let mut origin = Origin::start(directory.path(), Some(Rate::from_mbps(8)));
    let mut missing = Program::start(["play", &origin.url("nothing")]);
    let (code, said) = missing.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("404"), "{said}");

    let mut program = Program::start(["play", &origin.url("film"), "--timeout", "2s"]);
    let (address, path) = program.endpoint();
    let mut stream = send(address, "GET", &path, &[]);
    let mut some = vec![0; 200_000];
    stream.read_exact(&mut some).unwrap();
    origin.kill();
    // The player is not told that this is the end of the film.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < 3_800_000);
    let (code, said) = program.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&origin.address.to_string()), "{said}");
}

#[test]
fn signals_end_it() {
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let mut playing = play(SIZE, Some(Rate::from_mbps(1)), &[]);
        let _stream = send(playing.address, "GET", &playing.path, &[]);
        std::thread::sleep(Duration::from_millis(300));
        let status = std::process::Command::new("kill")
            .args([format!("-{signal}"), playing.program.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
        let (ended, said) = playing.program.ended();
        assert_eq!(ended, Some(code), "{said}");
    }
}

#[test]
fn the_players_end_is_the_programs() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("film"), film(SIZE)).unwrap();
    let origin = Origin::start(directory.path(), None);
    for (player, code, words) in [
        ("true", 0, ""),
        ("sh -c 'exit 3' {}", 1, "exit code 3"),
        ("no-such-player-anywhere", 1, "no such program"),
        ("'", 2, "--player"),
    ] {
        let mut program = Program::start(["play", &origin.url("film"), "--player", player]);
        let (ended, said) = program.ended();
        assert_eq!(ended, Some(code), "{player}: {said}");
        assert!(said.contains(words), "{player}: {said}");
    }
}

#[test]
fn ffmpeg_decodes_every_frame() {
    let directory = tempfile::tempdir().unwrap();
    let film = directory.path().join("film.mp4");
    let Some(()) = real_film(&film) else { return };
    let direct = frames(film.to_str().unwrap()).unwrap();
    let first = Origin::start(directory.path(), Some(Rate::from_mbps(4)));
    let second = Origin::start(directory.path(), Some(Rate::from_mbps(4)));
    let (a, b) = (first.url("film.mp4"), second.url("film.mp4"));
    let out = directory.path().join("frames");
    let player =
        format!("ffmpeg -v error -xerror -i {{}} -map 0:v -map 0:a -f framemd5 -y '{}'", out.display());
    let (code, said) = Program::start(["play", &a, &b, "--player", &player]).ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(std::fs::read_to_string(out).unwrap() == direct, "other frames than directly");
}

#[test]
fn mpv_plays_to_the_end_with_seeks() {
    let directory = tempfile::tempdir().unwrap();
    let film = directory.path().join("film.mp4");
    let Some(()) = real_film(&film) else { return };
    if tool("mpv", &["--version"]).is_none() {
        return;
    }
    let origin = Origin::start(directory.path(), Some(Rate::from_mbps(4)));
    let mpv = SeekingPlayer::new(directory.path());
    let (code, said) = Program::start(["play", &origin.url("film.mp4"), "--player", &mpv.command]).ended();
    assert_eq!(code, Some(0), "{said}");
    mpv.assert_played_to_the_end();
}
