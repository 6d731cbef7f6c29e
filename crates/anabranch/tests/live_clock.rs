//! Live media when a clock jumps: that of the film, and that of the sender as its datagrams tell it. No end
//! reads the wall clock for media.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod live_support;

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use common::live::{Receiver, TOKEN, film, send, summary};
use common::{kill, sha256};
use live_support::{RawSender, certify};

const PACKET: usize = 188;
/// Ticks of the clock in a second, and where it begins anew (ISO/IEC 13818-1, 2.4.3.5).
const SECOND: u64 = 27_000_000;
const WRAP: u64 = (1 << 33) * 300;
const HOUR: u64 = 3600 * SECOND;
/// No stall may be as long; a machine that does other things takes less.
const STALL: Duration = Duration::from_secs(10);

/// What comes out, and when.
fn collect() -> (SocketAddr, mpsc::Receiver<(Instant, Vec<u8>)>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (out, came) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 2000];
        while let Ok(length) = socket.recv(&mut buffer) {
            if out.send((Instant::now(), buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    (address, came)
}

/// The first `length` bytes that come out, and from the first to the last of them.
fn stream(came: &mpsc::Receiver<(Instant, Vec<u8>)>, length: usize) -> (Vec<u8>, Duration) {
    let (mut got, mut began) = (Vec::new(), None);
    loop {
        let (at, bytes) =
            came.recv_timeout(STALL).unwrap_or_else(|_| panic!("a stall behind {} bytes", got.len()));
        got.extend(bytes);
        let began = *began.get_or_insert(at);
        if got.len() >= length {
            return (got, at - began);
        }
    }
}

/// The film with a clock that begins anew in its first third, jumps back by 20 hours behind it, and ahead by
/// five in its last.
fn jumping(film: &[u8]) -> Vec<u8> {
    let mut film = film.to_vec();
    let packets = film.len() / PACKET;
    let (mut first, mut values) = (None, 0);
    for (number, packet) in film.chunks_exact_mut(PACKET).enumerate() {
        // An adaptation field with a clock (2.4.3.4).
        if packet[3] & 0x20 == 0 || packet[4] < 7 || packet[5] & 0x10 == 0 {
            continue;
        }
        let told: [u8; 6] = packet[6..12].try_into().unwrap();
        let all = told.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let value = (all >> 15) * 300 + (all & 0x1ff);
        let since = value - *first.get_or_insert(value);
        let jump = [WRAP - SECOND / 2, WRAP - 20 * HOUR, 5 * HOUR][number * 3 / packets];
        let value = (since + jump) % WRAP;
        packet[6..12].copy_from_slice(&((value / 300) << 15 | 0x7e00 | (value % 300)).to_be_bytes()[2..]);
        values += 1;
    }
    assert!(values > 20, "a film with {values} values of its clock");
    film
}

/// The film with a jumping clock on its way.
struct Run {
    directory: tempfile::TempDir,
    film: Vec<u8>,
    came: mpsc::Receiver<(Instant, Vec<u8>)>,
    receiver: Receiver,
    sender: Child,
}

impl Run {
    /// `jumping.ts` is in the sender's directory.
    fn start(options: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let film = jumping(&film(directory.path())?);
        fs::write(directory.path().join("jumping.ts"), &film).unwrap();
        let (address, came) = collect();
        let output = format!("udp://{address}");
        let receiver = Receiver::at("127.0.0.1:0", directory.path(), &["--output", &output]);
        let options = [&["--token", TOKEN, "--latency", "3s"], options].concat();
        let mut command = send(directory.path(), receiver.address, &receiver.fingerprint, &options);
        let sender = command.stdin(Stdio::piped()).spawn().unwrap();
        Some(Self { directory, film, came, receiver, sender })
    }

    /// Answers with how long that takes.
    fn comes_whole(&self) -> Duration {
        let (got, took) = stream(&self.came, self.film.len());
        assert_eq!(sha256(&got), sha256(&self.film));
        took
    }

    fn ends(mut self) {
        assert!(self.sender.wait().unwrap().success());
        self.receiver.ended_well();
        let received = summary(&self.directory.path().join("receive.jsonl"));
        assert_eq!((&received["lost"], &received["clock_jumps"]), (&0.into(), &0.into()), "{received}");
    }
}

/// The film takes three seconds. A second is for what the output of a busy machine bunches; a third of the
/// film that came at once would be more.
fn is_no_burst(took: Duration) {
    assert!(took > Duration::from_millis(2100), "the film came within {took:?}");
}

#[test]
fn a_film_whose_clock_jumps_is_sent_at_its_pace() {
    let Some(run) = Run::start(&["--input", "jumping.ts"]) else { return };
    is_no_burst(run.comes_whole());
    run.ends();
}

#[test]
fn a_pipe_whose_clock_jumps_goes_through() {
    let Some(mut run) = Run::start(&["--input", "-", "--rate", "400k"]) else { return };
    run.sender.stdin.take().unwrap().write_all(&run.film).unwrap();
    run.comes_whole();
    run.ends();
}

#[test]
fn an_input_of_udp_whose_clock_jumps_comes_out_as_it_came() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let Some(mut run) = Run::start(&["--input", &format!("udp://{free}")]) else { return };
    run.receiver.says(" sends,");
    let out = UdpSocket::bind("127.0.0.1:0").unwrap();
    let datagrams = run.film.chunks(7 * PACKET);
    let step = Duration::from_secs(3) / u32::try_from(datagrams.len()).unwrap();
    for datagram in datagrams {
        out.send_to(datagram, free).unwrap();
        thread::sleep(step);
    }
    is_no_burst(run.comes_whole());
    kill(&run.sender, Signal::INT);
    assert_eq!(run.sender.wait().unwrap().code(), Some(130));
}

/// As the datagrams tell it the sender's clock goes back by 20 minutes, ahead by 30, and begins anew at the
/// end of its 32 bits. What waits at the receiver then keeps its turn, and what follows has its whole
/// latency.
#[test]
fn a_senders_clock_that_jumps_holds_up_nothing_and_hurries_nothing() {
    const LATENCY: Duration = Duration::from_secs(1);
    const COUNT: u32 = 300;
    let directory = tempfile::tempdir().unwrap();
    let (address, came) = collect();
    let output = format!("udp://{address}");
    let options = [&["--output", &output][..], &certify(directory.path())].concat();
    let receiver = Receiver::at("127.0.0.1:0", directory.path(), &options);
    let mut sender = RawSender::connect(receiver.address, directory.path());
    sender.greet(LATENCY);
    let began = Instant::now();
    let sent: Vec<Instant> = (0..COUNT)
        .map(|number| {
            thread::sleep(Duration::from_millis(10));
            let jump =
                [0, 20 * 60 * 1_000_000u32, 0u32.wrapping_sub(10 * 60 * 1_000_000)][number as usize / 100];
            let clock = (began.elapsed().as_micros() as u32).wrapping_sub(2_000_000).wrapping_sub(jump);
            sender.media(number, clock, &number.to_be_bytes());
            Instant::now()
        })
        .collect();
    for (number, sent) in (0..COUNT).zip(sent) {
        let (at, bytes) = came.recv_timeout(STALL).unwrap_or_else(|_| panic!("a stall before {number}"));
        assert_eq!(bytes, number.to_be_bytes());
        // Of what a packet that came late makes believe, half the budget is left.
        assert!(at - sent > LATENCY / 2 && at - sent < STALL, "{number} came {:?} later", at - sent);
    }
    sender.end(COUNT.into());
    receiver.ended_well();
    let received = summary(&directory.path().join("receive.jsonl"));
    assert_eq!(
        (&received["clock_jumps"], &received["lost"], &received["late"]),
        (&2.into(), &0.into(), &0.into()),
        "{received}"
    );
}
