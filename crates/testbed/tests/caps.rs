//! A server's caps and its bound on connections mean the same in the simulator and before a real nginx.
//!
//! These tests need network namespaces (root, or unprivileged user namespaces) and skip without, saying so.
#![allow(clippy::unwrap_used, reason = "in a test a failed call is a failed test, also in its helpers")]

mod common;

use std::fs;

use anabranch_sim::Simulation;
use anabranch_sim::report::{Decision, Observer};
use anabranch_sim::scenario::Beside;

use common::{network, possible, run};

/// How long the clients try, in seconds.
const SECONDS: f64 = 10.0;

/// A server like this, 20 Mbps and 20 ms away.
fn described(server: &str) -> String {
    let node = "name = \"origin\"";
    let network = network("20Mbps", "20ms", 200, "");
    let network = network.replace(node, &format!("{node}\nserver = {{ {server} }}"));
    format!("[run]\nduration = \"{SECONDS}s\"\n{network}")
}

/// What real programs got.
struct Real {
    mbps: f64,
    /// Of each curl: its exit code, the answer's status, and how long it took in seconds.
    ended: Vec<(i32, u32, f64)>,
}

/// So many curls at once, each a connection of its own.
fn real(server: &str, curls: usize) -> Real {
    let directory = tempfile::tempdir().unwrap();
    let film = directory.path().join("film.bin");
    fs::write(&film, vec![7; 40_000_000]).unwrap();
    let numbers: Vec<_> = (1..=curls).map(|number| number.to_string()).collect();
    let curl = "curl -s --connect-timeout 3 -o /dev/null -w '%{http_code} %{time_total}' {url1}";
    let script = format!(
        "for i in {}; do ( said=$(timeout {SECONDS} {curl}); echo $? $said ) & done; wait",
        numbers.join(" ")
    );
    let programs = format!(
        r#"
        [film]
        rate = "1M"
        duration = "320s"
        file = "{}"
        [[server]]
        node = "origin"
        [[client]]
        name = "curls"
        command = ["sh", "-c", {script:?}]
        output = "none"
        "#,
        film.display()
    );
    let summary = run(directory.path(), &(described(server) + &programs));
    let log = fs::read_to_string(directory.path().join("out/client.log")).unwrap();
    let word = |line: &str, place: usize| line.split(' ').nth(place).unwrap_or("0").to_owned();
    let ended = log.lines().map(|line| {
        let (code, status, seconds) = (word(line, 0), word(line, 1), word(line, 2));
        (code.parse().unwrap(), status.parse().unwrap_or(0), seconds.parse().unwrap_or(SECONDS))
    });
    Real { mbps: summary.flows[0].mean_bps * 1e-6, ended: ended.collect() }
}

#[derive(Default)]
struct Lost(Vec<(f64, String)>);

impl Observer for Lost {
    fn decision(&mut self, decision: &Decision) {
        if decision.what == "connection_failed" {
            self.0.push((decision.at.as_secs_f64(), decision.why.clone()));
        }
    }
}

/// What a stream over so many connections gets in the simulator, in Mbps, and which connections it lost.
fn simulated(server: &str, connections: usize) -> (f64, Vec<(f64, String)>) {
    let stream = format!(
        r#"
        [[flow]]
        name = "film"
        kind = "media"
        client = "client"
        servers = ["origin"]
        rate = "1M"
        pace = "max"
        connect_timeout = "3s"
        memory = "512MiB"
        algorithm = {{ kind = "fixed", connections = {connections} }}
        "#
    );
    let document = described(server) + &stream;
    let model = anabranch_sim::scenario::parse("caps.toml", &document, None, &mut Beside(".".as_ref()));
    let mut simulation = Simulation::new(model.unwrap()).unwrap();
    let mut lost = Lost::default();
    simulation.run_until(simulation.end(), &mut lost);
    (simulation.totals().flows[0].delivered.as_f64() * 8e-6 / SECONDS, lost.0)
}

/// Both worlds give that, but for what the programs need to begin: on a busy machine two of the ten seconds.
fn assert_both(server: &str, connections: usize, mbps: f64) {
    let (real, (simulated, _)) = (real(server, connections), simulated(server, connections));
    assert!((0.93..1.01).contains(&(simulated / mbps)), "simulated {simulated} in place of {mbps}");
    assert!((0.75..1.05).contains(&(real.mbps / mbps)), "real {} in place of {mbps}", real.mbps);
}

#[test]
fn each_connection_has_its_cap() {
    if possible(&["nginx", "curl"]) {
        assert_both("connection_cap = \"1Mbps\"", 4, 4.0);
    }
}

#[test]
fn a_client_has_its_cap_whatever_the_number_of_connections() {
    if possible(&["nginx", "curl"]) {
        assert_both("client_cap = \"2Mbps\"", 1, 2.0);
        assert_both("client_cap = \"2Mbps\", connection_cap = \"1Mbps\"", 4, 2.0);
    }
}

#[test]
fn a_connection_too_many_is_refused_in_a_round_trip() {
    if !possible(&["nginx", "curl"]) {
        return;
    }
    let bound = "connection_cap = \"1Mbps\", most_connections = 2";
    let real = real(bound, 5);
    let refused: Vec<_> = real.ended.iter().filter(|(code, ..)| *code == 7).collect();
    // It takes a round trip of 40 ms; a busy machine is late.
    assert!(refused.len() == 3 && refused.iter().all(|(_, _, seconds)| *seconds < 1.0), "{:?}", real.ended);
    let (_, lost) = simulated(bound, 5);
    assert!(lost[2].0 < 0.05 && lost[2].1.contains("refuses"), "{lost:?}");
}

#[test]
fn a_connection_too_many_is_not_answered() {
    if !possible(&["nginx", "curl"]) {
        return;
    }
    let bound = "connection_cap = \"1Mbps\", most_connections = 2, above = \"drop\"";
    let real = real(bound, 4);
    // curl gives up after its three seconds, as the simulated client does; its clock can be a little short of them.
    let silent: Vec<_> = real.ended.iter().filter(|(code, ..)| *code == 28).collect();
    assert!(silent.len() == 2 && silent.iter().all(|(.., seconds)| *seconds > 2.9), "{:?}", real.ended);
    let (_, lost) = simulated(bound, 4);
    assert!((3.0..3.2).contains(&lost[1].0) && lost[1].1.contains("no answer"), "{lost:?}");
}

#[test]
fn a_busy_server_says_so() {
    if !possible(&["nginx", "curl"]) {
        return;
    }
    let bound = "connection_cap = \"1Mbps\", most_connections = 2, above = \"busy\"";
    let real = real(bound, 4);
    let busy = real.ended.iter().filter(|(_, status, _)| *status == 503).count();
    assert_eq!(busy, 2, "{:?}", real.ended);
    let (_, lost) = simulated(bound, 4);
    assert!(lost.len() >= 2 && lost[1].0 < 0.2 && lost[1].1.contains("503"), "{lost:?}");
}
