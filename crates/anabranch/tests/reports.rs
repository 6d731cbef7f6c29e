//! `--stats`, `--metrics`, and what is said.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use common::{World, anabranch, ends_with, film, lines, text};

/// What users and checks rely on.
const SUMMARY: [&str; 12] = [
    "bytes",
    "seconds",
    "mean_rate_bps",
    "startup_s",
    "stalls",
    "stall_s",
    "connections_max",
    "connections_mean",
    "rerequested_bytes",
    "duplicate_bytes",
    "requests",
    "replicas",
];

fn summary(lines: &[Value]) -> &Value {
    let last = lines.last().unwrap();
    assert_eq!(last["event"], "summary");
    assert_eq!(lines.iter().filter(|line| line["event"] == "summary").count(), 1);
    for key in SUMMARY {
        assert!(last.get(key).is_some(), "{key} is missing: {last}");
    }
    last
}

#[test]
fn statistics_tell_what_happened() {
    let bytes = film(8_000_000, 1);
    let world = World::new(&bytes);
    let server = world.serve(&["--shape-rate", "24M"]);
    let url = server.film().replace("http://", "http://user:secret@");
    let run = world.fetch(&["--stats", "-", "--rate", "16M", "-o", "film", &url]).output().unwrap();
    ends_with(&run, 0);
    assert!(!text(&run.stdout).contains("secret"));
    let lines = lines(&text(&run.stdout));
    assert_eq!((&lines[0]["event"], &lines[0]["command"]), (&Value::from("start"), &Value::from("fetch")));
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    assert_eq!(of("film")[0]["size_bytes"], 8_000_000);
    assert!(of("interval").len() >= 2, "four seconds have intervals");
    let connection = &of("interval")[0]["connections"][0];
    for key in ["connection", "replica", "rate_bps", "srtt_s", "window_bytes", "bytes"] {
        assert!(connection.get(key).is_some(), "{key} is missing: {connection}");
    }
    assert!(
        !of("open").is_empty(),
        "the first connection was opened before anybody could listen, and is told"
    );
    assert!(of("open").iter().chain(&of("request")).all(|line| line["why"].is_string()));
    assert!(lines.iter().all(|line| line["at_s"].is_f64()));
    let summary = summary(&lines);
    assert_eq!(summary["bytes"], 8_000_000);
    assert_eq!(summary["replicas"][0]["bytes"], 8_000_000);
    assert!(summary.get("error").is_none());
    assert!((3.0..8.0).contains(&summary["seconds"].as_f64().unwrap()), "{summary}");
}

#[test]
fn a_failure_has_a_summary_too() {
    let world = World::new(b"");
    let server = world.serve(&[]);
    let run = world.fetch(&["--stats", "s", "-o", "x"]).arg(format!("{}none", server.url)).output().unwrap();
    ends_with(&run, 1);
    let lines = world.stats("s");
    let summary = summary(&lines);
    assert_eq!(summary["bytes"], 0);
    assert!(summary["error"].as_str().unwrap().contains("404"), "{summary}");
}

#[test]
fn a_pipe_gets_no_progress_and_quiet_is_quiet() {
    let world = World::new(&film(2_000_000, 2));
    let server = world.serve(&[]);
    let run = world.fetch(&["-o", "a"]).arg(server.film()).output().unwrap();
    assert_eq!(ends_with(&run, 0).lines().count(), 1, "only what it came to");
    let run = world.fetch(&["-o", "b", "--quiet"]).arg(server.film()).output().unwrap();
    assert_eq!(ends_with(&run, 0), "");
    let run = world.fetch(&["-o", "c", "--verbose"]).arg(server.film()).output().unwrap();
    let said = ends_with(&run, 0);
    assert!(said.contains("open,") && said.lines().all(|line| line.starts_with("anabranch: ")), "{said}");
}

fn get(url: &str) -> String {
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    write!(socket, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_of_a_fetch_and_of_a_server() {
    let world = World::new(&film(10_000_000, 3));
    let mut served = anabranch();
    served.args([
        "serve",
        "served",
        "--http",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
        "--shape-rate",
        "24M",
    ]);
    let mut server = served.current_dir(world.directory.path()).stderr(Stdio::piped()).spawn().unwrap();
    let url_of = |said: &mut dyn BufRead, what: &str| loop {
        let mut line = String::new();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it has ended");
        if line.contains(what) {
            break line.split_whitespace().last().unwrap().to_owned();
        }
    };
    let mut said = BufReader::new(server.stderr.take().unwrap());
    let server_metrics = url_of(&mut said, "metrics at");
    let url = url_of(&mut said, "serves");
    let mut child = world
        .fetch(&["--metrics", "127.0.0.1:0", "-o", "x"])
        .arg(format!("{url}film.bin?token=SECRET"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let fetch_metrics = url_of(&mut said, "metrics at");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let (ours, theirs) = (get(&fetch_metrics), get(&server_metrics));
    assert!(ours.contains("film.bin?...") && !ours.contains("SECRET"), "{ours}");
    for (answer, wanted) in [
        (&ours, "anabranch_connections 1"),
        (
            &ours,
            "anabranch_connection_rate_bits_per_second{film=\"0\",connection=\"0\",replica=\"http://127.0.0.1:",
        ),
        (&ours, "anabranch_replica_received_bytes_total{replica="),
        (&ours, "anabranch_received_bytes_total "),
        (&theirs, "anabranch_server_sent_bytes_total{listener=\"http\"} "),
        (&theirs, "anabranch_server_responses_total{listener=\"http\",status=\"2xx\"} "),
    ] {
        assert!(answer.contains(wanted) && answer.trim_end().ends_with("# EOF"), "{wanted}: {answer}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    common::kill(&server, Signal::INT);
    assert_eq!(server.wait().unwrap().code(), Some(130));
}

#[test]
fn tls_with_a_certificate_of_our_own() {
    let bytes = film(500_000, 4);
    let world = World::new(&bytes);
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (world.path("cert.pem"), world.path("key.pem"));
    std::fs::write(&cert, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let server = world.serve(&["--https", "127.0.0.1:0", "--cert", cert, "--key", key]);
    let url = server.film().replace("127.0.0.1", "localhost");
    let run = world.fetch(&["-o", "-", "--cacert", cert, &url]).output().unwrap();
    ends_with(&run, 0);
    assert!(run.stdout == bytes, "the bytes differ");
    let said = ends_with(&world.fetch(&["-o", "-", &url]).output().unwrap(), 1);
    assert!(said.to_lowercase().contains("certificate"), "{said}");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let world = World::new(b"");
    let nowhere = world.path("nowhere");
    let run = anabranch().arg("serve").arg(&nowhere).output().unwrap();
    assert!(ends_with(&run, 1).contains("cannot serve"));
    let server = world.serve(&[]);
    let taken = server.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let run = anabranch().arg("serve").arg(world.path("served")).args(["--http", &taken]).output().unwrap();
    assert!(ends_with(&run, 1).contains("another program listens there"));
}
