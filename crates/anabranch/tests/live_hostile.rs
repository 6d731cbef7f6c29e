//! What no program of ours sends, from an end that is let in: it is ignored, nothing panics, and no memory
//! grows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod live_support;

use std::fs;
use std::time::Duration;

use anabranch_protocol::live::wire::{Datagram, Header, RateReport, Report, encode_report};
use anabranch_units::Rate;

use common::live::{Receiver, TOKEN, summary};
use common::{ends_with, sha256};
use live_support::{RawReceiver, RawSender, certify};

/// Bytes of every length and kind that are no datagram of the protocol, always the same ones.
fn noise(number: u64) -> Vec<u8> {
    let mut bytes = common::film(1 + number as usize * 37 % 1300, number + 1);
    // A third of them is of a kind that there is.
    if number.is_multiple_of(3) {
        bytes[0] = (number / 3 % 256) as u8;
    }
    // What is one by chance says something.
    if Datagram::decode(&bytes).is_ok() {
        bytes[0] = 0;
    }
    bytes
}

/// A receiver keeps no more than it may: 64 thousand packets would be 86 MB.
const MOST_MEMORY: u64 = 32 << 20;

#[test]
fn a_sender_that_sends_noise_between_its_packets_disturbs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let options = [&["--latency", "1s"][..], &certify(directory.path())].concat();
    let receiver = Receiver::start(directory.path(), &options);
    let mut sender = RawSender::connect(receiver.address, directory.path());
    sender.greet(Duration::from_secs(1));
    let before = receiver.memory();
    let mut expected = Vec::new();
    for number in 0..500u32 {
        for noisy in 0..20 {
            sender.datagram(noise(u64::from(number) * 20 + noisy));
        }
        // Reports are for senders.
        sender.datagram(encode_report(&Report::default()));
        sender.media(number, number * 1000, &number.to_be_bytes());
        expected.extend(number.to_be_bytes());
        std::thread::sleep(Duration::from_millis(1));
    }
    let grown = receiver.memory().saturating_sub(before);
    assert!(grown < MOST_MEMORY, "{grown} bytes more");
    sender.end(500);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&expected));
}

#[test]
fn a_sender_that_speaks_another_language_is_refused_and_told_why() {
    let directory = tempfile::tempdir().unwrap();
    let certified = certify(directory.path());
    let mut receiver = Receiver::start(directory.path(), &certified);
    for greeting in [&[0xff, 0xff, 1][..], &[0, 1, 9], &[0, 3, 1, 2, 3]] {
        let mut sender = RawSender::connect(receiver.address, directory.path());
        sender.say(greeting);
        let (code, why) = sender.closed();
        assert_eq!((code, why.as_str()), (3, "it does not speak this version of the protocol"));
        receiver.says("was refused: it does not speak this version");
    }
}

/// Noise, reports of what was never sent, and rates that cannot be: the sender sends its stream and ends.
#[test]
fn a_receiver_that_answers_with_noise_stops_no_sender() {
    let directory = tempfile::tempdir().unwrap();
    certify(directory.path());
    let receiver = RawReceiver::start(directory.path());
    let bytes = common::film(200_000, 3);
    fs::write(directory.path().join("noise"), &bytes).unwrap();
    let mut command = common::anabranch();
    let to = format!("localhost:{}", receiver.address.port());
    command
        .current_dir(directory.path())
        .args(["send", "--to", &to, "--cacert", "cert.pem", "--token", TOKEN]);
    command.args(["--input", "noise", "--rate", "800k", "--stats", "send.jsonl"]);
    let (sent, came) = std::thread::scope(|scope| {
        let sender = scope.spawn(move || command.output().unwrap());
        let came = receiver.serve(|number, datagram| {
            let Ok(Datagram::Data(Header { timestamp, .. }, _)) = Datagram::decode(datagram) else {
                panic!("the sender sends {datagram:?}")
            };
            let rate = |timestamp, receive_rate, loss_event_rate| {
                Some(RateReport { timestamp, delay: Duration::ZERO.into(), receive_rate, loss_event_rate })
            };
            let honest = rate(timestamp, Rate::from_bps(2_000_000), 0.0);
            let ahead = [(u32::MAX, 9), (1 << 20, 500)];
            let reports = [
                Report { rate: honest, settled: 1 << 31, ..Report::default() },
                Report { rate: rate(timestamp.wrapping_add(1 << 30), Rate::MAX, 1.0), ..Report::default() },
                Report {
                    arrived: ahead.to_vec(),
                    settled: u32::MAX,
                    had: vec![255; 64],
                    ..Report::default()
                },
            ];
            reports.iter().map(encode_report).chain([noise(number)]).collect()
        });
        (sender.join().unwrap(), came)
    });
    let said = ends_with(&sent, 0);
    assert!(!said.contains("panicked"), "{said}");
    let sent = summary(&directory.path().join("send.jsonl"));
    assert!(came > 150 && sent["bytes"].as_u64() == Some(bytes.len() as u64), "{came} came of {sent}");
}
