//! What can go wrong with `anabranch send` and `anabranch receive`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::live::{Faults, Receiver, Relay, TOKEN, film, send, summary};
use common::{anabranch, ends_with, sha256, text};

#[test]
fn a_receiver_lets_nobody_in_without_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let mut receiver = Receiver::start(directory.path(), &[]);
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &["--token", "wrong"])
        .output()
        .unwrap();
    let said = ends_with(&sent, 1);
    assert!(said.contains("refuses: the token is wrong"), "{said}");
    receiver.says("was refused: the token is wrong");
}

#[test]
fn a_sender_sends_nothing_to_another_receiver() {
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(directory.path(), &[]);
    let sent = send(directory.path(), receiver.address, &"0".repeat(64), &[]).output().unwrap();
    let said = ends_with(&sent, 1);
    assert!(said.contains("not trusted") && said.contains("--fingerprint"), "{said}");
}

#[test]
fn a_sender_without_a_receiver_says_so() {
    let directory = tempfile::tempdir().unwrap();
    // Bound, so that nobody else is there, and never read.
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sent = send(directory.path(), nobody.local_addr().unwrap(), &"0".repeat(64), &[]).output().unwrap();
    let said = ends_with(&sent, 1);
    assert!(said.contains("no receiver answers") && said.contains("anabranch receive"), "{said}");
    assert!(said.contains("nothing was sent") && !said.contains("0 connections"), "{said}");
    assert_eq!(summary(&directory.path().join("send.jsonl"))["packets"], 0);
}

#[test]
fn a_second_sender_is_refused_and_disturbs_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let Some(film) = film(directory.path()) else { return };
    let receiver = Receiver::start(directory.path(), &[]);
    let options = ["--input", "film.ts", "--token", TOKEN];
    let mut first =
        send(directory.path(), receiver.address, &receiver.fingerprint, &options).spawn().unwrap();
    common::wait_until("the first sender", || {
        fs::read_to_string(directory.path().join("receive.jsonl")).is_ok_and(|text| text.contains(" sends"))
    });
    let second = anabranch()
        .current_dir(directory.path())
        .args(["send", "--to", &receiver.address.to_string(), "--fingerprint", &receiver.fingerprint])
        .args(options)
        .output()
        .unwrap();
    let said = ends_with(&second, 1);
    assert!(said.contains("another sender is here"), "{said}");
    assert!(first.wait().unwrap().success());
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&film));
}

/// To an address that is not known to be that of the one who asks goes no more than three times what came
/// (RFC 9000, section 8.1). Few are answered with more than a Retry, which is shorter than what asks.
#[test]
fn a_flood_of_new_connections_is_not_amplified() {
    let directory = tempfile::tempdir().unwrap();
    let Some(film) = film(directory.path()) else { return };
    let receiver = Receiver::start(directory.path(), &[]);
    // The first datagram of a real sender, with other connection identifiers each time: a version that is
    // known, so that it looks like the beginning of a handshake.
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut asking =
        send(directory.path(), listener.local_addr().unwrap(), &receiver.fingerprint, &[]).spawn().unwrap();
    let mut initial = vec![0; 2000];
    let (length, _) = listener.recv_from(&mut initial).unwrap();
    asking.kill().unwrap();
    asking.wait().unwrap();
    initial.truncate(length);
    let flood = UdpSocket::bind("127.0.0.1:0").unwrap();
    flood.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let (mut sent, mut came, mut buffer) = (0, 0, vec![0; 2000]);
    let mut listen = |came: &mut usize| {
        while let Ok(length) = flood.recv(&mut buffer) {
            *came += length;
        }
    };
    let before = receiver.memory();
    for number in 0..500u32 {
        let mut datagram = initial.clone();
        // Of the source's identifier only: what protects the first packet comes from the other.
        let source = 6 + usize::from(datagram[5]) + 1;
        if datagram[source - 1] >= 4 {
            datagram[source..source + 4].copy_from_slice(&number.to_be_bytes());
        }
        flood.send_to(&datagram, receiver.address).unwrap();
        flood.send_to(&number.to_be_bytes().repeat(50), receiver.address).unwrap();
        sent += datagram.len() + 200;
        listen(&mut came);
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(500) {
        listen(&mut came);
    }
    // Less than a page for each that asked.
    let grown = receiver.memory().saturating_sub(before);
    assert!(grown < 500 * 4096, "{grown} bytes more");
    assert!(came > 0 && came <= 3 * sent, "{came} bytes back for {sent}");
    assert!(
        came <= sent,
        "all but a few answers before validation are Retries, shorter than what asks: {came} for {sent}"
    );
    let options = ["--input", "film.ts", "--token", TOKEN];
    let ended = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&ended, 0);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&film));
}

