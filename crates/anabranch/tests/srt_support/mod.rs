//! Programs of SRT and RIST beside ours, and a stream for them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::common::live::{Receiver, TOKEN, send};
use super::common::{self, film, sha256, wait_until};

/// Bytes of a message, and how many of them a stream has.
const MESSAGE: usize = 1316;
const MESSAGES: usize = 100;
/// What finds out whether a way is there.
const PROBE: [u8; MESSAGE] = [0x47; MESSAGE];

/// A program in the background; killed in the end. What it says is in a file.
pub struct Program {
    pub child: Child,
    said: PathBuf,
}

impl Program {
    pub fn start(command: &mut Command, said: PathBuf) -> Self {
        let child = command.stdin(Stdio::null()).stderr(File::create(&said).unwrap()).spawn().unwrap();
        Self { child, said }
    }

    /// `srt-live-transmit` from one URL to another; `file://con` is the file `NAME`.
    pub fn transmit(directory: &Path, name: &str, from: &str, to: &str) -> Self {
        let mut command = Command::new("srt-live-transmit");
        command.args(["-a:no", "-q", from, to]).stdout(File::create(directory.join(name)).unwrap());
        Self::start(&mut command, directory.join(format!("{name}.said")))
    }

    /// `anabranch send` with this input.
    pub fn sends(directory: &Path, receiver: &Receiver, input: &str) -> Self {
        let options = ["--input", input, "--token", TOKEN, "--latency", "1s"];
        let mut command = send(directory, receiver.address, &receiver.fingerprint, &options);
        Self::start(&mut command, directory.join("send.said"))
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    #[track_caller]
    pub fn says(&self, what: &str) {
        wait_until(what, || self.said().contains(what));
    }

    /// Ends by a signal, within ten seconds: its exit code.
    #[track_caller]
    pub fn ends(&mut self, signal: Signal) -> Option<i32> {
        common::kill(&self.child, signal);
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < Duration::from_secs(10), "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether these can be run, with SRT.
pub fn are_there(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let asked =
            Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_err()
    });
    if let Some(missing) = missing {
        anabranch_testkit::skipped(format_args!("no {missing}"));
    }
    missing.is_none()
}

pub fn free_port() -> u16 {
    // Below what Linux gives to sockets that name no port: one of another test would take it before a program does.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 12_000 + (number % 20_000) as u16;
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Gives a stream to a program that listens at a port of UDP.
pub fn give(port: u16, stream: &[u8]) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for message in stream.chunks(MESSAGE) {
        socket.send_to(message, ("127.0.0.1", port)).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Any bytes in packets of a transport stream, none of which is stuffing.
pub fn stream(seed: u64) -> Vec<u8> {
    let mut stream = film(MESSAGES * MESSAGE, seed);
    stream.chunks_mut(188).for_each(|packet| packet[..3].copy_from_slice(&[0x47, 1, 0]));
    stream
}

/// Where srt-live-transmit puts a stream: into a file it writes the last of it when it ends.
pub struct Place(UdpSocket);

impl Place {
    pub fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self(socket)
    }

    pub fn url(&self) -> String {
        format!("udp://{}", self.0.local_addr().unwrap())
    }

    /// Waits until something comes here from this port, which is thrown away.
    #[track_caller]
    pub fn is_reached_from(&self, port: u16) {
        self.0.set_nonblocking(true).unwrap();
        wait_until("the first of it", || {
            give(port, &PROBE);
            self.0.recv(&mut [0; 2000]).is_ok()
        });
        self.0.set_nonblocking(false).unwrap();
    }

    /// Gives the stream to who listens at this port, and waits until all of it has come here.
    #[track_caller]
    pub fn gets(&self, stream: &[u8], port: u16) {
        let mut got = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| give(port, stream));
            let mut buffer = [0; 2000];
            while got.len() < stream.len() {
                match self.0.recv(&mut buffer) {
                    Ok(length) if buffer[..length] == PROBE => {}
                    Ok(length) => got.extend(&buffer[..length]),
                    Err(_) => break,
                }
            }
        });
        assert_eq!((got.len(), sha256(&got)), (stream.len(), sha256(stream)));
    }
}
