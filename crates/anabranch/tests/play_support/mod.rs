//! What the tests of `play`, `proxy` and `demo` share: a film, a server, the program, and raw requests.
#![allow(dead_code, clippy::unwrap_used, reason = "each test program uses a part of it; a test may panic")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anabranch_server::{Config, Metrics, Server, Shape};
use anabranch_testkit::ScriptedServer;
use anabranch_units::Rate;

/// How long anything may take before the test fails.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Our server, in this process; it is killed when this is dropped.
pub struct Origin {
    pub address: SocketAddr,
    pub metrics: Arc<Metrics>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Origin {
    pub fn start(root: &Path, rate: Option<Rate>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _inside = runtime.enter();
        let shape = rate.map(|rate| Shape { rate: Some(rate), first_byte_delay: Duration::from_millis(10) });
        let server = Server::bind(Config { shape, ..Config::new(root, ([127, 0, 0, 1], 0).into()) }).unwrap();
        let (address, metrics) = (server.local_addr().unwrap(), server.metrics());
        runtime.spawn(server.run(std::future::pending()));
        Self { address, metrics, runtime: Some(runtime) }
    }

    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    pub fn sent(&self) -> u64 {
        self.metrics.bytes_sent.load(Ordering::Relaxed)
    }

    /// Requests that were answered in any way.
    pub fn answered(&self) -> u64 {
        self.metrics.responses.iter().map(|class| class.load(Ordering::Relaxed)).sum()
    }

    pub fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server that answers every request head with the bytes that `answer` makes of it. It ends with the test
/// program.
pub fn raw_origin(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> SocketAddr {
    ScriptedServer::start(move |asked| answer(&asked.head)).keep()
}

/// The program under test.
pub struct Program {
    child: Child,
    lines: mpsc::Receiver<String>,
    pub said: Vec<String>,
}

impl Program {
    pub fn start<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_anabranch"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines, said: Vec::new() }
    }

    /// The address of the first URL that the program tells, and what comes behind it.
    pub fn endpoint(&mut self) -> (SocketAddr, String) {
        loop {
            let line = self.lines.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no URL: {:?}", self.said));
            self.said.push(line.clone());
            if let Some((_, rest)) = line.split_once("http://") {
                let (address, path) = rest.split_once('/').unwrap();
                return (address.parse().unwrap(), format!("/{path}"));
            }
        }
    }

    pub fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// Waits for its end: exit code and the rest of what it said.
    pub fn ended(&mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < LIMIT, "still running: {:?}", self.said);
            std::thread::sleep(Duration::from_millis(20));
        };
        self.said.extend(self.lines.iter());
        (status.code(), self.said.join("\n"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response that was read to its end.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Compares without printing megabytes.
#[track_caller]
pub fn assert_same(got: &[u8], wanted: &[u8], what: &str) {
    let differs = got.iter().zip(wanted).position(|(got, wanted)| got != wanted);
    assert!(
        got == wanted,
        "{what}: {} of {} bytes, the first wrong one at {differs:?}",
        got.len(),
        wanted.len()
    );
}

pub fn send(address: SocketAddr, method: &str, path: &str, headers: &[&str]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let host = if headers.iter().any(|line| line.starts_with("Host:")) {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    write!(stream, "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n").unwrap();
    stream
}

pub fn read_response(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Response { status, headers, body: bytes[end + 4..].to_vec() }
}

pub fn request(address: SocketAddr, method: &str, path: &str, headers: &[&str]) -> Response {
    read_response(send(address, method, path, headers))
}

pub fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Response {
    request(address, "GET", path, headers)
}

/// Runs one of the programs that a test needs; `None` (and a word about it) when this machine has not got it.
pub fn tool(name: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(name).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            anabranch_testkit::skipped(format_args!("this machine has no {name}"));
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// The configuration of a stock nginx that keeps its own files in `own`: `server` is what its one server
/// does.
pub fn nginx_configuration(own: &str, server: &str) -> String {
    nginx_configuration_with(own, "", server)
}

/// The same with directives for all servers.
pub fn nginx_configuration_with(own: &str, http: &str, server: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {own}/{kind};"))
        .collect();
    format!(
        "daemon off; master_process off; pid {own}/pid; error_log {own}/error.log; events {{}}\n\
         http {{ access_log off; {http} {temporary} types {{ video/mp4 mp4; }}\n\
         server {{ {server} }} }}"
    )
}

/// What ffmpeg's decoders see: a digest of every frame. The last lines of two runs are equal when every frame
/// is.
pub fn frames(input: &str) -> Option<String> {
    let output = tool(
        "ffmpeg",
        &["-v", "error", "-xerror", "-i", input, "-map", "0:v", "-map", "0:a", "-f", "framemd5", "-"],
    )?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.is_empty(), "{input}: {errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A real film with its index at the end.
pub fn real_film(path: &Path) -> Option<()> {
    let path = path.to_str().unwrap();
    let size =
        ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i", "sine", "-t", "20"];
    let codecs =
        ["-v", "error", "-c:v", "libx264", "-preset", "veryfast", "-b:v", "600k", "-c:a", "aac", path];
    let output = tool("ffmpeg", &[&size[..], &codecs[..]].concat())?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// mpv, playing fast and without a window, which seeks forth, back and forth.
pub struct SeekingPlayer {
    pub command: String,
    log: PathBuf,
}

impl SeekingPlayer {
    pub fn new(directory: &Path) -> Self {
        let (script, log) = (directory.join("seeks.lua"), directory.join("mpv.log"));
        std::fs::write(
            &script,
            "local at = {12, 3, 16}\nlocal next = 1\n\
             mp.observe_property('playback-time', 'number', function(_, time)\n\
               if time and next <= #at and not mp.get_property_bool('seeking') then\n\
                 mp.commandv('seek', at[next], 'absolute'); next = next + 1\n\
               end\n\
             end)\n\
             mp.register_event('end-file', function(event) print('ENDED ' .. event.reason .. ' after ' .. \
             (next - 1) .. ' seeks') end)\n",
        )
        .unwrap();
        let command = format!(
            "mpv --no-config --no-terminal --vo=null --ao=null --speed=4 --log-file='{}' --script='{}' {{}}",
            log.display(),
            script.display()
        );
        Self { command, log }
    }

    pub fn assert_played_to_the_end(&self) {
        let log = std::fs::read_to_string(&self.log).unwrap();
        assert!(log.contains("ENDED eof after 3 seeks"), "{log}");
    }
}
