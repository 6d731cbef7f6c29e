//! `anabranch sim`: what it prints and writes, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{anabranch, ends_with, kill, text, wait_until};
use rustix::process::Signal;

const SCENARIO: &str = r#"
[run]
duration = "10s"
[[node]]
name = "server"
[[node]]
name = "client"
[[link]]
from = "server"
to = "client"
rate = "10Mbps"
delay = "10ms"
loss = 0.01
[[flow]]
name = "download"
kind = "tcp"
from = "server"
to = "client"
[[flow]]
name = "film"
kind = "media"
client = "client"
servers = ["server"]
rate = "2Mbps"
algorithm = "auto"
"#;

fn sim(directory: &Path, scenario: &str, options: &[&str]) -> Command {
    fs::write(directory.join("path.toml"), scenario).unwrap();
    let mut command = anabranch();
    command.current_dir(directory).arg("sim").args(options).arg("path.toml").stdin(Stdio::null());
    command
}

fn run(directory: &Path, scenario: &str, options: &[&str]) -> Output {
    sim(directory, scenario, options).output().unwrap()
}

#[test]
fn a_table_and_files() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["--out", "out/first", "--trace", "packets.pcapng", "--loss-events"];
    let first = run(directory.path(), SCENARIO, &options);
    assert_eq!(ends_with(&first, 0), "");
    let table = text(&first.stdout);
    for expected in ["path, seed 1: 10 s simulated", "\ndownload  ", "\nfilm ", "\nserver-client  "] {
        assert!(table.contains(expected), "{expected}: {table}");
    }
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let events = read("out/first/events.jsonl");
    assert!(events.contains("\"loss_event\"") && events.contains("\"open\""), "{events}");
    assert_eq!(read("out/first/flows.csv").lines().count(), 1 + 2 * 10);
    assert_eq!(fs::read(directory.path().join("packets.pcapng")).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);

    let second = run(directory.path(), SCENARIO, &["--out", "out/second", "--seed", "2", "--quiet"]);
    assert_eq!(ends_with(&second, 0), "");
    assert_eq!(text(&second.stdout), "");
    let summaries = ["out/first/summary.json", "out/second/summary.json"].map(read);
    let seeds =
        summaries.map(|summary| serde_json::from_str::<serde_json::Value>(&summary).unwrap()["seed"].clone());
    assert_eq!(seeds, [1, 2]);
    assert!(read("out/first/flows.csv") != read("out/second/flows.csv"), "the seed changes nothing");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let said = ends_with(&run(directory.path(), &SCENARIO.replace("delay", "dely"), &[]), 1);
    let expected = "anabranch: path.toml:12:1: `dely` is not a key of a [[link]]\n   |\n12 | dely \
                    = \"10ms\"\n   | ^^^^\n";
    assert!(said.starts_with(expected) && said.contains("did you mean `delay`?"), "{said}");
    let missing = anabranch().args(["sim", "/nowhere/path.toml"]).output().unwrap();
    assert!(ends_with(&missing, 1).contains("cannot read /nowhere/path.toml"));
    ends_with(&run(directory.path(), SCENARIO, &["--loss-events"]), 2);
    ends_with(&run(directory.path(), SCENARIO, &["--seed", "-1"]), 2);
    let full = run(directory.path(), SCENARIO, &["--trace", "/dev/full"]);
    assert!(ends_with(&full, 1).contains("cannot write /dev/full"));
}

#[test]
fn an_interrupted_run_leaves_complete_rows() {
    let directory = tempfile::tempdir().unwrap();
    let endless = SCENARIO.replace("\"10s\"", "\"1000h\"\nsampling = \"10s\"");
    let mut command = sim(directory.path(), &endless, &["--out", "out"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let rows = directory.path().join("out/flows.csv");
    wait_until("a row", || fs::metadata(&rows).is_ok_and(|file| file.len() > 4096));
    kill(&child, Signal::INT);
    let ended = child.wait_with_output().unwrap();
    let said = ends_with(&ended, 130);
    assert!(said.contains("interrupted at ") && said.contains("is in out"), "{said}");
    let rows = fs::read_to_string(rows).unwrap();
    let columns = rows.lines().next().unwrap().matches(',').count();
    assert!(rows.ends_with('\n') && rows.lines().all(|row| row.matches(',').count() == columns));
    let summary: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(directory.path().join("out/summary.json")).unwrap())
            .unwrap();
    let simulated = summary["simulated_s"].as_f64().unwrap();
    assert!(simulated > 10.0 && simulated < summary["duration_s"].as_f64().unwrap(), "{summary}");
}
