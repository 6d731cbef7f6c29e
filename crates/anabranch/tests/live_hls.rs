//! `anabranch receive --hls` as viewers see it: ffmpeg's program as the client, and Chromium with hls.js.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod browser_support;
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use browser_support::Browser;
use common::live::{Receiver, TOKEN, film_with, send};
use common::{Server, anabranch, ends_with, wait_long_until};

/// Three seconds with a key frame in each.
fn film(directory: &Path) -> Option<()> {
    film_with(directory, &["-g", "25", "-keyint_min", "25", "-sc_threshold", "0"]).map(drop)
}

fn sends(directory: &Path, receiver: &Receiver) {
    let options = ["--input", "film.ts", "--token", TOKEN, "--latency", "1s"];
    let sent = send(directory, receiver.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&sent, 0);
}

fn playlist(directory: &Path) -> String {
    fs::read_to_string(directory.join("hls/live.m3u8")).unwrap_or_default()
}

/// The number of pictures that ffprobe decodes, and what it complains about.
fn pictures(url: &str) -> (u64, String) {
    let probed = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v", "-count_frames"])
        .args(["-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", url])
        .output()
        .unwrap();
    let count = String::from_utf8(probed.stdout).unwrap();
    // ffprobe lists it again below the program.
    (
        count.lines().next().and_then(|count| count.parse().ok()).unwrap_or(0),
        String::from_utf8_lossy(&probed.stderr).into_owned(),
    )
}

const HLS: [&str; 4] = ["--hls", "hls", "--hls-segment", "1s"];

#[test]
fn a_film_becomes_segments_that_show_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    if film(directory).is_none() {
        return;
    }
    let receiver = Receiver::at("127.0.0.1:0", directory, &[&HLS[..], &["--output", "got.ts"]].concat());
    sends(directory, &receiver);
    receiver.ended_well();
    let playlist = playlist(directory);
    assert_eq!(playlist.matches("#EXTINF:1,").count(), 3, "{playlist}");
    assert_eq!(playlist.matches("#EXT-X-PROGRAM-DATE-TIME:20").count(), 3, "{playlist}");
    assert!(playlist.contains("#EXT-X-TARGETDURATION:1\n") && playlist.ends_with("#EXT-X-ENDLIST\n"));
    assert_eq!(pictures(directory.join("hls/live.m3u8").to_str().unwrap()), (75, String::new()));
    // Each shows its own.
    for number in 0..3 {
        let segment = directory.join(format!("hls/live-{number}.ts"));
        assert_eq!(pictures(segment.to_str().unwrap()), (25, String::new()), "{number}");
    }
    // And the recording beside it is whole.
    assert_eq!(fs::read(directory.join("got.ts")).unwrap(), fs::read(directory.join("film.ts")).unwrap());
}

#[test]
fn restarts_of_both_ends_go_on_in_the_same_playlist() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    if film(directory).is_none() {
        return;
    }
    let mut receiver = Receiver::at("127.0.0.1:0", directory, &[&HLS[..], &["--keep"]].concat());
    // The same time stamps again.
    sends(directory, &receiver);
    sends(directory, &receiver);
    wait_long_until("five segments", || playlist(directory).matches("#EXTINF").count() >= 5);
    let before = playlist(directory);
    assert_eq!(before.matches("#EXT-X-DISCONTINUITY\n").count(), 1, "{before}");
    assert!(!before.contains("ENDLIST"), "{before}");
    receiver.interrupted();
    fs::write(directory.join("hls/live-77.ts"), "of a run that was killed").unwrap();
    let receiver = Receiver::at("127.0.0.1:0", directory, &HLS);
    assert!(!directory.join("hls/live-77.ts").exists());
    sends(directory, &receiver);
    receiver.ended_well();
    let after = playlist(directory);
    assert!(after.starts_with(before.rsplit_once("#EXT-X-PROGRAM").unwrap().0), "{before}{after}");
    let numbers: Vec<u64> = after
        .lines()
        .filter_map(|line| line.strip_prefix("live-")?.strip_suffix(".ts")?.parse().ok())
        .collect();
    assert!(numbers.len() >= 8 && numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
    assert_eq!(after.matches("#EXT-X-DISCONTINUITY\n").count(), 2, "{after}");
}

