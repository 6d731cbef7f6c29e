//! A stock nginx that limits how often it is asked (`limit_req`), or over how many connections
//! (`limit_conn`).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anabranch_testkit::film;
use play_support::{LIMIT, Program, nginx_configuration_with, tool};
use serde_json::Value;

/// nginx with such limits, which notes when it answered with which status; killed when dropped.
struct Nginx {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Nginx {
    fn start(directory: &Path, zone: &str, limit: &str) -> Option<Self> {
        tool("nginx", &["-v"])?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let own = directory.display().to_string();
        let log = directory.join("access.log");
        let http = format!("log_format short '$msec $status'; {zone}");
        let server =
            format!("listen 127.0.0.1:{port}; root {own}; access_log {} short; {limit}", log.display());
        let path = directory.join("nginx.conf");
        std::fs::write(&path, nginx_configuration_with(&own, &http, &server)).unwrap();
        let child =
            Command::new("nginx").arg("-c").arg(&path).args(["-p", &own]).stderr(Stdio::null()).spawn();
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < LIMIT, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { child: child.unwrap(), url: format!("http://127.0.0.1:{port}/film.bin"), log })
    }

    /// When requests were refused, in seconds since the first one, and how many there were.
    fn refusals(&self) -> (Vec<f64>, usize) {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let lines = log.lines().map(|line| line.split_once(' ').unwrap());
        let all: Vec<(f64, &str)> = lines.map(|(at, status)| (at.parse().unwrap(), status)).collect();
        let refused = all.iter().filter(|(_, status)| *status == "503");
        (refused.map(|(at, _)| at - all[0].0).collect(), all.len())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_takes_one_request_a_second_is_asked_no_more_often() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = film(12_000_000);
    std::fs::write(directory.path().join("film.bin"), &bytes).unwrap();
    let zone = "limit_req_zone $binary_remote_addr zone=requests:1m rate=1r/s;";
    let Some(nginx) = Nginx::start(directory.path(), zone, "limit_req zone=requests;") else { return };
    if tool("curl", &["--version"]).is_none() {
        return;
    }
    let (stats, out) = (directory.path().join("stats.jsonl"), directory.path().join("out"));
    let player = format!("curl -s --limit-rate 1000000 -o {} {{}}", out.display());
    let stats_argument = stats.display().to_string();
    let mut program =
        Program::start(["play", "--rate", "8M", "--stats", &stats_argument, "--player", &player, &nginx.url]);
    let (code, said) = program.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(std::fs::read(out).unwrap() == bytes, "other bytes");
    let (refusals, requests) = nginx.refusals();
    assert!(refusals.len() <= 5 && refusals.iter().all(|at| *at < 8.0), "{refusals:?} of {requests}");
    let text = std::fs::read_to_string(stats).unwrap();
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(summary["stalls"], 0, "{summary}");
}

#[test]
fn a_server_that_takes_two_connections_gets_no_more_for_long() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = film(12_000_000);
    std::fs::write(directory.path().join("film.bin"), &bytes).unwrap();
    let zone = "limit_conn_zone $binary_remote_addr zone=connections:1m;";
    let limit = "limit_conn connections 2; limit_rate 500k;";
    let Some(nginx) = Nginx::start(directory.path(), zone, limit) else { return };
    let out = directory.path().join("out");
    let out_argument = out.display().to_string();
    let mut program = Program::start(["fetch", "-o", &out_argument, &nginx.url]);
    let (code, said) = program.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(std::fs::read(out).unwrap() == bytes, "other bytes");
    let (refusals, requests) = nginx.refusals();
    assert!(refusals.len() <= 6, "{refusals:?} of {requests}");
}
