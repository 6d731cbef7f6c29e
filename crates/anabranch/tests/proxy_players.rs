//! `anabranch proxy` before real players of segments: HLS and DASH as ffmpeg makes them, in files and in parts
//! of one file.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use anabranch_testkit::{Answer, Asked, ScriptedServer, part, skipped, status, whole};
use play_support::{LIMIT, Program, get, tool};

/// A film of 24 s in segments of 2 s, made by ffmpeg's muxer with these options; `None`: there is no ffmpeg.
fn made(directory: &Path, options: &[&str], name: &str) -> Option<()> {
    let source =
        ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=10", "-f", "lavfi", "-i", "sine"];
    let codecs = ["-t", "24", "-c:v", "libx264", "-preset", "veryfast", "-g", "20", "-c:a", "aac"];
    let path = directory.join(name);
    let output = tool("ffmpeg", &[&source[..], &codecs[..], options, &[path.to_str().unwrap()]].concat())?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// A server of the files in a directory.
fn server(directory: &Path) -> ScriptedServer {
    let directory = directory.to_owned();
    ScriptedServer::start(move |asked: &Asked| -> Answer {
        match std::fs::read(directory.join(asked.target.trim_start_matches('/'))) {
            Ok(file) if asked.range.is_some() => part(asked, &file, ""),
            Ok(file) => whole(&file),
            Err(_) => status("404 Not Found", ""),
        }
    })
}

fn proxy() -> (Program, SocketAddr) {
    let mut program = Program::start(["proxy", "--listen", "127.0.0.1:0"]);
    let (address, _) = program.endpoint();
    (program, address)
}

/// What ffmpeg's decoders see: a digest of every frame. Its demuxer of DASH also asks for what is behind the
/// last segment, and says that it is not there.
fn decoded(url: &str) -> Option<String> {
    let output =
        tool("ffmpeg", &["-v", "error", "-i", url, "-map", "0:v", "-map", "0:a", "-f", "framemd5", "-"])?;
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What tells requests for media apart: file and range.
fn media(origin: &ScriptedServer) -> Vec<String> {
    let name = |head: &String| {
        let file = head.split(' ').nth(1)?.to_owned();
        let range =
            head.lines().find_map(|line| line.strip_prefix("Range: ").or(line.strip_prefix("range: ")));
        (!file.ends_with(".mpd") && !file.ends_with(".m3u8"))
            .then(|| format!("{file} {}", range.unwrap_or("")))
    };
    let mut names: Vec<_> = origin.heads().iter().filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// Plays what ffmpeg makes with these options: whole, with every frame as directly, over few connections; and
/// two seconds of it, beyond which more is fetched than the player asks for.
fn assert_is_one_session(options: &[&str], name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let Some(()) = made(directory.path(), options, name) else { return };
    let direct_origin = server(directory.path());
    let Some(direct) = decoded(&format!("{}{name}", direct_origin.url)) else { return };
    assert!(direct.lines().count() > 200, "{name}: {} lines", direct.lines().count());

    let origin = server(directory.path());
    let (_program, address) = proxy();
    let through = decoded(&format!("http://{address}/{}{name}", origin.url)).unwrap();
    assert!(through == direct, "{name}: other frames than directly");
    let (requests, connections) = (origin.requests(), origin.connections().len());
    assert!(origin.most_open() <= 6, "{name}: {} connections at once", origin.most_open());
    assert!(requests > 12 && connections <= 6, "{name}: {connections} connections for {requests} requests");

    // A player that takes two seconds asks for little; what is ahead of it comes all the same.
    let begin = |url: &str| {
        let output =
            tool("ffmpeg", &["-v", "error", "-re", "-i", url, "-map", "0:v", "-t", "2", "-f", "null", "-"]);
        assert!(output.unwrap().status.success());
    };
    let alone = server(directory.path());
    begin(&format!("{}{name}", alone.url));
    let origin = server(directory.path());
    let (_program, address) = proxy();
    begin(&format!("http://{address}/{}{name}", origin.url));
    let (few, all) = (media(&alone).len(), media(&direct_origin).len());
    assert!(few + 6 <= all, "{name}: {few} of {all} asked for directly");
    wait_for(&origin, few + 6);
}

/// Waits until a server was asked for so many pieces of media.
#[track_caller]
fn wait_for(origin: &ScriptedServer, count: usize) {
    let began = Instant::now();
    while media(origin).len() < count {
        assert!(began.elapsed() < LIMIT, "nothing is fetched ahead: {:?}", media(origin));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn hls_in_parts_of_one_file() {
    let options = ["-f", "hls", "-hls_time", "2", "-hls_playlist_type", "vod", "-hls_segment_type", "fmp4"];
    assert_is_one_session(&[&options[..], &["-hls_flags", "single_file"]].concat(), "film.m3u8");
}

#[test]
fn dash_with_a_timeline() {
    assert_is_one_session(&["-f", "dash", "-seg_duration", "2", "-use_timeline", "1"], "film.mpd");
}

#[test]
fn dash_with_numbers() {
    assert_is_one_session(&["-f", "dash", "-seg_duration", "2", "-use_timeline", "0"], "film.mpd");
}

/// A player that asks for the first segment of a file, and for nothing more; `before`: for these parts first.
fn assert_is_fetched_ahead(directory: &Path, file: &str, before: &[Range<usize>], first: Range<usize>) {
    let origin = server(directory);
    let content = std::fs::read(directory.join(file)).unwrap();
    let (_program, address) = proxy();
    assert_eq!(get(address, &format!("/{}film.mpd", origin.url), &[]).status, 200);
    for range in before.iter().chain([&first]) {
        let asked = format!("Range: bytes={}-{}", range.start, range.end - 1);
        let response = get(address, &format!("/{}{file}", origin.url), &[&asked]);
        assert!(response.status == 206 && response.body == content[range.clone()], "{range:?}");
    }
    wait_for(&origin, before.len() + 6);
    assert!(origin.connections().len() <= 6, "{} connections", origin.connections().len());
}

/// Which ffmpeg makes, but does not play.
#[test]
fn dash_in_parts_of_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["-f", "dash", "-seg_duration", "2", "-single_file", "1"];
    let Some(()) = made(directory.path(), &options, "film.mpd") else { return };
    let description = std::fs::read_to_string(directory.path().join("film.mpd")).unwrap();
    let range = |name: &str| {
        let (_, after) = description.split_once(&format!(" {name}=\"")).unwrap();
        let (first, last) = after.split('"').next().unwrap().split_once('-').unwrap();
        first.parse().unwrap()..last.parse::<usize>().unwrap() + 1
    };
    assert_is_fetched_ahead(directory.path(), "film-stream0.mp4", &[range("range")], range("mediaRange"));
}

/// Players of `SegmentBase` ask for the index, and then for the parts that it lists.
#[test]
fn dash_with_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["-an", "-movflags", "+frag_keyframe+empty_moov+default_base_moof+dash+global_sidx"];
    let Some(()) = made(directory.path(), &options, "film.mp4") else { return };
    let film = std::fs::read(directory.path().join("film.mp4")).unwrap();
    let Some(found) = film.windows(4).position(|four| four == b"sidx") else {
        return skipped("this ffmpeg writes no index");
    };
    let start = found - 4;
    let size = |at: usize| u32::from_be_bytes(film[at..at + 4].try_into().unwrap()) as usize;
    let index = start..start + size(start);
    let description = format!(
        "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" \
         mediaPresentationDuration=\"PT24S\" profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\"><Period>\
         <AdaptationSet mimeType=\"video/mp4\"><Representation id=\"v\" bandwidth=\"300000\"><BaseURL>film.mp4</BaseURL>\
         <SegmentBase indexRange=\"{}-{}\"><Initialization range=\"0-{}\"/></SegmentBase>\
         </Representation></AdaptationSet></Period>",
        index.start,
        index.end - 1,
        index.start - 1
    );
    std::fs::write(directory.path().join("film.mpd"), description + "</MPD>").unwrap();
    // The first reference of an index of version 1 or 0, whose anchor is its end.
    let width = if film[index.start + 8] == 0 { 4 } else { 8 };
    let first = index.end..index.end + size(index.start + 8 + 4 + 8 + 2 * width + 4);
    assert_is_fetched_ahead(directory.path(), "film.mp4", &[0..index.start, index], first);
}
