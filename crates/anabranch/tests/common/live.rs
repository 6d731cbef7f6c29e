//! The two ends of a live stream, and a network between them.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::{anabranch, lines};

pub const TOKEN: &str = "open-sesame";

/// A film of three seconds that ffmpeg makes; `None` where there is none.
pub fn film(directory: &Path) -> Option<Vec<u8>> {
    film_with(directory, &[])
}

/// With more options of the muxer.
pub fn film_with(directory: &Path, options: &[&str]) -> Option<Vec<u8>> {
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
        .args(options)
        .arg(&path)
        .stdin(Stdio::null())
        .status();
    match made {
        Ok(status) if status.success() => Some(fs::read(path).unwrap()),
        _ => {
            anabranch_testkit::skipped("no ffmpeg that makes films");
            None
        }
    }
}

/// A receiver that runs; killed in the end.
pub struct Receiver {
    child: Child,
    pub said: BufReader<ChildStderr>,
    /// What it said until it listened.
    pub began: String,
    pub address: SocketAddr,
    pub fingerprint: String,
}

impl Receiver {
    /// Into `got.ts`.
    pub fn start(directory: &Path, options: &[&str]) -> Self {
        Self::at("127.0.0.1:0", directory, &[&["--output", "got.ts"], options].concat())
    }

    pub fn at(listen: &str, directory: &Path, options: &[&str]) -> Self {
        let mut child = anabranch()
            .current_dir(directory)
            .args(["receive", "--listen", listen, "--token", TOKEN, "--stats", "receive.jsonl"])
            .args(options)
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let address = SocketAddr::from(([0, 0, 0, 0], 0));
        let (began, fingerprint) = (String::new(), String::new());
        let mut receiver = Self { child, said, began, address, fingerprint };
        let mut line = String::new();
        while !line.contains("listens at") {
            line.clear();
            assert_ne!(receiver.said.read_line(&mut line).unwrap(), 0, "{}", receiver.began);
            receiver.began.push_str(&line);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        receiver.address = words[3].trim_end_matches(',').parse().unwrap();
        receiver.fingerprint = words[5].to_owned();
        receiver
    }

    /// Waits until it says this.
    pub fn says(&mut self, what: &str) -> String {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "it never said: {what}");
        }
        line
    }

    /// Bytes of memory that it has at the moment.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Ends by a signal, in order.
    pub fn interrupted(&mut self) {
        super::kill(&self.child, Signal::INT);
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
    }

    pub fn ended_well(mut self) {
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn send(directory: &Path, to: SocketAddr, fingerprint: &str, options: &[&str]) -> Command {
    let mut command = anabranch();
    command
        .current_dir(directory)
        .args(["send", "--to", &to.to_string(), "--fingerprint", fingerprint, "--stats", "send.jsonl"])
        .args(options)
        .stdin(Stdio::null());
    command
}

pub fn summary(path: &Path) -> Value {
    let last = lines(&fs::read_to_string(path).unwrap()).pop().unwrap();
    assert_eq!(last["event"], "summary");
    last
}

/// What a relay does to the datagrams on their way to the receiver. The first ones, the handshake's, get
/// through.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// Loses so many of a hundred, repeats and swaps some: always the same ones by number.
    pub percent: u64,
    /// Loses what is longer from the beginning, in both directions.
    pub longest: Option<usize>,
    /// Sends everything a second time, a hundred datagrams later, and after each datagram one of noise.
    pub replays: bool,
}

/// Forwards datagrams of UDP, with faults.
pub struct Relay {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Nothing gets through while it is set.
    pub is_down: Arc<AtomicBool>,
    /// When it is set the receiver hears from another address from then on, and nothing gets to the old one.
    pub moves: Arc<AtomicBool>,
    /// Loses what is longer, in both directions.
    pub longest: Arc<AtomicUsize>,
    pub lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// The seed of what is lost is printed.
    pub fn start(to: SocketAddr, faults: Faults) -> Self {
        const SEED: u64 = 7;
        println!("seed {SEED}, {} % lost", faults.percent);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = || {
            let out = UdpSocket::bind("127.0.0.1:0").unwrap();
            out.set_nonblocking(true).unwrap();
            out
        };
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let is_down = Arc::new(AtomicBool::new(false));
        let moves = Arc::new(AtomicBool::new(false));
        let longest = Arc::new(AtomicUsize::new(faults.longest.unwrap_or(usize::MAX)));
        let (stopped, counted, down) = (stop.clone(), lost.clone(), is_down.clone());
        let (moved, carried) = (moves.clone(), longest.clone());
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut from, mut state, mut count) = (vec![0; 65536], None, SEED, 0);
            let mut held: Option<Vec<u8>> = None;
            let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
            let is_long = |length: usize| length > carried.load(Ordering::Relaxed);
            let mut out = far();
            while !stopped.load(Ordering::Relaxed) {
                if moved.swap(false, Ordering::Relaxed) {
                    out = far();
                }
                let is_down = down.load(Ordering::Relaxed);
                if let Ok((length, sender)) = socket.recv_from(&mut buffer)
                    && !is_down
                    && !is_long(length)
                {
                    from = Some(sender);
                    count += 1;
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let dice = (state >> 33) % 100;
                    let datagram = &buffer[..length];
                    if count > 12 && dice < faults.percent {
                        counted.fetch_add(1, Ordering::Relaxed);
                    } else if count > 12 && dice > 97 && held.is_none() && faults.percent > 0 {
                        held = Some(datagram.to_vec());
                    } else {
                        let _ = out.send_to(datagram, to);
                        if dice > 95 && faults.percent > 0 {
                            let _ = out.send_to(datagram, to);
                        }
                        if let Some(held) = held.take() {
                            let _ = out.send_to(&held, to);
                        }
                    }
                    if faults.replays {
                        kept.push_back(datagram.to_vec());
                        if kept.len() > 100 {
                            let _ = out.send_to(&kept.pop_front().unwrap(), to);
                        }
                        let noise: Vec<u8> = datagram.iter().map(|byte| byte ^ dice as u8).collect();
                        let _ = out.send_to(&noise, to);
                    }
                }
                while let Ok((length, _)) = out.recv_from(&mut buffer) {
                    if let Some(from) = from.filter(|_| !is_down && !is_long(length)) {
                        let _ = socket.send_to(&buffer[..length], from);
                    }
                }
            }
        });
        Self { address, stop, is_down, moves, longest, lost, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