#[test]
fn old_segments_go_and_two_receivers_do_not_share_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    if film(directory).is_none() {
        return;
    }
    let options = [&HLS[..], &["--keep", "--hls-window", "3s"]].concat();
    let receiver = Receiver::at("127.0.0.1:0", directory, &options);
    let second = anabranch()
        .current_dir(directory)
        .args(["receive", "--listen", "127.0.0.1:0", "--identity", "none", "--hls", "hls"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = ends_with(&second, 1);
    assert!(said.contains("another program writes there"), "{said}");
    for _ in 0..5 {
        sends(directory, &receiver);
    }
    wait_long_until("the end of the last film", || playlist(directory).contains("live-13.ts"));
    let text = playlist(directory);
    assert!(text.matches("#EXTINF").count() <= 5, "{text}");
    let files = fs::read_dir(directory.join("hls")).unwrap().count();
    assert!(files <= 12, "{files} files");
    assert!(!directory.join("hls/live-0.ts").exists() && !text.contains("ENDLIST"));
}

/// Plays, and tells in the server's log how far it has come and how many pictures were shown.
const PAGE: &str = r#"<video muted autoplay></video><script src="hls.js"></script><script>
const video = document.querySelector("video");
const say = text => fetch("said/" + text);
// The time of day of a moment of the media comes from the playlist's EXT-X-PROGRAM-DATE-TIME.
let began, date;
video.ontimeupdate = () => {
    began ??= video.currentTime;
    const { totalVideoFrames } = video.getVideoPlaybackQuality();
    say(`at-${Math.floor(video.currentTime - began)}-height-${video.videoHeight}-shown-${totalVideoFrames}`);
    if (hls.playingDate) date ??= hls.playingDate - video.currentTime * 1000;
    if (date) say(`behind-${Math.floor((Date.now() - date) / 1000 - video.currentTime)}-s`);
};
video.onerror = () => say("error-" + video.error.message);
const hls = new Hls();
hls.on(Hls.Events.ERROR, (_, it) => { if (it.fatal) say("error-" + it.details); });
hls.loadSource("live.m3u8");
hls.attachMedia(video);
</script>"#;

/// Serves the directory with the page, and tells the log.
fn serves(directory: &Path, library: &Path) -> (Server, PathBuf) {
    let log = directory.join("access.log");
    let server = Server::start(&directory.join("hls"), &["--access-log", log.to_str().unwrap()]);
    fs::copy(library, directory.join("hls/hls.js")).unwrap();
    fs::write(directory.join("hls/page.html"), PAGE).unwrap();
    (server, log)
}

/// A page plays on, over the place where the sender begins again. hls.js comes from a file that is told (npm's
/// package of that name).
#[test]
fn a_page_with_hls_js_plays_it_in_chromium() {
    let Some(library) = std::env::var_os("ANABRANCH_HLS_JS") else {
        return anabranch_testkit::skipped("no hls.js: ANABRANCH_HLS_JS names no file");
    };
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    if film(directory).is_none() {
        return;
    }
    let receiver = Receiver::at("127.0.0.1:0", directory, &[&HLS[..], &["--keep"]].concat());
    let (server, log) = serves(directory, Path::new(&library));
    sends(directory, &receiver);
    let Some(_browser) = Browser::open(&format!("{}page.html", server.url)) else { return };
    // Films of three seconds, of which each begins at the same time stamps.
    let said = || fs::read_to_string(&log).unwrap_or_default();
    wait_long_until("five seconds of pictures", || {
        sends(directory, &receiver);
        said().contains("/said/at-5-height-240-shown-")
    });
    assert!(!said().contains("/said/error"), "{}", said());
}

/// With parts a page is less than three seconds behind what comes in; three segments would be six.
#[test]
fn with_parts_a_page_in_chromium_is_close_to_the_stream() {
    let Some(library) = std::env::var_os("ANABRANCH_HLS_JS") else {
        return anabranch_testkit::skipped("no hls.js: ANABRANCH_HLS_JS names no file");
    };
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let options = ["-t", "60", "-g", "50", "-keyint_min", "50", "-sc_threshold", "0", "-bf", "0"];
    if film_with(directory, &options).is_none() {
        return;
    }
    let receiver = Receiver::at("127.0.0.1:0", directory, &["--hls", "hls", "--hls-part", "300ms", "--keep"]);
    let (server, log) = serves(directory, Path::new(&library));
    let options = ["--input", "film.ts", "--token", TOKEN, "--latency", "500ms"];
    let mut sender = send(directory, receiver.address, &receiver.fingerprint, &options).spawn().unwrap();
    wait_long_until("four segments", || playlist(directory).contains("live-3.ts"));
    let said = || fs::read_to_string(&log).unwrap_or_default();
    if let Some(_browser) = Browser::open(&format!("{}page.html", server.url)) {
        wait_long_until("five seconds of pictures", || said().contains("/said/at-5-height-240-shown-"));
        wait_long_until("less than three seconds behind", || {
            ["0", "1", "2"].iter().any(|seconds| said().contains(&format!("/said/behind-{seconds}-s")))
        });
    }
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert!(!said().contains("/said/error"), "{}", said());
}
