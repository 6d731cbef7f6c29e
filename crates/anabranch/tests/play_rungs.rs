//! `anabranch play` of a ladder before players that do not adapt: one rung is chosen for each segment, or for the
//! whole film, and told.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::path::Path;
use std::time::{Duration, Instant};

use anabranch_testkit::{Answer, Asked, ScriptedServer, film};
use play_support::{LIMIT, Origin, Program, frames, get, read_response, send, tool};

/// Six seconds of picture and sound in two rungs of two-second segments: transport streams, or fragments of MP4
/// for HLS and DASH.
fn ladder(directory: &Path, format: &[&str]) -> Option<()> {
    let source =
        ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=10", "-f", "lavfi", "-i", "sine"];
    let codecs =
        ["-t", "6", "-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "20", "-sc_threshold", "0"];
    let rungs =
        ["-map", "0:v", "-map", "0:v", "-s:v:0", "80x46", "-b:v:0", "30k", "-b:v:1", "90k", "-c:a", "aac"];
    let output = tool("ffmpeg", &[&source[..], &codecs[..], &rungs[..], format].concat());
    // ffmpeg writes beside its working directory: the names are absolute.
    let output = output?;
    assert!(output.status.success(), "{}: {}", directory.display(), String::from_utf8_lossy(&output.stderr));
    Some(())
}

fn hls(directory: &Path) -> Option<()> {
    let at = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let names = [at("%v-%d.ts"), at("%v.m3u8")];
    ladder(
        directory,
        &[
            "-map",
            "1:a",
            "-map",
            "1:a",
            "-f",
            "hls",
            "-hls_time",
            "2",
            "-hls_playlist_type",
            "vod",
            "-master_pl_name",
            "master.m3u8",
            "-var_stream_map",
            "v:0,a:0 v:1,a:1",
            "-hls_segment_filename",
            &names[0],
            &names[1],
        ],
    )
}

fn dash(directory: &Path) -> Option<()> {
    let at = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (initialization, media) = ("init-$RepresentationID$.m4s", "$RepresentationID$-$Number$.m4s");
    let sets = "id=0,streams=v id=1,streams=a";
    ladder(
        directory,
        &[
            "-map",
            "1:a",
            "-f",
            "dash",
            "-seg_duration",
            "2",
            "-adaptation_sets",
            sets,
            "-init_seg_name",
            initialization,
            "-media_seg_name",
            media,
            "-hls_playlist",
            "1",
            &at("film.mpd"),
        ],
    )
}

/// Plays with ffmpeg, which has no complaint: its frames, what was said, and the rungs in the statistics.
fn played(directory: &Path, url: &str, options: &[&str]) -> Option<(String, String, Vec<String>)> {
    let (out, stats) = (directory.join("frames"), directory.join("stats"));
    let _ = std::fs::remove_file(&stats);
    let player = format!("ffmpeg -v error -i {{}} -map 0:v:0 -map 0:a:0 -f framemd5 -y '{}'", out.display());
    let arguments = ["play", url, "--player", &player, "--stats", stats.to_str().unwrap()];
    let mut program = Program::start([&arguments[..], options].concat());
    let (code, said) = program.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.lines().all(|line| line.starts_with("anabranch: ")), "{said}");
    let stats = std::fs::read_to_string(stats).unwrap();
    let rungs = stats.lines().filter(|line| line.contains("\"event\":\"rung\"")).map(str::to_owned).collect();
    Some((std::fs::read_to_string(out).unwrap(), said, rungs))
}

fn sizes(frames: &str) -> (usize, usize) {
    let of = |stream: &str| frames.lines().filter(|line| line.starts_with(stream)).count();
    (of("0,"), of("1,"))
}

#[test]
fn ffmpeg_plays_every_frame_of_segments_of_different_rungs() {
    let directory = tempfile::tempdir().unwrap();
    let Some(()) = hls(directory.path()) else { return };
    let origin = Origin::start(directory.path(), None);
    let Some(direct) = frames(&origin.url("1.m3u8")) else { return };
    let Some((frames, said, rungs)) = played(directory.path(), &origin.url("master.m3u8"), &[]) else {
        return;
    };
    assert_eq!(sizes(&frames), sizes(&direct), "as many pictures, and as much sound");
    // What the machine brings over loopback is more than the highest rung.
    assert_eq!(rungs.len(), 2, "{said}");
    assert!(rungs[0].contains("\"rung\":1,\"rungs\":2,") && rungs[0].contains("\"segment\":0,"), "{rungs:?}");
    assert!(rungs[1].contains("\"rung\":2,\"rungs\":2,"), "{rungs:?}");
    assert!(said.contains("rung 2 of 2 rungs, ") && said.contains("segments come at "), "{said}");
}

#[test]
fn where_a_player_cannot_change_one_rung_is_chosen_for_the_whole_film() {
    let directory = tempfile::tempdir().unwrap();
    let Some(()) = dash(directory.path()) else { return };
    let origin = Origin::start(directory.path(), None);
    for name in ["film.mpd", "master.m3u8"] {
        let Some((frames, said, rungs)) = played(directory.path(), &origin.url(name), &[]) else { return };
        assert_eq!(sizes(&frames).0, 60, "{name}: {said}");
        assert_eq!(rungs.len(), 1, "{name}: {said}");
        assert!(
            rungs[0].contains("\"rung\":2,\"rungs\":2,") && rungs[0].contains("\"segment\":null"),
            "{rungs:?}"
        );
        assert!(said.contains("for the whole film rung 2 of 2 rungs, "), "{name}: {said}");
    }
}

