//! Our program, fetching a film from servers with caps and bounds, decides over emulated paths what its session
//! decides in the simulator.
//!
//! It needs network namespaces (root, or unprivileged user namespaces), nginx, ffmpeg, curl and the program
//! beside the testbed's, and skips without, saying so.
#![allow(clippy::unwrap_used, reason = "in a test a failed call is a failed test, also in its helpers")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_sim::Simulation;
use anabranch_sim::report::{Decision, MediaTotals, Observer};
use anabranch_sim::scenario::Beside;

use common::{PROGRAM, options, possible, run_with};

const SCENARIO: &str = include_str!("../../sim/scenarios/caps.toml");

/// What happens to connections: when, what, to which connection.
#[derive(Default)]
struct Events(Vec<(f64, String, u64)>);

const KINDS: [&str; 2] = ["open", "connection_failed"];

impl Events {
    /// How long after it was opened the first connection failed that did.
    fn first_failure(&self) -> f64 {
        let (failed, _, connection) = self.0.iter().find(|(_, what, _)| what == KINDS[1]).unwrap();
        let opened = self.0.iter().find(|(_, what, other)| what == KINDS[0] && other == connection);
        failed - opened.unwrap().0
    }
}

impl Observer for Events {
    fn decision(&mut self, decision: &Decision) {
        if KINDS.contains(&decision.what) {
            let connection = decision.connection.unwrap();
            self.0.push((decision.at.as_secs_f64(), decision.what.to_owned(), u64::from(connection)));
        }
    }
}

fn simulated() -> (Events, MediaTotals) {
    let model = anabranch_sim::scenario::parse("caps.toml", SCENARIO, None, &mut Beside("".as_ref()));
    let mut simulation = Simulation::new(model.unwrap()).unwrap();
    let mut events = Events::default();
    simulation.run_until(simulation.end(), &mut events);
    (events, simulation.totals().flows[0].media.unwrap())
}

/// The same with the program, and the summary of its statistics.
fn real(directory: &Path, program: PathBuf) -> (Events, serde_json::Value) {
    let (described, _) = SCENARIO.split_once("[[flow]]").unwrap();
    let programs = r#"
        [film]
        rate = "1.1M"
        duration = "60s"
        [[server]]
        node = "server1"
        [[server]]
        node = "server2"
        [[client]]
        name = "anabranch"
        command = ["{anabranch}", "play", "--quiet", "--rate", "{rate}", "--stats", "{dir}/stats.jsonl", "--player", "curl -sS {}", "{url1}", "{url2}"]
    "#;
    let options =
        anabranch_testbed::isolate::Options { anabranch: program, ..options(&directory.join("out")) };
    run_with(directory, &format!("{described}{programs}"), &options);
    let lines = fs::read_to_string(directory.join("out/stats.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events = lines.iter().filter(|line| KINDS.iter().any(|kind| line["event"] == *kind));
    let event = |line: &serde_json::Value| {
        let (at, what) = (line["at_s"].as_f64().unwrap(), line["event"].as_str().unwrap());
        (at, what.to_owned(), line["connection"].as_u64().unwrap())
    };
    (Events(events.map(event).collect()), lines.last().unwrap().clone())
}

#[test]
fn a_session_decides_the_same_in_both_worlds() {
    let program = Path::new(PROGRAM).with_file_name("anabranch");
    if !possible(&["nginx", "ffmpeg", "curl"]) {
        return;
    }
    if !program.exists() {
        anabranch_testkit::skipped("the program is not built: cargo build -p anabranch");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let ((simulated, seen), (real, summary)) = (simulated(), real(directory.path(), program));
    // A round trip of 40 ms; a busy machine is late.
    assert!((0.04..0.05).contains(&simulated.first_failure()), "{:?}", simulated.0);
    assert!((0.04..0.5).contains(&real.first_failure()), "{:?}", real.0);
    // The second server's connections carry what the first refuses: neither world has a stall, and both have
    // about as many connections.
    assert_eq!((seen.stalls, summary["stalls"].as_u64()), (0, Some(0)), "{summary}");
    let (least, most) = (seen.connections_mean - 0.8, seen.connections_mean + 0.8);
    let mean = summary["connections_mean"].as_f64().unwrap();
    assert!((least..most).contains(&mean), "{mean} in place of {}", seen.connections_mean);
    let startup = seen.startup.unwrap().as_secs_f64();
    let ratio = summary["startup_s"].as_f64().unwrap() / startup;
    assert!((0.6..1.8).contains(&ratio), "{summary} in place of {startup}");
}
