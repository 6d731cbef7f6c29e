//! What `anabranch receive` keeps from one start to the next, and what it does not touch.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use common::live::{Receiver, TOKEN, send};
use common::{anabranch, ends_with, film, lines, text, wait_until};

/// Sends these bytes to a receiver.
fn send_bytes(directory: &Path, receiver: &Receiver, bytes: &[u8]) {
    fs::write(directory.join("noise"), bytes).unwrap();
    let options = ["--input", "noise", "--rate", "2M", "--token", TOKEN, "--latency", "3s"];
    let sent = send(directory, receiver.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&sent, 0);
}

#[test]
fn a_restarted_receiver_keeps_an_existing_recording() {
    let directory = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read(directory.path().join(name)).unwrap();
    let (first, second) = (film(50_000, 1), film(60_000, 2));
    let receiver = Receiver::start(directory.path(), &[]);
    send_bytes(directory.path(), &receiver, &first);
    receiver.ended_well();
    assert_eq!(read("got.ts"), first);
    // Nobody comes to this one.
    drop(Receiver::start(directory.path(), &[]));
    assert_eq!(read("got.ts"), first);
    let mut receiver = Receiver::start(directory.path(), &[]);
    send_bytes(directory.path(), &receiver, &second);
    assert!(receiver.began.contains("got.ts is kept: the stream goes to got-2.ts"), "{}", receiver.began);
    receiver.says("the stream has ended");
    receiver.ended_well();
    assert_eq!((read("got.ts"), read("got-2.ts")), (first, second));
}

#[test]
fn statistics_of_an_earlier_run_stay_in_their_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.jsonl");
    let run = || {
        let mut command = anabranch();
        command.args(["fetch", "--stats", "runs.jsonl", "-o", "film", "http://127.0.0.1:1/film"]);
        ends_with(&command.current_dir(directory.path()).output().unwrap(), 1);
    };
    run();
    // One that was killed.
    let mut before = fs::read_to_string(&path).unwrap();
    before.push_str("{\"event\":\"interval\",\"at");
    fs::write(&path, &before).unwrap();
    run();
    let all = fs::read_to_string(&path).unwrap();
    let after = lines(all.strip_prefix(&before).unwrap().strip_prefix('\n').unwrap());
    assert_eq!((&after[0]["event"], &after.last().unwrap()["event"]), (&"start".into(), &"summary".into()));
}

fn fingerprint(directory: &Path, options: &[&str]) -> String {
    Receiver::start(directory, options).fingerprint.clone()
}

#[test]
fn a_restarted_receiver_has_the_fingerprint_that_its_senders_were_given() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let first = fingerprint(here, &[]);
    assert_eq!(fingerprint(here, &[]), first);
    let kept = fingerprint(here, &["--identity", "mine.pem"]);
    assert!(kept != first && fingerprint(here, &["--identity", "mine.pem"]) == kept);
    assert_eq!(fs::metadata(here.join("mine.pem")).unwrap().mode() & 0o777, 0o600);
    let [one, other] = [(); 2].map(|()| fingerprint(here, &["--identity", "none"]));
    assert!(one != other && one != first);
    assert!(!here.join("none").exists());
}

#[test]
fn an_identity_that_others_know_is_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    fingerprint(directory.path(), &["--identity", "mine.pem"]);
    fs::set_permissions(directory.path().join("mine.pem"), PermissionsExt::from_mode(0o644)).unwrap();
    let receive = |identity: &str| {
        let mut command = anabranch();
        let options = ["receive", "--listen", "127.0.0.1:0", "--output", "got", "--identity", identity];
        ends_with(&command.current_dir(directory.path()).args(options).output().unwrap(), 1)
    };
    let said = receive("mine.pem");
    assert!(said.contains("mine.pem") && said.contains("chmod 600"), "{said}");
    assert!(receive("no/such/directory/mine.pem").contains("no/such/directory/mine.pem"));
}

/// A program without a place for its state goes on, and says what that means.
#[test]
fn a_receiver_that_can_keep_nothing_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (path, noted) = (directory.path().join("said"), directory.path().join("a file"));
    fs::write(&noted, "").unwrap();
    let mut command = anabranch();
    command.args(["receive", "--listen", "127.0.0.1:0", "--output", "/dev/null"]);
    command.env("XDG_STATE_HOME", &noted).stderr(fs::File::create(&path).unwrap());
    let mut child = command.spawn().unwrap();
    wait_until("its address", || fs::read_to_string(&path).unwrap().contains("listens at"));
    child.kill().unwrap();
    child.wait().unwrap();
    let said = fs::read_to_string(&path).unwrap();
    assert!(said.contains("a file/anabranch/receiver.pem") && said.contains("--identity FILE"), "{said}");
}

#[test]
fn a_sender_without_a_token_is_told_that_one_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(directory.path(), &[]);
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &[]).output().unwrap();
    let said = ends_with(&sent, 1);
    assert!(said.contains("a token is needed") && said.contains("--token-file"), "{said}");
}

#[test]
fn media_is_not_written_to_the_terminal_in_front_of_it() {
    // 'script' gives a program a terminal.
    let program = env!("CARGO_BIN_EXE_anabranch");
    let line = format!("{program} receive --listen 127.0.0.1:0");
    let mut command = Command::new("script");
    command.env("XDG_STATE_HOME", common::STATE);
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(Stdio::null());
    let Ok(output) = command.output() else {
        anabranch_testkit::skipped("no program 'script' that gives a terminal");
        return;
    };
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("terminal") && said.contains("--output"), "{said}");
}