#[test]
fn parity_that_cannot_be_is_told() {
    for code in ["50,61", "50,50", "400,100", "61", "61,0", "61,50,3", ""] {
        let sent = anabranch()
            .args(["send", "--to", "127.0.0.1:9", "--fec", code, "--fingerprint", &"0".repeat(64)])
            .args(["--input", "film.ts"])
            .output()
            .unwrap();
        let said = ends_with(&sent, 2);
        assert!(said.contains("61,50") && said.contains("--fec"), "{code}: {said}");
    }
}

#[test]
fn an_input_that_tells_no_rate_is_told() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("noise"), common::film(5000, 1)).unwrap();
    let receiver = Receiver::start(directory.path(), &[]);
    let options = ["--input", "noise", "--token", TOKEN];
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    let said = ends_with(&sent, 2);
    assert!(said.contains("--rate"), "{said}");
    // A sender that gives up says so to the receiver, which lets the next one in at once.
    let options = ["--input", "missing", "--token", TOKEN];
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    assert!(text(&sent.stderr).contains("cannot read missing"), "{}", text(&sent.stderr));
    let options = ["--input", "noise", "--token", TOKEN, "--rate", "2M"];
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&sent, 0);
    receiver.ended_well();
    assert_eq!(fs::read(directory.path().join("got.ts")).unwrap(), common::film(5000, 1));
}

/// Each datagram a second time later, and noise of its length after each: nothing of it comes out, and
/// nothing is missing.
#[test]
fn replays_and_noise_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let Some(film) = film(directory.path()) else { return };
    let receiver = Receiver::start(directory.path(), &[]);
    let relay = Relay::start(receiver.address, Faults { replays: true, ..Faults::default() });
    let options = ["--input", "film.ts", "--token", TOKEN, "--fec", "20,10"];
    let sent = send(directory.path(), relay.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&sent, 0);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&film));
    let received = summary(&directory.path().join("receive.jsonl"));
    // QUIC takes a packet once (RFC 9000, section 12.3), so that none comes to the stream again.
    assert_eq!(
        (&received["duplicate"], &received["repeated_datagrams"]),
        (&0.into(), &0.into()),
        "{received}"
    );
}

#[test]
fn a_path_of_short_packets_is_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let Some(film) = film(directory.path()) else { return };
    let receiver = Receiver::start(directory.path(), &[]);
    let relay = Relay::start(receiver.address, Faults { longest: Some(1300), ..Faults::default() });
    let options = ["--input", "film.ts", "--token", TOKEN];
    let sent = send(directory.path(), relay.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&sent, 0);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&film));
}

/// A network that is gone for longer than a connection lives: the sender connects again, has its place again,
/// and what comes then is in order.
#[test]
fn a_sender_comes_back_after_an_outage() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = common::film(3_200_000, 9);
    fs::write(directory.path().join("noise"), &bytes).unwrap();
    let mut receiver = Receiver::start(directory.path(), &[]);
    let relay = Relay::start(receiver.address, Faults::default());
    let options = ["--input", "noise", "--rate", "600k", "--token", TOKEN];
    let mut sender = send(directory.path(), relay.address, &receiver.fingerprint, &options).spawn().unwrap();
    receiver.says(" sends,");
    std::thread::sleep(Duration::from_secs(2));
    relay.is_down.store(true, Ordering::Relaxed);
    receiver.says("is gone");
    relay.is_down.store(false, Ordering::Relaxed);
    assert!(sender.wait().unwrap().success());
    receiver.ended_well();
    let got = fs::read(directory.path().join("got.ts")).unwrap();
    assert!(got.len() < bytes.len() && bytes.starts_with(&got[..100_000]));
    assert!(bytes.ends_with(&got[got.len() - 200_000..]), "the end has not come in order");
    let sent = summary(&directory.path().join("send.jsonl"));
    assert!(sent["dropped"].as_u64() > Some(0), "{sent}");
}