/// Segments of one second, of 1 and 2 Mbps by what the playlist says; a rung's come after so long.
fn origin(wait: Duration) -> ScriptedServer {
    const SEGMENT: usize = 100_000;
    let content = film(SEGMENT);
    ScriptedServer::of(&content, move |asked: &Asked| {
        let text = match asked.target.as_str() {
            "/master.m3u8" => "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2000000\nhigh.m3u8\n\
                               #EXT-X-STREAM-INF:BANDWIDTH=1000000\nlow.m3u8\n"
                .to_owned(),
            "/low.m3u8" | "/high.m3u8" => {
                let rung = asked.target.trim_start_matches('/').trim_end_matches(".m3u8");
                let segments: String =
                    (0..8).map(|number| format!("#EXTINF:1,\n{rung}/{number}.ts\n")).collect();
                format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{segments}#EXT-X-ENDLIST\n")
            }
            _ => return asked.good_head().wait(wait).send(asked.bytes()),
        };
        let lines = [
            "Content-Type: application/vnd.apple.mpegurl".to_owned(),
            format!("Content-Length: {}", text.len()),
        ];
        Answer::head("200 OK", &lines).send(text)
    })
}

const FFMPEG: &str = "User-Agent: Lavf/59.27.100";

/// Asks as a player that does not adapt: the segments in their order, and which ones the server was asked for then,
/// each once.
fn asked_for(origin: &ScriptedServer, options: &[&str]) -> (String, Vec<String>) {
    let url = format!("{}master.m3u8", origin.url);
    let mut program = Program::start([&["play", url.as_str()], options].concat());
    let (address, path) = program.endpoint();
    let local = |text: &str| format!("/{}", text.splitn(4, '/').nth(3).unwrap());
    let start = get(address, &path, &[FFMPEG]).header("location").to_owned();
    let master = get(address, &start, &[FFMPEG]).text();
    let highest = master.lines().find(|line| line.ends_with("high.m3u8")).unwrap();
    let list = get(address, &local(highest), &[FFMPEG]).text();
    for segment in list.lines().filter(|line| line.ends_with(".ts")) {
        assert_eq!(get(address, &local(segment), &[FFMPEG]).status, 200);
    }
    let heads = origin.heads();
    let segments =
        heads.iter().filter_map(|head| head.split(' ').nth(1).filter(|path| path.ends_with(".ts")));
    let mut segments: Vec<_> = segments.map(str::to_owned).collect();
    segments.dedup();
    (master, segments)
}

#[test]
fn a_slow_path_stays_on_its_lowest_rung_and_no_segment_comes_twice() {
    // 800 kbps, however fast the machine is; several connections would bring more.
    let origin = origin(Duration::from_secs(1));
    let (master, asked) = asked_for(&origin, &["--connections", "1"]);
    assert!(!master.contains("low.m3u8"), "one rung is shown: {master}");
    let expected: Vec<_> = (0..8).map(|number| format!("/low/{number}.ts")).collect();
    assert_eq!(asked, expected);
}

#[test]
fn a_fast_path_takes_the_highest_rung_and_no_number_comes_of_two() {
    let origin = origin(Duration::ZERO);
    let (_, asked) = asked_for(&origin, &[]);
    assert_eq!(asked.len(), 8, "{asked:?}");
    assert_eq!((asked[0].as_str(), asked[7].as_str()), ("/low/0.ts", "/high/7.ts"), "{asked:?}");
}

#[test]
fn a_player_that_adapts_gets_the_whole_ladder() {
    let origin = origin(Duration::ZERO);
    let url = format!("{}master.m3u8", origin.url);
    for (options, agent, is_whole) in [
        (&[][..], "User-Agent: Mozilla/5.0", true),
        (&[], FFMPEG, false),
        (&["--rung", "player"], FFMPEG, true),
        (&["--rung", "here"], "User-Agent: Mozilla/5.0", false),
    ] {
        let mut program = Program::start([&["play", url.as_str()], options].concat());
        let (address, path) = program.endpoint();
        let start = get(address, &path, &[agent]).header("location").to_owned();
        let master = get(address, &start, &[agent]).text();
        assert!(master.contains("high.m3u8"), "{master}");
        assert_eq!(master.contains("low.m3u8"), is_whole, "{agent} {options:?}: {master}");
    }
}

/// ffmpeg asks for a segment when the one before has only begun to come.
#[test]
fn a_request_that_comes_too_soon_waits_for_the_segment_before() {
    let origin = origin(Duration::from_secs(1));
    let url = format!("{}master.m3u8", origin.url);
    let mut program = Program::start(["play", url.as_str()]);
    let (address, path) = program.endpoint();
    let local = |text: &str| format!("/{}", text.splitn(4, '/').nth(3).unwrap());
    let start = get(address, &path, &[FFMPEG]).header("location").to_owned();
    let master = get(address, &start, &[FFMPEG]).text();
    let list = get(address, &local(master.lines().last().unwrap()), &[FFMPEG]).text();
    let segments: Vec<_> = list.lines().filter(|line| line.ends_with(".ts")).map(local).collect();
    let first = send(address, "GET", &segments[0], &[FFMPEG]);
    let has_come = |name: &str| origin.heads().iter().any(|head| head.contains(name));
    let began = Instant::now();
    while !has_come("/low/0.ts") {
        assert!(began.elapsed() < LIMIT, "the first segment is not asked for");
        std::thread::sleep(Duration::from_millis(10));
    }
    let second = send(address, "GET", &segments[1], &[FFMPEG]);
    assert_eq!(read_response(first).status, 200);
    assert_eq!(read_response(second).status, 200);
    let heads = origin.heads();
    let last_of_first = heads.iter().rposition(|head| head.contains("/low/0.ts")).unwrap();
    let first_of_second = heads.iter().position(|head| head.contains("/1.ts")).unwrap();
    assert!(last_of_first < first_of_second, "{heads:?}");
}
