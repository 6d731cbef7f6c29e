//! A good player beside thousands of slow connections: to `proxy` and to `play`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anabranch_server::raise_descriptor_limit;
use anabranch_testkit::film;
use play_support::{Origin, Program, assert_same, get};

/// The slow connections.
const CROWD: usize = 5_000;
/// What a good player may wait for its answer.
const AT_ONCE: Duration = Duration::from_secs(5);

/// What the connections of the crowd do.
#[derive(Clone, Copy, Debug)]
enum Slow {
    Nothing,
    HalfARequest,
    /// A request, of whose answer nothing is taken.
    NoReading,
}

/// Opens them all, or as many as this machine lets the test have.
fn crowd(address: SocketAddr, path: &str, slow: Slow) -> Vec<TcpStream> {
    let most = raise_descriptor_limit().map_or(CROWD, |files| usize::try_from(files).unwrap() - 200);
    if most < CROWD {
        eprintln!("this machine permits {most} connections only");
    }
    let words = match slow {
        Slow::Nothing => String::new(),
        Slow::HalfARequest => format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nX-Slow: "),
        Slow::NoReading => format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
    };
    let open = |_| {
        let mut stream = TcpStream::connect_timeout(&address, AT_ONCE).ok()?;
        // Who was closed already is not counted on.
        let _ = stream.write_all(words.as_bytes());
        Some(stream)
    };
    (0..CROWD.min(most)).filter_map(open).collect()
}

/// Resident memory in MiB, and open files.
fn held(program: &Program) -> (u64, usize) {
    let process = format!("/proc/{}", program.id());
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    (kib / 1024, fs::read_dir(format!("{process}/fd")).unwrap().count())
}

/// A player that has been playing for a while, and goes on.
struct Playing {
    thread: JoinHandle<Vec<u8>>,
    hurry: Arc<AtomicBool>,
}

impl Playing {
    fn begin(address: SocketAddr, path: &str) -> Self {
        let mut stream = play_support::send(address, "GET", path, &[]);
        let mut got = vec![0; 2_000_000];
        stream.read_exact(&mut got).unwrap();
        let hurry = Arc::new(AtomicBool::new(false));
        let is_over = hurry.clone();
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let mut more = vec![0; 20_000];
                // One that was cut off has less than the film.
                let Ok(length) = stream.read(&mut more) else { break };
                got.extend_from_slice(&more[..length]);
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = stream.read_to_end(&mut got);
            let head = got.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            got.split_off(head + 4)
        });
        Self { thread, hurry }
    }

    /// All that it got.
    fn end(self) -> Vec<u8> {
        self.hurry.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn a_player_is_answered_at_once_beside_five_thousand_slow_connections() {
    let film = film(20_000_000);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("film.mp4"), &film).unwrap();
    let origin = Origin::start(directory.path(), None);
    let url = origin.url("film.mp4");
    for command in ["proxy", "play"] {
        let mut arguments = vec![command, "--listen", "127.0.0.1:0", "--rate", "max"];
        if command == "play" {
            // Without a player it would end with the film.
            arguments.extend(["--player", "sh -c 'exec sleep 1000' {}", &url]);
        }
        let mut program = Program::start(arguments);
        let (address, offered) = program.endpoint();
        let path = if command == "play" { offered } else { format!("/{url}") };
        for slow in [Slow::Nothing, Slow::HalfARequest, Slow::NoReading] {
            let playing = Playing::begin(address, &path);
            let began = Instant::now();
            let mut crowd = crowd(address, &path, slow);
            let came = began.elapsed();
            let asked = Instant::now();
            let answer = get(address, &path, &["Range: bytes=1000000-1999999"]);
            let took = asked.elapsed();
            let (mebibytes, files) = held(&program);
            eprintln!(
                "{command}, {} connections in {came:.1?}, {slow:?}: answered after {took:.2?}, {mebibytes} \
                 MiB, {files} files",
                crowd.len()
            );
            assert_eq!(answer.status, 206, "{command}, {slow:?}");
            assert_same(&answer.body, &film[1_000_000..2_000_000], command);
            assert!(took < AT_ONCE, "{command}, {slow:?}: {took:?}");
            assert!(mebibytes < 500 && files < 700, "{mebibytes} MiB, {files} files");
            // A byte now and then buys nothing.
            for stream in &mut crowd {
                let _ = stream.write_all(b"x");
            }
            let asked = Instant::now();
            assert_eq!(get(address, &path, &["Range: bytes=0-9"]).status, 206);
            assert!(asked.elapsed() < AT_ONCE, "{command}, {slow:?}: {:?}", asked.elapsed());
            assert_same(&playing.end(), &film, command);
        }
    }
}
