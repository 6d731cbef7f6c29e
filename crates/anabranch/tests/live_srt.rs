//! `anabranch send` and `anabranch receive` between peers of SRT: srt-live-transmit and ffmpeg.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod srt_support;

use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use common::live::{Receiver, TOKEN, send};
use common::{ends_with, sha256, wait_until};
use srt_support::{Place, Program, are_there, free_port, stream};

const SECRET: &str = "no-one-is-told-this";

/// From srt-live-transmit to srt-live-transmit. Who calls is the one that is not told so.
fn goes_through(ours: &str, theirs: &str) {
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (from, to, udp) = (free_port(), free_port(), free_port());
    let url = |port: u16, mode: &str, more: &str| format!("srt://127.0.0.1:{port}?mode={mode}{more}");
    let more = format!("&streamid=live/camera&passphrase={SECRET}&pbkeylen=32&latency=200");
    let mut receiver = Receiver::at("127.0.0.1:0", directory, &["--output", &url(to, ours, &more)]);
    let place = Place::new();
    let _viewer = Program::transmit(directory, "viewer", &url(to, theirs, &more), &place.url());
    receiver.says("gets the stream by SRT");
    let mut sender = Program::sends(directory, &receiver, &url(from, ours, &more));
    sender.says("waits for a stream");
    let udp_url = format!("udp://127.0.0.1:{udp}");
    let _camera = Program::transmit(directory, "camera", &udp_url, &url(from, theirs, &more));
    sender.says("sends by SRT");
    sender.says("connected to");
    place.gets(&stream(1), udp);
    assert_eq!(sender.ends(Signal::INT), Some(130));
    receiver.interrupted();
    let told =
        ["send.said", "send.jsonl", "receive.jsonl"].map(|name| fs::read_to_string(directory.join(name)));
    assert!(told.iter().all(|told| !told.as_ref().unwrap().contains(SECRET)), "{told:?}");
    assert!(!receiver.began.contains(SECRET));
}

#[test]
fn a_stream_of_peers_that_call_goes_through() {
    goes_through("listener", "caller");
}

#[test]
fn a_stream_of_peers_that_are_called_goes_through() {
    goes_through("caller", "listener");
}

