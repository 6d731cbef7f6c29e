//! A path that changes under a live stream: shorter datagrams, another address, an interface that goes and
//! comes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use common::live::{Faults, Receiver, Relay, TOKEN, send, summary};
use common::{film, sha256};

/// Packets of 1316 bytes a second at the rate of these streams.
const PACKETS: u64 = 57;

/// A stream of ten seconds, to which something happens after three.
fn stream(options: &[&str], happens: impl FnOnce(&mut Relay)) -> (Value, Value, Vec<u8>, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let bytes = film(750_000, 9);
    fs::write(directory.path().join("noise"), &bytes).unwrap();
    let mut receiver = Receiver::start(directory.path(), &[]);
    let mut relay = Relay::start(receiver.address, Faults::default());
    let mut sender = start(directory.path(), &relay, &receiver, options);
    receiver.says(" sends,");
    std::thread::sleep(Duration::from_secs(3));
    happens(&mut relay);
    assert!(sender.wait().unwrap().success());
    receiver.ended_well();
    let got = fs::read(directory.path().join("got.ts")).unwrap();
    let read = |name: &str| summary(&directory.path().join(name));
    (read("send.jsonl"), read("receive.jsonl"), bytes, got)
}

fn start(directory: &Path, relay: &Relay, receiver: &Receiver, options: &[&str]) -> Child {
    let mut all = vec!["--input", "noise", "--rate", "600k", "--token", TOKEN];
    all.extend(options);
    send(directory, relay.address, &receiver.fingerprint, &all).spawn().unwrap()
}

/// QUIC takes a path for one that carries less after three bursts of losses (RFC 8899): of fifty streams one waits up
/// to four seconds for the third. So most of three have to be quicker.
#[test]
fn a_path_that_carries_only_shorter_datagrams_any_more_costs_less_than_two_seconds() {
    let gone = || {
        let (sent, received, bytes, got) = stream(&[], |relay| relay.longest.store(1300, Ordering::Relaxed));
        let gone = sent["dropped"].as_u64().unwrap() + received["lost"].as_u64().unwrap();
        assert!(gone > 0 && gone < 5 * PACKETS, "{gone} gone: {sent} {received}");
        assert!(bytes.starts_with(&got[..100_000]) && bytes.ends_with(&got[got.len() - 100_000..]));
        gone
    };
    let mut gone: Vec<u64> = std::thread::scope(|scope| {
        let streams: Vec<_> = (0..3).map(|_| scope.spawn(gone)).collect();
        streams.into_iter().map(|stream| stream.join().unwrap()).collect()
    });
    gone.sort_unstable();
    assert!(gone[1] < 2 * PACKETS, "{gone:?} gone");
}

#[test]
fn datagrams_carry_whole_packets_where_the_path_does() {
    let (sent, received, bytes, got) = stream(&[], |_| {});
    assert_eq!((sha256(&got), &received["lost"]), (sha256(&bytes), &0.into()));
    // A few at the beginning are shorter.
    let least = bytes.len() as u64 / 1316;
    assert!(sent["packets"].as_u64().unwrap() < least + 40, "{sent}");
}

#[test]
fn a_new_address_of_the_sender_costs_nothing() {
    let (sent, received, bytes, got) =
        stream(&["--latency", "2s"], |relay| relay.moves.store(true, Ordering::Relaxed));
    assert_eq!((&sent["dropped"], &received["lost"]), (&0.into(), &0.into()), "{sent} {received}");
    assert_eq!(sha256(&got), sha256(&bytes));
}
