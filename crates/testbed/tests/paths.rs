//! Real programs over emulated paths: rates, delays, losses, the timetable, and that nothing is left behind.
//!
//! These need network namespaces (root, or unprivileged user namespaces) and skip without, saying so.
#![allow(clippy::unwrap_used, reason = "in a test a failed call is a failed test, also in its helpers")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testbed::report::Summary;
use rustix::process::{Pid, Signal, kill_process};

use common::{PROGRAM, network, possible, run};

fn log_as_json(directory: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(directory.join("out/client.log")).unwrap()).unwrap()
}

#[test]
fn a_path_has_its_rate_and_round_trip_time() {
    if !possible(&["iperf3"]) {
        return;
    }
    let network = network("6M", "40ms", 50, "");
    let directory = tempfile::tempdir().unwrap();
    let summary = run(
        directory.path(),
        &format!(
            r#"{network}
            [run]
            duration = "20s"
            [[server]]
            node = "origin"
            command = ["iperf3", "-s"]
            [[client]]
            name = "iperf3"
            command = ["iperf3", "-c", "{{address1}}", "-R", "-J", "-t", "8"]
            output = "none""#
        ),
    );
    let bps = log_as_json(directory.path())["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!((5.0e6..6.0e6).contains(&bps), "{bps}");
    assert_eq!(summary.congestion, ["cubic"]);

    let directory = tempfile::tempdir().unwrap();
    let summary = run(
        directory.path(),
        &format!(
            r#"{network}
            [run]
            duration = "20s"
            [[server]]
            node = "origin"
            command = ["iperf3", "-s"]
            [[client]]
            name = "idle"
            command = ["sleep", "3"]
            output = "none"
            [ping]"#
        ),
    );
    let ping = summary.ping.unwrap();
    assert!(ping.sent >= 25 && ping.lost == 0, "{ping:?}");
    assert!(ping.min_ms >= 78.0 && ping.mean_ms <= 90.0, "{ping:?}");
}

#[test]
fn a_receiver_of_cross_traffic_is_farther_away() {
    if !possible(&["iperf3", "nginx", "curl"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let scenario = r#"
        [run]
        duration = "20s"
        [[server]]
        node = "origin"
        [[node]]
        name = "far"
        [[link]]
        from = "client"
        to = "far"
        rate = "1Gbps"
        delay = "100ms"
        reverse = { delay = "0s" }
        [[flow]]
        name = "near"
        kind = "tcp"
        from = "origin"
        to = "client"
        start = "60s"
        [[flow]]
        name = "far"
        kind = "tcp"
        from = "origin"
        to = "far"
        start = "60s"
        [[client]]
        name = "connect"
        command = ["sh", "-c", "for from in 1 10 11; do curl -so /dev/null --interface 10.77.0.$from -w '%{time_connect}\\n' http://{address1}/; done"]
        output = "none"
    "#;
    run(directory.path(), &(scenario.to_owned() + &network("6M", "20ms", 50, "")));
    let log = fs::read_to_string(directory.path().join("out/client.log")).unwrap();
    let seconds: Vec<f64> = log.lines().map(|line| line.parse().unwrap()).collect();
    let [client, near, far] = seconds[..] else { panic!("{log}") };
    // A machine that is busy makes all of them later, and none sooner.
    assert!(client >= 0.039 && near >= 0.039 && far >= 0.139, "{log}");
    assert!(client.min(near) < 0.1, "the delay is the far receiver's alone: {log}");
}

/// UDP of 10 Mbps for 8 s over a path with these losses.
fn lossy(directory: &Path, seed: u64, loss: &str) -> Summary {
    run(
        directory,
        &format!(
            r#"
            [run]
            duration = "20s"
            seed = {seed}
            [[server]]
            node = "origin"
            command = ["iperf3", "-s"]
            [[client]]
            name = "iperf3"
            command = ["iperf3", "-c", "{{address1}}", "-R", "-J", "-t", "8", "-u", "-b", "10M", "-l", "1000"]
            output = "none"
            {}
            "#,
            // Where a busy machine sends late and then much at once, the queue holds it.
            network("20M", "20ms", 10_000, &format!("loss = {loss}\nreverse = {{ loss = 0 }}"))
        ),
    )
}

#[test]
fn a_path_loses_what_it_should() {
    if !possible(&["iperf3"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let summary = lossy(directory.path(), 7, "0.01");
    let lost = log_as_json(directory.path())["end"]["sum"]["lost_percent"].as_f64().unwrap();
    // What a busy machine loses in the receiver's socket comes on top.
    assert!(lost > 0.6, "{lost} %");
    let flow = &summary.flows[0];
    let share = flow.packets_missing as f64 / flow.packets_sent as f64;
    assert!((0.006..0.015).contains(&share), "{share}");
}

#[test]
fn bursts_lose_the_share_that_they_should() {
    if !possible(&["iperf3"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // Five packets in a row on average, and so 5 % of all.
    let bursts = r#"{ kind = "gilbert-elliott", to_bad = 0.010526, to_good = 0.2 }"#;
    let summary = lossy(directory.path(), 5, bursts);
    // Ten thousand packets, in about a hundred bursts.
    let flow = &summary.flows[0];
    let share = flow.packets_missing as f64 / flow.packets_sent as f64;
    assert!((0.025..0.09).contains(&share), "{share}");
}

#[test]
fn the_timetable_happens() {
    if !possible(&["nginx", "curl", "iperf3"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let film = directory.path().join("film.bin");
    let changes = r#"{ at = "3s", rate = "1M" }, { at = "6s", down = true }, { at = "7s", down = false }"#;
    fs::write(&film, (0..8_000_000u32).map(|at| (at % 251) as u8).collect::<Vec<_>>()).unwrap();
    let summary = run(
        directory.path(),
        &format!(
            r#"
            [run]
            duration = "15s"
            [film]
            rate = "1M"
            duration = "64s"
            file = "{}"
            [[server]]
            node = "origin"
            congestion = "reno"
            [[client]]
            name = "curl"
            command = ["curl", "-sS", "{{url1}}"]
            [[flow]]
            name = "burst"
            kind = "udp"
            from = "origin"
            to = "client"
            rate = "1M"
            start = "1s"
            stop = "3s"
            [[event]]
            at = "10s"
            kill = "origin"
            {}
            "#,
            film.display(),
            network("4M", "10ms", 50, &format!("changes = [{changes}]"))
        ),
    );
    assert!(!summary.complete && summary.right);
    assert!(summary.exit_code.is_some_and(|code| code != 0), "{summary:?}");
    // The client notices the server's death when what the kernel had taken from it has arrived.
    assert!((10.0..15.0).contains(&summary.seconds), "{summary:?}");
    assert_eq!((summary.connections_max, summary.congestion.as_slice()), (1, &["reno".to_owned()][..]));

    let progress = fs::read_to_string(directory.path().join("out/progress.csv")).unwrap();
    let progress: Vec<(f64, u64)> = progress
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(at, bytes)| (at.parse().unwrap(), bytes.parse().unwrap()))
        .collect();
    let at = |when: f64| progress.iter().rev().find(|(at, _)| *at <= when).unwrap().1 as f64;
    let mbps = |from: f64, to: f64| (at(to) - at(from)) * 8e-6 / (to - from);
    // Wide bounds: a hole that is filled brings what waited behind it at once, and a busy machine less than
    // the rate.
    assert!(mbps(0.5, 1.0) > 1.5, "alone: {}", mbps(0.5, 1.0));
    assert!((0.8..3.7).contains(&mbps(1.5, 3.0)), "beside the burst: {}", mbps(1.5, 3.0));
    assert!((0.3..1.8).contains(&mbps(4.0, 6.0)), "on the slower path: {}", mbps(4.0, 6.0));
    assert!(mbps(6.3, 7.0) < 0.1, "while the path is down: {}", mbps(6.2, 7.0));
    // When TCP tries again depends on its time-out, which the full queue before made long.
    assert!(at(10.0) > at(7.0), "when it is up again: {}", mbps(7.0, 10.0));
    let burst = summary.flows.iter().find(|flow| flow.flow == "burst").unwrap();
    // iperf3 agrees with its other end over the same full queue: where that drops a SYN, a second is gone.
    assert!((0.2e6..1.1e6).contains(&burst.mean_bps), "{burst:?}");
}

/// What a run could leave on the machine.
fn traces() -> BTreeSet<String> {
    let mut traces = BTreeSet::new();
    for directory in ["/run/netns", "/var/run/netns", "/sys/class/net"] {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        traces.extend(entries.map(|entry| entry.path().display().to_string()));
    }
    for name in ["tcp_allowed_congestion_control", "tcp_congestion_control", "ip_forward"] {
        let value = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        traces.insert(format!("{name}={value}"));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    traces.extend(mounts.lines().map(String::from));
    traces
}

/// Processes with this word in their command line, by id.
fn processes(word: &str) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has = |path: &PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    all.filter(has).collect()
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(15), "never: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a run whose processes carry `word`, and waits until its client runs.
fn start(directory: &Path, word: &str) -> Child {
    let scenario = directory.join("scenario.toml");
    fs::write(
        &scenario,
        format!(
            r#"
            [run]
            duration = "60s"
            [[server]]
            node = "origin"
            command = ["sh", "-c", "iperf3 -s; : {word}-server"]
            [[flow]]
            name = "beside"
            kind = "tcp"
            from = "origin"
            to = "client"
            [[client]]
            name = "idle"
            command = ["sh", "-c", "sleep 3600; : {word}-client"]
            {}
            "#,
            network("6M", "10ms", 50, "")
        ),
    )
    .unwrap();
    // Where the tests run in a shell's background SIGINT is ignored, and would be in the child.
    let child = Command::new("env")
        .arg("--default-signal=INT")
        .arg(PROGRAM)
        .arg("run")
        .arg(&scenario)
        .arg("--out")
        .arg(directory.join("out"))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the client runs", || !processes(&format!("{word}-client")).is_empty());
    child
}

#[test]
fn nothing_is_left_behind() {
    if !possible(&["iperf3"]) {
        return;
    }
    let before = traces();
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let directory = tempfile::tempdir().unwrap();
        let word = format!("testbed-{}-{}", std::process::id(), signal.as_raw());
        let mut child = start(directory.path(), &word);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(!child.wait().unwrap().success());
        eventually("all processes are gone", || processes(&word).is_empty());
        // Other tests' runs are in namespaces of their own and leave no traces here either.
        assert_eq!(traces(), before, "after {signal:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let scenario = r#"
        [run]
        duration = "5s"
        [[server]]
        node = "origin"
        command = ["iperf3", "-s"]
        [[client]]
        name = "idle"
        command = ["true"]
    "#;
    run(directory.path(), &(scenario.to_owned() + &network("6M", "10ms", 50, "")));
    assert_eq!(traces(), before, "after a run to its end");
}

#[test]
fn a_program_that_is_not_there_is_a_clear_error() {
    if !possible(&[]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.toml");
    let text = r#"
        [run]
        duration = "5s"
        [[server]]
        node = "origin"
        command = ["no-such-server"]
        [[client]]
        name = "idle"
        command = ["true"]
    "#;
    fs::write(&file, text.to_owned() + &network("6M", "10ms", 50, "")).unwrap();
    let output = Command::new(PROGRAM)
        .arg("run")
        .arg(&file)
        .arg("--out")
        .arg(directory.path().join("out"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("no-such-server"), "{text}");
}

/// Live media through these programs, over a path that loses some.
fn live(sender: &str, receiver: &str, loss: f64) -> anabranch_testbed::report::Live {
    let directory = tempfile::tempdir().unwrap();
    let words = |line: &str| format!("{:?}", line.split(' ').collect::<Vec<_>>());
    let summary = run(
        directory.path(),
        &format!(
            r#"
            [run]
            duration = "40s"
            seed = 3
            [film]
            rate = "200k"
            duration = "12s"
            [live]
            latency = "400ms"
            settle = "2s"
            [[server]]
            node = "origin"
            [[client]]
            name = "relay"
            command = {}
            sender = {}
            output = "none"
            {}
            "#,
            words(receiver),
            words(sender),
            network("1M", "20ms", 50, &format!("loss = {loss}\nreverse = {{ loss = 0 }}"))
        ),
    );
    summary.live.unwrap()
}

#[test]
fn live_media_is_judged() {
    if !possible(&["srt-live-transmit", "ffmpeg"]) {
        return;
    }
    // UDP to UDP this program only passes on: what is lost stays lost.
    let (sender, receiver) = (
        "srt-live-transmit -q udp://:5000 udp://{address1}:9000",
        "srt-live-transmit -q udp://:9000 udp://127.0.0.1:6000",
    );
    let whole = live(sender, receiver, 0.0);
    assert!(whole.carried() && whole.discontinuities == 0, "{whole:?}");
    // Half the round-trip time, and what a busy machine adds.
    assert!((20.0..200.0).contains(&whole.latency.median_ms), "{whole:?}");
    // Headers of 28 bytes for 1316.
    assert!((1.01..1.04).contains(&whole.overhead), "{whole:?}");
    let damaged = live(sender, receiver, 0.2);
    let share = damaged.missing as f64 / damaged.packets as f64;
    assert!((0.1..0.3).contains(&share), "{damaged:?}");
    assert!(
        damaged.discontinuities > 0 && damaged.decoder_errors.is_some_and(|errors| errors > 0),
        "{damaged:?}"
    );
    // The same losses under a protocol that asks for what is lost.
    let repaired = live(
        "srt-live-transmit -q udp://:5000 srt://{address1}:9000?mode=caller&latency={latency}",
        "srt-live-transmit -q srt://:9000?mode=listener&latency={latency} udp://127.0.0.1:6000",
        0.2,
    );
    assert!(repaired.missing < damaged.missing / 4 && repaired.overhead > 1.1, "{repaired:?}");
    assert!(repaired.latency.median_ms >= 390.0, "{repaired:?}");
}

/// Bound to one path's interface, a program reaches the far end's address on the other path, and is answered.
#[test]
fn a_program_bound_to_an_interface_is_answered_there() {
    if !possible(&["iperf3"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let more = r#"
        [[link]]
        name = "other"
        from = "origin"
        to = "client"
        rate = "4M"
        delay = "10ms"
        reverse = { name = "other-back" }
    "#;
    let summary = run(
        directory.path(),
        &format!(
            r#"{}
            [run]
            duration = "20s"
            [[server]]
            node = "origin"
            command = ["sh", "-c", "iperf3 -s & sleep 2; iperf3 -c 10.77.0.1 -p 5202 --bind-dev path1 -t 2 -b 1M; wait"]
            [[client]]
            name = "iperf3"
            command = ["iperf3", "-s", "-p", "5202", "-1", "-J"]
            output = "none""#,
            network("4M", "10ms", 50, more)
        ),
    );
    let bps = log_as_json(directory.path())["end"]["sum_received"]["bits_per_second"].as_f64();
    assert!(summary.exit_code == Some(0) && bps.is_some_and(|bps| bps > 0.5e6), "{summary:?} {bps:?}");
    let arrived = |path: usize| summary.flows.iter().filter(|flow| flow.flow == "film").nth(path).unwrap();
    assert!(arrived(0).packets_sent == 0 && arrived(1).packets_sent > 100, "{:?}", summary.flows);
}