#[test]
fn any_address_of_ipv6_can_be_listened_at() {
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    if UdpSocket::bind("[::]:0").is_err() {
        return anabranch_testkit::skipped("no IPv6");
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let receiver = Receiver::start(directory, &[]);
    let from = free_port();
    let sender = Program::sends(directory, &receiver, &format!("srt://[::]:{from}?mode=listener"));
    sender.says(&format!("waits for a stream at srt://[::]:{from}"));
    let nothing = format!("udp://127.0.0.1:{}", free_port());
    let _camera = Program::transmit(directory, "camera", &nothing, &format!("srt://[::1]:{from}"));
    sender.says("[::1]:");
    sender.says("sends by SRT");
}

/// RIST is spoken by librist's programs beside this one (docs/live.md).
#[test]
fn a_stream_of_rist_goes_through_by_udp() {
    if !are_there(&["ristsender", "ristreceiver"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let place = Place::new();
    let (camera, from, out) = (free_port(), free_port(), free_port());
    let (here, there) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let rist = |program: &str, name: &str, input: String, output: String| {
        let mut command = Command::new(program);
        command.args(["-s", SECRET, "-e", "128", "-i", &input, "-o", &output]).stdout(Stdio::null());
        Program::start(&mut command, directory.join(name))
    };
    let receiver = Receiver::at("127.0.0.1:0", directory, &["--output", &format!("udp://127.0.0.1:{out}")]);
    let sender = Program::sends(directory, &receiver, &format!("udp://127.0.0.1:{from}"));
    sender.says("connected to");
    let _programs = [
        rist("ristreceiver", "a", format!("rist://@{here}"), format!("udp://127.0.0.1:{from}")),
        rist("ristsender", "b", format!("udp://@127.0.0.1:{camera}"), format!("rist://{here}")),
        rist("ristreceiver", "c", format!("rist://@{there}"), place.url()),
        rist("ristsender", "d", format!("udp://@127.0.0.1:{out}"), format!("rist://{there}")),
    ];
    place.is_reached_from(camera);
    place.gets(&stream(3), camera);
}

/// What is in SRT's buffers when the stream ends is not thrown away, and every viewer has it.
#[test]
fn a_stream_that_ends_has_come_to_every_viewer() {
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let stream = stream(2);
    fs::write(directory.join("stream"), &stream).unwrap();
    let to = free_port();
    let output = format!("srt://127.0.0.1:{to}?mode=listener&latency=1000");
    let mut receiver = Receiver::at("127.0.0.1:0", directory, &["--output", &output]);
    let call = format!("srt://127.0.0.1:{to}");
    let viewers = ["one", "two"].map(|name| {
        let viewer = Program::transmit(directory, name, &call, "file://con");
        receiver.says("gets the stream by SRT");
        (viewer, name)
    });
    let options = ["--input", "stream", "--rate", "2M", "--token", TOKEN, "--latency", "3s"];
    ends_with(&send(directory, receiver.address, &receiver.fingerprint, &options).output().unwrap(), 0);
    receiver.ended_well();
    for (mut viewer, name) in viewers {
        // It has ended by itself, as it does when its peer has.
        viewer.child.wait().unwrap();
        assert_eq!(sha256(&fs::read(directory.join(name)).unwrap()), sha256(&stream), "{name}");
    }
}

#[test]
fn a_picture_of_ffmpeg_comes_by_srt() {
    if !are_there(&["ffmpeg", "ffprobe"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let from = free_port();
    let receiver = Receiver::start(directory, &[]);
    let mut sender =
        Program::sends(directory, &receiver, &format!("srt://:{from}?passphrase={SECRET}&streamid=camera"));
    sender.says("connected to");
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-t", "2"])
        .args(["-c:v", "libx264", "-tune", "zerolatency", "-b:v", "300k", "-f", "mpegts"])
        .arg(format!("srt://127.0.0.1:{from}?passphrase={SECRET}&streamid=camera"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let why = common::text(&made.stderr);
    if why.contains("Protocol not found") || why.contains("Unknown encoder") {
        return anabranch_testkit::skipped("an ffmpeg without SRT or x264");
    }
    sender.says("sends no more");
    assert_eq!(sender.ends(Signal::INT), Some(130), "{why}");
    let frames = || {
        let asked = Command::new("ffprobe")
            .args(["-v", "error", "-count_frames", "-select_streams", "v", "-show_entries"])
            .args(["stream=nb_read_frames", "-of", "default=nokey=1:noprint_wrappers=1"])
            .arg(directory.join("got.ts"))
            .output();
        common::text(&asked.unwrap().stdout)
    };
    wait_until("every frame", || frames().lines().next() == Some("50"));
}

#[test]
fn a_wrong_passphrase_is_told_and_not_said() {
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    const OTHER: &str = "and-nobody-this-one";
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let receiver = Receiver::start(directory, &[]);
    let (from, to) = (free_port(), free_port());
    let nothing = format!("udp://127.0.0.1:{}", free_port());
    // A peer that is called.
    let there = format!("srt://127.0.0.1:{from}?mode=listener&passphrase={OTHER}");
    let _camera = Program::transmit(directory, "camera", &nothing, &there);
    let mut sender =
        Program::sends(directory, &receiver, &format!("srt://127.0.0.1:{from}?passphrase={SECRET}"));
    sender.says("the passphrase is another one there; tries on");
    assert_eq!(sender.ends(Signal::INT), Some(130));
    let said = sender.said();
    assert!(!said.contains(SECRET) && !said.contains(OTHER), "{said}");
    // One that calls, and one whose stream id is not the right one.
    let sender = Program::sends(
        directory,
        &receiver,
        &format!("srt://127.0.0.1:{to}?mode=listener&passphrase={SECRET}&streamid=camera"),
    );
    sender.says("waits for a stream");
    for (parameters, told) in [
        (format!("passphrase={OTHER}&streamid=camera"), "most likely on a passphrase"),
        ("streamid=camera".into(), "most likely on a passphrase"),
        (format!("passphrase={SECRET}&streamid=studio"), "another stream id"),
    ] {
        let before = sender.said().matches(told).count();
        let call = format!("srt://127.0.0.1:{to}?{parameters}");
        // Refusals that follow each other within a second are told once.
        wait_until(told, || {
            let _camera = Program::transmit(directory, "camera", &nothing, &call);
            std::thread::sleep(Duration::from_secs(1));
            sender.said().matches(told).count() > before
        });
    }
    let said = sender.said();
    assert!(!said.contains(SECRET) && !said.contains(OTHER) && !said.contains("studio"), "{said}");
    assert!(!said.contains("sends by SRT"), "{said}");
}

#[test]
fn a_peer_that_comes_back_is_let_in_again_and_called_again() {
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (from, to) = (free_port(), free_port());
    let mut receiver =
        Receiver::at("127.0.0.1:0", directory, &["--output", &format!("srt://127.0.0.1:{to}")]);
    let sender = Program::sends(directory, &receiver, &format!("srt://127.0.0.1:{from}?mode=listener"));
    sender.says("waits for a stream");
    sender.says("connected to");
    receiver.says("nothing answers");
    for round in 1..3 {
        let (there, place) = (format!("srt://127.0.0.1:{to}?mode=listener"), Place::new());
        let mut viewer = Program::transmit(directory, "viewer", &there, &place.url());
        receiver.says("gets the stream by SRT");
        let udp = free_port();
        let mut camera = Program::transmit(
            directory,
            "camera",
            &format!("udp://127.0.0.1:{udp}"),
            &format!("srt://127.0.0.1:{from}"),
        );
        wait_until("a camera", || sender.said().matches("sends by SRT").count() == round);
        place.gets(&stream(round as u64), udp);
        camera.ends(Signal::TERM);
        wait_until("its end", || sender.said().matches("sends no more").count() == round);
        viewer.ends(Signal::TERM);
        receiver.says("is gone");
    }
}

#[test]
fn who_calls_in_vain_ends_at_once_when_asked_to() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("srt://{}", nobody.local_addr().unwrap());
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    let mut receiver = Receiver::at("127.0.0.1:0", directory, &["--output", &url]);
    let mut sender = Program::sends(directory, &receiver, &url);
    sender.says("waits for a stream");
    nobody.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert!(nobody.recv(&mut [0; 2000]).is_ok(), "nobody was called");
    assert_eq!(sender.ends(Signal::INT), Some(130));
    receiver.interrupted();
}

/// libsrt 1.5.1 waits for ever when a listener is called that it closes while it ends.
#[test]
fn a_listener_that_is_being_called_ends_when_asked_to() {
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let receiver = Receiver::start(directory, &[]);
    let from = free_port();
    let _cameras = [(); 4].map(|()| {
        let nothing = format!("udp://127.0.0.1:{}", free_port());
        let mut command = Command::new("srt-live-transmit");
        // It calls again and again.
        command.args(["-q", &nothing, &format!("srt://127.0.0.1:{from}")]).stdout(Stdio::null());
        Program::start(&mut command, directory.join("cameras.said"))
    });
    for _ in 0..8 {
        let mut sender = Program::sends(directory, &receiver, &format!("srt://:{from}?mode=listener"));
        sender.says("sends by SRT");
        assert_eq!(sender.ends(Signal::INT), Some(130));
    }
}

/// One whose end waits for ever, as that of version 1.5.1 has been seen to.
const STUCK_LIBRARY: &str = "#include <unistd.h>\nint srt_cleanup(void) { for (;;) pause(); }\n\
                             __attribute__((destructor)) static void end(void) { srt_cleanup(); }\n";

#[test]
fn a_library_that_hangs_does_not_keep_the_program() {
    if !are_there(&["srt-live-transmit"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let [source, library] = ["stuck.c", "stuck.so"].map(|name| directory.join(name));
    fs::write(&source, STUCK_LIBRARY).unwrap();
    let made = ["libsrt.so.1.5", "libsrt-gnutls.so.1.5"].iter().any(|name| {
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).args([&library, &source]);
        compiler.arg(format!("-l:{name}")).output().is_ok_and(|output| output.status.success())
    });
    if !made {
        anabranch_testkit::skipped(format_args!("no compiler of C, or no libsrt for it"));
        return;
    }
    let receiver = Receiver::start(directory, &[]);
    for signals in [1, 2] {
        let url = format!("srt://:{}?mode=listener", free_port());
        let options = ["--input", &url, "--token", TOKEN];
        let mut command = send(directory, receiver.address, &receiver.fingerprint, &options);
        command.env("ANABRANCH_SRT_LIBRARY", &library);
        let mut sender = Program::start(&mut command, directory.join("send.said"));
        sender.says("waits for a stream");
        for _ in 1..signals {
            common::kill(&sender.child, Signal::INT);
        }
        assert_eq!(sender.ends(Signal::INT), Some(130));
    }
}

#[test]
fn what_is_wrong_with_srt_is_told_before_a_receiver_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = format!("srt://{}?mode=listener", taken.local_addr().unwrap());
    let url = format!("srt://127.0.0.1:9?passphrase={SECRET}");
    let fingerprint = "0".repeat(64);
    let run = |input: &str, variable: (&str, &str)| {
        let options = ["--input", input];
        let to = "127.0.0.1:9".parse().unwrap();
        let mut command = send(directory.path(), to, &fingerprint, &options);
        command.env(variable.0, variable.1).output().unwrap()
    };
    let nothing = ("NOTHING", "");
    let typed = [
        (format!("{url}&latancy=1"), "streamid, passphrase, pbkeylen and latency"),
        (format!("srt:/host:9000?passphrase={SECRET}"), "srt://HOST:PORT"),
    ];
    for (input, told) in typed {
        let said = ends_with(&run(&input, nothing), 2);
        assert!(said.contains(told) && !said.contains(SECRET), "{said}");
    }
    let said = ends_with(&run(&url, ("ANABRANCH_SRT_LIBRARY", "/no/such/library.so")), 1);
    assert!(said.contains("apt install libsrt1.5-openssl") && said.contains("/no/such/library.so"), "{said}");
    if are_there(&["srt-live-transmit"]) {
        let said = ends_with(&run(&taken, nothing), 1);
        assert!(said.contains("cannot listen at srt://127.0.0.1:"), "{said}");
        let said = ends_with(&run("srt://127.0.0.1:9", ("ANABRANCH_SRT_PASSPHRASE", "short")), 2);
        assert!(said.contains("ANABRANCH_SRT_PASSPHRASE: a passphrase has 10 to 79 bytes"), "{said}");
    }
}
