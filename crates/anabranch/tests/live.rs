//! `anabranch send` and `anabranch receive` as their users see them: a film over a network that loses packets, and what can
//! go wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use common::{anabranch, ends_with, lines, sha256, text};

const TOKEN: &str = "open-sesame";

/// A film of three seconds that ffmpeg makes; `None` where there is none.
fn film(directory: &Path) -> Option<Vec<u8>> {
    let path = directory.join("film.ts");
    let made = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=320x240:rate=25",
            "-f",
            "lavfi",
            "-i",
            "sine",
        ])
        .args([
            "-t", "3", "-c:v", "libx264", "-b:v", "300k", "-maxrate", "300k", "-bufsize", "150k", "-c:a",
            "aac",
        ])
        .args(["-f", "mpegts"])
        .arg(&path)
        .stdin(Stdio::null())
        .status();
    match made {
        Ok(status) if status.success() => Some(fs::read(path).unwrap()),
        _ => {
            println!("SKIPPED: no ffmpeg that makes films");
            None
        }
    }
}

/// A receiver that runs; killed in the end.
struct Receiver {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
    address: SocketAddr,
    fingerprint: String,
}

impl Receiver {
    fn start(directory: &Path, options: &[&str]) -> Self {
        let mut child = anabranch()
            .current_dir(directory)
            .args(["receive", "--listen", "127.0.0.1:0", "--output", "got.ts", "--token", TOKEN])
            .args(["--stats", "receive.jsonl"])
            .args(options)
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listens at") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "the receiver has ended");
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = words[3].trim_end_matches(',').parse().unwrap();
        Self { child, said, address, fingerprint: words[5].to_owned() }
    }

