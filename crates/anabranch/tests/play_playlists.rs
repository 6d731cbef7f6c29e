//! `anabranch play` of HLS and DASH: what it plays, and what it answers nobody.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use play_support::{Origin, Program, frames, get, raw_origin, tool};

/// A film of some seconds as HLS, in a directory of its own, and as DASH.
fn streams(directory: &Path) -> Option<()> {
    std::fs::create_dir(directory.join("parts")).unwrap();
    let at = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let source =
        ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=10", "-f", "lavfi", "-i", "sine"];
    let codecs = ["-t", "6", "-c:v", "libx264", "-preset", "veryfast", "-g", "10", "-c:a", "aac"];
    let hls = [
        "-f",
        "hls",
        "-hls_time",
        "2",
        "-hls_playlist_type",
        "vod",
        "-hls_segment_filename",
        &at("parts/hls%d.ts"),
        "-hls_base_url",
        "parts/",
        "-master_pl_name",
        "master.m3u8",
        &at("film.m3u8"),
    ];
    let dash = ["-f", "dash", "-seg_duration", "2", &at("film.mpd")];
    for format in [&hls[..], &dash[..]] {
        let output = tool("ffmpeg", &[&source[..], &codecs[..], format].concat())?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Some(())
}

#[test]
fn ffmpeg_plays_every_frame_of_a_playlist() {
    let directory = tempfile::tempdir().unwrap();
    let Some(()) = streams(directory.path()) else { return };
    let origin = Origin::start(directory.path(), None);
    for name in ["master.m3u8", "film.mpd"] {
        let Some(direct) = frames(&origin.url(name)) else { return };
        assert!(direct.lines().count() > 60, "{name}: {} lines", direct.lines().count());
        let out = directory.path().join("frames");
        let player =
            format!("ffmpeg -v error -xerror -i {{}} -map 0:v -map 0:a -f framemd5 -y '{}'", out.display());
        let stats = directory.path().join("stats");
        let mut program = Program::start([
            "play",
            &origin.url(name),
            "--player",
            &player,
            "--stats",
            stats.to_str().unwrap(),
        ]);
        let (code, said) = program.ended();
        assert_eq!(code, Some(0), "{name}: {said}");
        assert!(said.contains("the playlist is at http://127.0.0.1:"), "{said}");
        assert!(std::fs::read_to_string(out).unwrap() == direct, "{name}: other frames than directly");
        let stats = std::fs::read_to_string(stats).unwrap();
        assert!(stats.lines().last().unwrap().contains("\"event\":\"summary\""), "{stats}");
    }
}

#[test]
fn a_playlist_opens_its_own_resources_and_nothing_else() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let answered = move |kind: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: \
                 {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    let other = raw_origin(move |head| {
        seen.lock().unwrap().push(head.to_ascii_lowercase());
        answered("video/mp2t", "segment")
    });
    let heads_of_own = Arc::new(Mutex::new(Vec::new()));
    let seen = heads_of_own.clone();
    let own = raw_origin(move |head| {
        seen.lock().unwrap().push(head.to_ascii_lowercase());
        match head.split(' ').nth(1).unwrap() {
            "/films/list.m3u8?token=x" => answered(
                "application/vnd.apple.mpegurl",
                &format!(
                    "#EXTM3U\n#EXTINF:2,\n1.ts\n#EXTINF:2,\nhttp://{other}/cdn/2.ts\n#EXTINF:2,\n/top/3.ts\n"
                ),
            ),
            _ => answered("video/mp2t", "segment"),
        }
    });
    let typed = format!("http://user:password@{own}/films/list.m3u8?token=x");
    let mut program = Program::start(["play", &typed, "-H", "X-Token: secret"]);
    let (address, path) = program.endpoint();
    assert_eq!(path, "/list.m3u8");
    let moved = get(address, &path, &[]);
    assert_eq!((moved.status, get(address, "/", &[]).status), (302, 302), "{}", moved.text());
    let start = moved.header("location").to_owned();
    assert!(!start.contains("password"), "{start}");
    let playlist = get(address, &start, &[]);
    assert_eq!((playlist.status, playlist.header("content-type")), (200, "application/vnd.apple.mpegurl"));
    let base = url::Url::parse(&format!("http://{address}{start}")).unwrap();
    let text = playlist.text();
    let references: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            base.join(line).unwrap().as_str().strip_prefix(&format!("http://{address}")).unwrap().to_owned()
        })
        .collect();
    assert_eq!(references.len(), 3, "{text}");
    for reference in &references {
        let segment = get(address, reference, &["Cookie: session=secret"]);
        assert_eq!((segment.status, segment.text()), (200, "segment".into()), "{reference}");
    }
    let tag = start.split('/').nth(1).unwrap();
    for nothing in [
        "/favicon.ico".to_owned(),
        format!("/http://{own}/films/1.ts"),
        format!("/anonymous/http://{own}/films/1.ts"),
        format!("/{tag}/http://{own}/private/1.ts"),
        format!("/{tag}/http://{own}/films/../private/1.ts"),
        format!("/{tag}/http://{other}/cdn/2.ts"),
        format!("/0000000000000000/http://{own}/films/1.ts"),
    ] {
        let response = get(address, &nothing, &[]);
        assert_eq!(response.status, 404, "{nothing}: {}", response.text());
    }
    assert_eq!(get(address, &references[0], &["Origin: https://evil.example"]).status, 403);
    let (heads, heads_of_own) = (heads.lock().unwrap(), heads_of_own.lock().unwrap());
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(!heads[0].contains("secret") && !heads[0].contains("authorization"), "{heads:?}");
    let is_told = |head: &String| {
        head.contains("x-token: secret")
            && head.contains("authorization: basic dxnlcjpwyxnzd29yza==")
            && !head.contains("cookie")
    };
    assert!(heads_of_own.iter().all(is_told), "{heads_of_own:?}");
}
