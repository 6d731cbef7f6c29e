//! What `anabranch send` looks at before it begins, and what it says of whom it sends to.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Output;

use common::live::{Receiver, TOKEN, send};
use common::{ends_with, film, wait_until};

#[test]
fn a_sender_tells_that_another_receiver_answers_now() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("noise"), film(8_000_000, 3)).unwrap();
    let mut first = Receiver::start(directory.path(), &["--identity", "none"]);
    let (address, fingerprint) = (first.address, first.fingerprint.clone());
    let options = ["--input", "noise", "--rate", "1M", "--token", TOKEN];
    let said = directory.path().join("said");
    let mut command = send(directory.path(), address, &fingerprint, &options);
    let mut sender = command.stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
    let said = || fs::read_to_string(&said).unwrap();
    wait_until("a connection", || said().contains("connected to"));
    first.interrupted();
    drop(first);
    let second =
        Receiver::at(&address.to_string(), directory.path(), &["--output", "other", "--identity", "none"]);
    wait_until("what has become of it", || said().contains("; tries on\n"));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let said = said();
    assert!(said.contains("lost: the receiver was ended") && !said.contains("would fit"), "{said}");
    assert!(said.contains("another receiver answers") && said.contains(&second.fingerprint), "{said}");
}

/// A sender to where nobody is, which ends before that can matter.
fn to_nobody(directory: &Path, options: &[&str]) -> Output {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let fingerprint = "0".repeat(64);
    let sent = send(directory, nobody.local_addr().unwrap(), &fingerprint, options).output().unwrap();
    nobody.set_nonblocking(true).unwrap();
    assert!(nobody.recv(&mut [0; 2000]).is_err(), "the receiver was asked");
    sent
}

#[test]
fn what_is_wrong_with_an_input_is_told_before_a_receiver_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("noise"), film(5000, 1)).unwrap();
    fs::write(directory.path().join("empty"), "").unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = format!("udp://{}", taken.local_addr().unwrap());
    for (input, code, what) in [
        ("missing", 1, "cannot read missing"),
        (".", 1, "cannot read ."),
        ("noise", 2, "--rate"),
        ("empty", 2, "--rate"),
        (&taken, 1, taken.trim_start_matches("udp://")),
    ] {
        let sent = to_nobody(directory.path(), &["--input", input]);
        let said = ends_with(&sent, code);
        assert!(said.contains(what), "{input}: {said}");
    }
}

#[test]
fn a_sender_says_whom_it_waits_for() {
    let directory = tempfile::tempdir().unwrap();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = directory.path().join("said");
    let to = nobody.local_addr().unwrap();
    let mut command = send(directory.path(), to, &"0".repeat(64), &[]);
    let mut sender = command.stderr(fs::File::create(&path).unwrap()).spawn().unwrap();
    wait_until("a word", || fs::read_to_string(&path).unwrap().contains(&format!("connects to {to}")));
    sender.kill().unwrap();
    sender.wait().unwrap();
}

#[test]
fn a_link_with_several_connections_is_told_of_once() {
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(directory.path(), &[]);
    fs::write(directory.path().join("noise"), film(100_000, 1)).unwrap();
    let options = ["--input", "noise", "--rate", "2M", "--token", TOKEN, "--interface", "lo"];
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    let said = ends_with(&sent, 0);
    assert_eq!(said.matches("connected to").count(), 1, "{said}");
    assert!(said.contains(" by lo"), "{said}");
    receiver.ended_well();
}