    fn ended_well(mut self) {
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(directory: &Path, to: SocketAddr, fingerprint: &str, options: &[&str]) -> Command {
    let mut command = anabranch();
    command
        .current_dir(directory)
        .args(["send", "--to", &to.to_string(), "--fingerprint", fingerprint, "--stats", "send.jsonl"])
        .args(options)
        .stdin(Stdio::null());
    command
}

fn summary(path: &Path) -> Value {
    let last = lines(&fs::read_to_string(path).unwrap()).pop().unwrap();
    assert_eq!(last["event"], "summary");
    last
}

/// Forwards datagrams of UDP, and loses, repeats and swaps some of those to the receiver: always the same ones by number.
struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// The seed of what is lost is printed. The first datagrams, the handshake's, get through.
    fn start(to: SocketAddr, percent: u64) -> Self {
        const SEED: u64 = 7;
        println!("seed {SEED}, {percent} % lost");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let out = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        out.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (stop.clone(), lost.clone());
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut from, mut state, mut count) = (vec![0; 65536], None, SEED, 0);
            let mut held: Option<Vec<u8>> = None;
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, sender)) = socket.recv_from(&mut buffer) {
                    from = Some(sender);
                    count += 1;
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let dice = (state >> 33) % 100;
                    let datagram = &buffer[..length];
                    if count > 12 && dice < percent {
                        counted.fetch_add(1, Ordering::Relaxed);
                    } else if count > 12 && dice > 97 && held.is_none() {
                        held = Some(datagram.to_vec());
                    } else {
                        let _ = out.send_to(datagram, to);
                        if dice > 95 {
                            let _ = out.send_to(datagram, to);
                        }
                        if let Some(held) = held.take() {
                            let _ = out.send_to(&held, to);
                        }
                    }
                }
                while let (Ok((length, _)), Some(from)) = (out.recv_from(&mut buffer), from) {
                    let _ = socket.send_to(&buffer[..length], from);
                }
            }
        });
        Self { address, stop, lost, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The film goes through and is the same; answers with what both ends tell.
fn goes_through(percent: u64, options: &[&str]) -> Option<(Value, Value, u64)> {
    let directory = tempfile::tempdir().unwrap();
    let film = film(directory.path())?;
    let receiver = Receiver::start(directory.path(), &[]);
    let relay = Relay::start(receiver.address, percent);
    let mut all = vec!["--input", "film.ts", "--token", TOKEN, "--latency", "3s"];
    all.extend(options);
    let sent = send(directory.path(), relay.address, &receiver.fingerprint, &all).output().unwrap();
    ends_with(&sent, 0);
    receiver.ended_well();
    let received = summary(&directory.path().join("receive.jsonl"));
    let got = fs::read(directory.path().join("got.ts")).unwrap();
    let sent = summary(&directory.path().join("send.jsonl"));
    assert_eq!(sha256(&got), sha256(&film), "{received} {sent}");
    assert_eq!(received["lost"], 0);
    assert_eq!(received["bytes"].as_u64(), Some(film.len().try_into().unwrap()));
    Some((sent, received, relay.lost.load(Ordering::Relaxed)))
}

#[test]
fn a_film_arrives_as_it_is() {
    let Some((sent, received, lost)) = goes_through(0, &["--scheme", "tfrc"]) else { return };
    assert_eq!((lost, received["recovered_by_retransmission"].as_u64()), (0, Some(0)));
    assert!(sent["available_rate_bps"].as_u64() > Some(300_000), "{sent}");
}

#[test]
fn retransmission_alone_recovers_what_is_lost() {
    let Some((_, received, lost)) = goes_through(4, &[]) else { return };
    assert!(lost > 0 && received["recovered_by_retransmission"].as_u64() > Some(0), "{received}");
    assert_eq!(received["recovered_by_fec"], 0);
}

#[test]
fn parity_alone_recovers_what_is_lost() {
    let options = ["--retransmit", "off", "--fec", "20,10"];
    let Some((sent, received, lost)) = goes_through(4, &options) else { return };
    assert!(lost > 0 && received["recovered_by_fec"].as_u64() > Some(0), "{received}");
    assert_eq!(
        (sent["retransmitted"].as_u64(), received["recovered_by_retransmission"].as_u64()),
        (Some(0), Some(0))
    );
}

#[test]
fn every_scheme_carries_a_film_with_both() {
    for scheme in ["multfrc", "aio-tfrc", "auto"] {
        goes_through(4, &["--scheme", scheme, "--fec", "24,20"]);
    }
}

#[test]
fn a_receiver_lets_nobody_in_without_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let mut receiver = Receiver::start(directory.path(), &[]);
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &["--token", "wrong"])
        .output()
        .unwrap();
    let said = ends_with(&sent, 1);
    assert!(said.contains("refuses: the token is wrong"), "{said}");
    let mut line = String::new();
    while !line.contains("was refused: the token is wrong") {
        line.clear();
        assert_ne!(receiver.said.read_line(&mut line).unwrap(), 0);
    }
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
/// (RFC 9000, section 8.1): a Retry, which is shorter.
#[test]
fn a_flood_of_new_connections_is_not_amplified() {
    let directory = tempfile::tempdir().unwrap();
    let Some(film) = film(directory.path()) else { return };
    let receiver = Receiver::start(directory.path(), &[]);
    // The first datagram of a real sender, with other connection identifiers each time: a version that is known, so that
    // it looks like the beginning of a handshake.
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
    assert!(came > 0 && came <= 3 * sent, "{came} bytes back for {sent}");
    assert!(
        came <= sent,
        "an answer before validation is a Retry, shorter than what asks: {came} for {sent}"
    );
    let options = ["--input", "film.ts", "--token", TOKEN];
    let ended = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&ended, 0);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&film));
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

#[test]
fn any_bytes_go_through_a_pipe_at_a_rate() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = common::film(100_000, 3);
    fs::write(directory.path().join("noise"), &bytes).unwrap();
    let receiver = Receiver::start(directory.path(), &[]);
    let input = fs::File::open(directory.path().join("noise")).unwrap();
    let options = ["--input", "-", "--token", TOKEN, "--rate", "2M"];
    let mut command = send(directory.path(), receiver.address, &receiver.fingerprint, &options);
    ends_with(&command.stdin(input).output().unwrap(), 0);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&bytes));
}
