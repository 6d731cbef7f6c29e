//! `anabranch send --tell-rate`, and an encoder of GStreamer that follows it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

use rustix::process::Signal;
use serde_json::Value;

use common::live::{Faults, Receiver, Relay, TOKEN, film, send};
use common::{kill, lines, wait_long_until};

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of UDP that is free at the moment.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn programs_that_connect_are_told_the_rate_until_the_sender_ends() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    if film(directory).is_none() {
        return;
    }
    let receiver = Receiver::start(directory, &[]);
    // Of a sender that was killed.
    drop(UnixListener::bind(directory.join("rate")).unwrap());
    let options = ["--input", "film.ts", "--token", TOKEN, "--tell-rate", "unix:rate"];
    let mut sender = send(directory, receiver.address, &receiver.fingerprint, &options);
    let mut sender = Program(sender.stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(sender.0.stderr.take().unwrap()).lines();
    said.find(|line| line.as_ref().unwrap().contains("tells the rate at unix:rate")).unwrap().unwrap();
    let mut told = String::new();
    UnixStream::connect(directory.join("rate")).unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(sender.0.wait().unwrap().code(), Some(0));
    receiver.ended_well();
    let told = lines(&told);
    // The film has 300 kbit/s, and nothing is in its way.
    let fits = |line: &Value| line["fitting_rate_bps"].as_u64().unwrap();
    assert!(told.iter().map(fits).max() > Some(400_000), "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0]["at_s"].as_f64() < pair[1]["at_s"].as_f64()), "{told:?}");
    assert!(!directory.join("rate").exists());
}

#[test]
fn an_address_of_tcp_is_said_and_one_that_is_taken_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let start = |at: &str| {
        let options = ["--input", "udp://127.0.0.1:0", "--tell-rate", at];
        let mut command = send(directory, "127.0.0.1:9".parse().unwrap(), &"00".repeat(32), &options);
        let mut program = Program(command.stderr(Stdio::piped()).spawn().unwrap());
        let said = BufReader::new(program.0.stderr.take().unwrap()).lines().map(Result::unwrap);
        (program, said)
    };
    let (_program, mut said) = start("127.0.0.1:0");
    let line = said.find(|line| line.contains("tells the rate at")).unwrap();
    let address = line.split_whitespace().last().unwrap();
    let mut first = String::new();
    BufReader::new(TcpStream::connect(address).unwrap()).read_line(&mut first).unwrap();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&first["fitting_rate_bps"], &first["rtt_s"]), (&0.into(), &Value::Null));
    let (mut program, mut said) = start(address);
    assert!(said.any(|line| line.contains("cannot tell the rate at")));
    assert_eq!(program.0.wait().unwrap().code(), Some(1));
}

/// The controller of contrib/encoder, with Debian's GStreamer.
#[test]
fn an_encoder_of_gstreamer_follows_what_it_is_told() {
    const ELEMENTS: &str = "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; Gst.init(None); \
        assert all(Gst.ElementFactory.find(it) for it in ['x264enc', 'h264parse', 'mpegtsmux', 'voaacenc', 'videotestsrc'])";
    let has_gstreamer =
        Command::new("/usr/bin/python3").args(["-c", ELEMENTS]).stderr(Stdio::null()).status();
    if !has_gstreamer.is_ok_and(|status| status.success()) {
        return anabranch_testkit::skipped("no GStreamer with x264enc for Python (docs/live.md)");
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let receiver = Receiver::start(directory, &[]);
    let relay = Relay::start(receiver.address, Faults::default());
    let port = free_port().to_string();
    let input = format!("udp://127.0.0.1:{port}");
    let options = ["--input", &input, "--token", TOKEN, "--tell-rate", "unix:rate", "--latency", "2s"];
    let mut sender = send(directory, relay.address, &receiver.fingerprint, &options);
    let _sender = Program(sender.stderr(Stdio::null()).spawn().unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/encoder/follow.py");
    let mut encoder = Program(
        Command::new("/usr/bin/python3")
            .current_dir(directory)
            .args([script, "--rate-at", "unix:rate", "--to", &format!("127.0.0.1:{port}"), "--log", "log"])
            .args(["--begin", "400", "--least", "200", "--most", "1000"])
            .args(["--source", "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1"])
            .spawn()
            .unwrap(),
    );
    let log = directory.join("log");
    let set = || last_set(&log);
    wait_long_until("all that may be made", || set() == Some(1000));
    relay.is_down.store(true, Ordering::Relaxed);
    wait_long_until("the least, as nothing gets through", || set() == Some(200));
    relay.is_down.store(false, Ordering::Relaxed);
    wait_long_until("all that may be made, again", || set() == Some(1000));
    kill(&encoder.0, Signal::INT);
    assert_eq!(encoder.0.wait().unwrap().code(), Some(0));
}

/// What the encoder was set to last, kbit/s.
fn last_set(log: &Path) -> Option<u64> {
    let text = fs::read_to_string(log).ok()?;
    let whole = &text[..text.rfind('\n')?];
    serde_json::from_str::<Value>(whole.lines().last()?).unwrap()["set_kbps"].as_u64()
}
