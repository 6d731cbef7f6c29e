//! `anabranch proxy`: what it refuses, what it passes on, and playlists that real players follow.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::net::SocketAddr;
use std::path::Path;

use anabranch_testkit::film;
use play_support::{Origin, Program, frames, get, raw_origin, request, tool};

fn proxy() -> (Program, SocketAddr) {
    let mut program = Program::start(["proxy", "--listen", "127.0.0.1:0"]);
    let (address, _) = program.endpoint();
    (program, address)
}

fn files(list: &[(&str, &[u8])]) -> (tempfile::TempDir, Origin) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in list {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    let origin = Origin::start(directory.path(), None);
    (directory, origin)
}

#[test]
fn objects_with_their_ranges() {
    let film = film(1_500_000);
    let (_directory, origin) = files(&[("film.mp4", &film)]);
    let (_program, address) = proxy();
    let path = format!("/{}", origin.url("film.mp4?token=a/b"));
    let head = request(address, "HEAD", &path, &[]);
    assert_eq!((head.status, head.header("content-length")), (200, "1500000"));
    assert!(get(address, &path, &[]).body == film);
    let tail = get(address, &path, &["Range: bytes=-10"]);
    assert_eq!((tail.status, tail.header("content-range")), (206, "bytes 1499990-1499999/1500000"));
    assert!(tail.body == film[1_499_990..]);
    // Programs that tidy paths make one slash of two.
    let tidied = path.replacen("http://", "http:/", 1);
    assert!(get(address, &tidied, &[]).body == film);
}

#[test]
fn what_the_origin_says_and_what_the_proxy_refuses() {
    let (_directory, origin) = files(&[("a", b"a")]);
    let (_program, address) = proxy();
    let free = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    for (path, status, words) in [
        (format!("/{}", origin.url("nothing")), 404, "404"),
        (format!("/http://{free}/film"), 502, "refused"),
        ("/http://no-such-host.invalid/film".into(), 502, "no-such-host.invalid"),
        (format!("/http://{address}/http://{}/a", origin.address), 400, "back to this proxy"),
        (format!("/http://localhost:{}/", address.port()), 400, "back to this proxy"),
        ("/file:///etc/passwd".into(), 400, "not supported"),
        ("/ftp://host/film".into(), 400, "not supported"),
        ("/favicon.ico".into(), 400, "ask for a URL"),
        ("/".into(), 400, "ask for a URL"),
    ] {
        let response = get(address, &path, &[]);
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert!(response.text().contains(words), "{path}: {}", response.text());
    }
    let path = format!("/{}", origin.url("a"));
    for (host, status) in [
        ("evil.example".to_owned(), 421),
        (format!("evil.example:{}", address.port()), 421),
        (format!("localhost:{}", address.port()), 200),
    ] {
        assert_eq!(get(address, &path, &[&format!("Host: {host}")]).status, status, "{host}");
    }
}

#[test]
fn a_live_playlist_is_the_one_of_now() {
    let (directory, origin) = files(&[("live.m3u8", b"")]);
    let (_program, address) = proxy();
    let path = format!("/{}", origin.url("live.m3u8"));
    for sequence in 0..3 {
        let absolute = origin.url(&format!("{sequence}.ts"));
        let text = format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{sequence}\n#EXTINF:2,\n{absolute}\n#EXTINF:2,\nnext.ts\n"
        );
        std::fs::write(directory.path().join("live.m3u8"), &text).unwrap();
        let response = get(address, &path, &["Range: bytes=0-"]);
        assert_eq!((response.status, response.header("cache-control")), (206, "no-store"));
        let expected = text.replace(&absolute, &format!("http://{address}/{absolute}"));
        assert_eq!(response.text(), expected);
    }
}

#[test]
fn a_playlist_that_was_moved_sends_the_player_there() {
    let playlist = "#EXTM3U\n#EXTINF:2,\n/root.ts\n#EXTINF:2,\nnext.ts\n";
    let origin = raw_origin(move |head| {
        if head.starts_with("GET /old/") {
            let to = "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: \
                      /new/a.m3u8\r\n\r\n";
            return to.into();
        }
        // A server without ranges, which knows no types either.
        format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{playlist}",
            playlist.len()
        )
        .into()
    });
    let (_program, address) = proxy();
    let moved = get(address, &format!("/http://{origin}/old/a.m3u8"), &[]);
    assert_eq!((moved.status, moved.header("location")), (302, &*format!("/http://{origin}/new/a.m3u8")));
    let found = get(address, moved.header("location"), &[]);
    let expected = playlist.replace("/root.ts", &format!("http://{address}/http://{origin}/root.ts"));
    assert_eq!((found.status, found.text()), (200, expected));
}

#[test]
fn a_way_back_through_another_name_is_noticed() {
    let (mut program, address) = proxy();
    // Somebody who passes requests on to the proxy, with their headers, under an address that is not its own.
    let passing_on = raw_origin(move |head| {
        let via =
            head.lines().find(|line| line.to_ascii_lowercase().starts_with("via:")).unwrap_or("X-None: 1");
        let answer = get(address, "/http://127.0.0.1:1/", &[via]);
        format!("HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", answer.status).into()
    });
    // The origin's status is passed on: the inner 400.
    let response = get(address, &format!("/http://{passing_on}/"), &[]);
    assert_eq!(response.status, 400, "{}", response.text());
    signal(&program, libc::SIGTERM);
    assert_eq!(program.ended().0, Some(143));
}

fn signal(program: &Program, number: i32) {
    let arguments = [format!("-{number}"), program.id().to_string()];
    assert!(std::process::Command::new("kill").args(arguments).status().unwrap().success());
}

fn streams(directory: &Path) -> Option<()> {
    let at = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let source =
        ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i", "sine"];
    let codecs =
        ["-t", "12", "-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-b:v", "600k", "-c:a", "aac"];
    let hls = [
        "-f",
        "hls",
        "-hls_time",
        "2",
        "-hls_playlist_type",
        "vod",
        "-hls_segment_filename",
        &at("hls%d.ts"),
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
fn ffmpeg_plays_hls_and_dash_through_it() {
    let directory = tempfile::tempdir().unwrap();
    let Some(()) = streams(directory.path()) else { return };
    let origin = Origin::start(directory.path(), None);
    // References from the root and absolute ones would go past the proxy if they were not rewritten.
    let playlist = std::fs::read_to_string(directory.path().join("film.m3u8")).unwrap();
    let absolute = playlist.replace("hls1.ts", &origin.url("hls1.ts")).replace("hls2.ts", "/hls2.ts");
    assert_ne!(absolute, playlist);
    std::fs::write(directory.path().join("mixed.m3u8"), absolute).unwrap();
    let (_program, address) = proxy();
    for name in ["film.m3u8", "mixed.m3u8", "film.mpd"] {
        let Some(direct) = frames(&origin.url(name)) else { return };
        let through = frames(&format!("http://{address}/{}", origin.url(name))).unwrap();
        assert!(direct.lines().count() > 400, "{name}: {} lines", direct.lines().count());
        assert!(through == direct, "{name}: other frames than directly");
    }
    // Everything of the mixed playlist went through the proxy: a direct request has no Via, which the server
    // does not log; but a playlist that was not rewritten would name the origin.
    let text = get(address, &format!("/{}", origin.url("mixed.m3u8")), &[]).text();
    assert!(!text.contains(&format!("\nhttp://{}", origin.address)), "{text}");
}