#[test]
fn a_receiver_that_starts_again_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .current_dir(directory.path())
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=receiver", "-keyout", "key.pem", "-out", "cert.pem"])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        anabranch_testkit::skipped("no openssl that makes certificates");
        return;
    }
    let bytes = common::film(1_000_000, 21);
    fs::write(directory.path().join("noise"), &bytes).unwrap();
    let certified = ["--cert", "cert.pem", "--key", "key.pem"];
    let mut first = Receiver::start(directory.path(), &certified);
    let (address, fingerprint) = (first.address, first.fingerprint.clone());
    let options = ["--input", "noise", "--rate", "800k", "--token", TOKEN];
    let mut sender = send(directory.path(), address, &fingerprint, &options).spawn().unwrap();
    first.says(" sends,");
    std::thread::sleep(Duration::from_secs(1));
    // Killed, without a word to the sender.
    drop(first);
    let options = [&["--output", "second.ts"][..], &certified].concat();
    let second = Receiver::at(&address.to_string(), directory.path(), &options);
    assert!(sender.wait().unwrap().success());
    second.ended_well();
    let got = fs::read(directory.path().join("second.ts")).unwrap();
    assert!(got.len() > 50_000 && bytes.ends_with(&got), "{} bytes", got.len());
    // The new one says that it does not know the connection: nobody waits until it is dead. Ten seconds of
    // 800 kbit/s were to come.
    assert!(bytes.len() - got.len() < 450_000, "{} of {} bytes", got.len(), bytes.len());
}

/// A sender that was killed does not hold its place against the one that comes in its stead.
#[test]
fn a_sender_that_starts_again_is_let_in_again() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = common::film(600_000, 22);
    fs::write(directory.path().join("noise"), &bytes).unwrap();
    let mut receiver = Receiver::start(directory.path(), &["--keep"]);
    let options = ["--input", "noise", "--rate", "800k", "--token", TOKEN];
    let (address, fingerprint) = (receiver.address, receiver.fingerprint.clone());
    let start = || send(directory.path(), address, &fingerprint, &options).spawn().unwrap();
    let mut first = start();
    receiver.says(" sends,");
    first.kill().unwrap();
    first.wait().unwrap();
    let begins = Instant::now();
    let mut second = start();
    receiver.says(" sends,");
    // One of its attempts comes when nothing was heard for a second.
    assert!(begins.elapsed() < Duration::from_secs(5), "{:?}", begins.elapsed());
    assert!(second.wait().unwrap().success());
    common::wait_until("the rest", || {
        fs::read(directory.path().join("got.ts")).is_ok_and(|got| got.ends_with(&bytes[500_000..]))
    });
}

#[test]
fn a_transport_stream_out_of_sync_is_put_right() {
    let directory = tempfile::tempdir().unwrap();
    let Some(film) = film(directory.path()) else { return };
    let middle = film.len() / 188 / 2 * 188;
    // In front half a packet, and noise between two packets.
    let broken = [&film[94..188], &film[188..middle], &[0; 100], &film[middle..]].concat();
    fs::write(directory.path().join("broken.ts"), broken).unwrap();
    let receiver = Receiver::start(directory.path(), &[]);
    let options = ["--input", "broken.ts", "--token", TOKEN];
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    let said = ends_with(&sent, 0);
    assert!(said.contains("194 B of the input") && said.contains("no whole packets"), "{said}");
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&film[188..]));
}
