//! The program as its users see it: started, asked, interrupted.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub mod live;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Where programs of tests keep their state.
pub const STATE: &str = env!("CARGO_TARGET_TMPDIR");

/// The program, not started yet.
pub fn anabranch() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.env("XDG_STATE_HOME", STATE);
    command
}

/// A script's command with the program as `$program`, in this directory.
pub fn script<'a>(command: &'a mut Command, directory: &Path, script: &str) -> &'a mut Command {
    command.env("program", env!("CARGO_BIN_EXE_anabranch")).env("XDG_STATE_HOME", STATE);
    command.current_dir(directory).arg(script)
}

/// A directory to work in, with one to be served in it.
pub struct World {
    pub directory: tempfile::TempDir,
}

/// Bytes that no two places of are alike.
pub fn film(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()
    };
    std::iter::repeat_with(&mut step)
        .flat_map(|bytes| [bytes[0], bytes[1], bytes[2], bytes[3]])
        .take(length)
        .collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl World {
    /// With `film.bin` in the directory to be served.
    pub fn new(film: &[u8]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("served")).unwrap();
        fs::write(directory.path().join("served/film.bin"), film).unwrap();
        Self { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn serve(&self, options: &[&str]) -> Server {
        Server::start(&self.path("served"), options)
    }

    /// Makes a certificate for this machine, `cert.pem`, and its key, `key.pem`.
    pub fn certificate(&self) -> rcgen::KeyPair {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        fs::write(self.path("cert.pem"), made.cert.pem()).unwrap();
        fs::write(self.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
        made.signing_key
    }

    /// Over HTTP/3, with that certificate.
    pub fn serve_h3(&self, options: &[&str]) -> Server {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let own = ["--h3", "127.0.0.1:0", "--cert", cert.to_str().unwrap(), "--key", key.to_str().unwrap()];
        self.serve(&[&own, options].concat())
    }

    /// `anabranch fetch` in this directory.
    pub fn fetch(&self, options: &[&str]) -> Command {
        let mut command = anabranch();
        command.current_dir(self.directory.path()).arg("fetch").args(options).stdin(Stdio::null());
        command
    }

    /// The lines of a file of `--stats`.
    pub fn stats(&self, name: &str) -> Vec<Value> {
        lines(&fs::read_to_string(self.path(name)).unwrap())
    }
}

pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exit code and what was said; the test fails when it is another one.
#[track_caller]
pub fn ends_with(output: &Output, code: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// `anabranch serve` on a free port; killed in the end.
pub struct Server {
    child: Child,
    said: BufReader<ChildStderr>,
    before: Vec<String>,
    pub url: String,
}

impl Server {
    pub fn start(directory: &Path, options: &[&str]) -> Self {
        Self::by(anabranch(), directory, options)
    }

    /// By a command that takes the program's arguments.
    pub fn by(mut command: Command, directory: &Path, options: &[&str]) -> Self {
        command.arg("serve").arg(directory).args(options);
        if !["--https", "--http", "--h3"].iter().any(|own| options.contains(own)) {
            command.args(["--http", "127.0.0.1:0"]);
        }
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut server = Self { child, said, before: Vec::new(), url: String::new() };
        while server.url.is_empty() {
            let line = server.says("");
            if line.contains("serves ") {
                server.url = line.split_whitespace().last().unwrap().to_owned();
            } else {
                server.before.push(line);
            }
        }
        server
    }

    /// What it said before it served.
    pub fn before(&self) -> &[String] {
        &self.before
    }

    pub fn film(&self) -> String {
        format!("{}film.bin", self.url)
    }

    /// The next line that it says with `word` in it.
    pub fn says(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "the server has ended");
            if line.contains(word) {
                return line;
            }
            line.clear();
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill(&self.child, signal);
    }

    /// Ends it by a signal; answers its exit code.
    pub fn stop(&mut self, signal: Signal) -> Option<i32> {
        kill(&self.child, signal);
        self.ended()
    }

    /// Waits until it has ended; answers its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn kill(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for something that must come within ten seconds.
#[track_caller]
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    wait_within(Duration::from_secs(10), what, is_so);
}

/// Waits a minute for something that takes its time, as a browser, an encoder or a daemon does.
#[track_caller]
pub fn wait_long_until(what: &str, is_so: impl Fn() -> bool) {
    wait_within(Duration::from_secs(60), what, is_so);
}

#[track_caller]
fn wait_within(limit: Duration, what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < limit, "{what} has not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the file of an unfinished run is known to have at least so many bytes.
pub fn saved(state: &Path, least: u64) -> bool {
    let Ok(file) = File::open(state) else { return false };
    let state: Value = serde_json::from_reader(file).unwrap();
    let ranges = state["ranges"].as_array().unwrap();
    ranges.iter().map(|range| range[1].as_u64().unwrap() - range[0].as_u64().unwrap()).sum::<u64>() >= least
}
