//! What happens to hosts and links in mid-stream: programs that are killed, smaller packets, other addresses.
//!
//! These need network namespaces (root, or unprivileged user namespaces) and skip without, saying so.
#![allow(clippy::unwrap_used, reason = "in a test a failed call is a failed test, also in its helpers")]

mod common;

use std::fs;
use std::path::Path;

use anabranch_testbed::report::Live;

use common::{network, possible, run};

/// A film of twelve seconds as datagrams of UDP, of which what is lost stays lost.
fn relayed(directory: &Path, events: &str) -> Live {
    let summary = run(
        directory,
        &format!(
            r#"
            [run]
            duration = "40s"
            [film]
            rate = "400k"
            duration = "12s"
            [live]
            latency = "400ms"
            settle = "1s"
            [[server]]
            node = "origin"
            [[client]]
            name = "relay"
            command = ["srt-live-transmit", "-q", "udp://:9000", "udp://127.0.0.1:6000"]
            sender = ["srt-live-transmit", "-q", "udp://:5000", "udp://{{address1}}:9000"]
            output = "none"
            restart = "1s"
            {events}
            {}
            "#,
            network("2M", "20ms", 50, "")
        ),
    );
    summary.live.unwrap()
}

/// A column of a file of results, line by line.
fn column(directory: &Path, file: &str, name: &str) -> Vec<f64> {
    let text = fs::read_to_string(directory.join("out").join(file)).unwrap();
    let mut lines = text.lines();
    let at = lines.next().unwrap().split(',').position(|one| one == name).unwrap();
    lines.map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

#[test]
fn a_live_program_that_is_killed_is_started_again() {
    if !possible(&["srt-live-transmit", "ffmpeg"]) {
        return;
    }
    for (node, restarts) in [("origin", (1, 0)), ("client", (0, 1))] {
        let directory = tempfile::tempdir().unwrap();
        let live = relayed(directory.path(), &format!("[[event]]\nat = \"4s\"\nkill = \"{node}\""));
        assert_eq!((live.sender_restarts, live.receiver_restarts), restarts, "{live:?}");
        let missing = column(directory.path(), "media.csv", "missing");
        let packets = column(directory.path(), "media.csv", "packets");
        // It is gone for a second, and a busy machine needs a while to start it.
        let gone = missing.iter().sum::<f64>() / packets[4];
        assert!((0.7..4.0).contains(&gone), "{node}: {missing:?} of {packets:?}");
        let around = missing[2] + missing[9] + missing[10];
        assert!(around == 0.0 && missing[4] > packets[4] / 2.0, "{node}: {missing:?} of {packets:?}");
    }
}

#[test]
fn a_router_carries_what_is_too_long_in_fragments() {
    if !possible(&["srt-live-transmit", "ffmpeg"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let live = relayed(directory.path(), "[[event]]\nat = \"6s\"\nmtu = \"1280B\"");
    // The kernel asks routers not to cut its datagrams, until one tells what it carries: that costs the first
    // of them.
    assert!((1..=14).contains(&live.missing), "{live:?}");
    let sent = column(directory.path(), "traffic.csv", "packets_sent");
    let (before, after) = (sent[2..5].iter().sum::<f64>(), sent[8..11].iter().sum::<f64>());
    assert!((1.8..2.2).contains(&(after / before)), "{sent:?}");
}

#[test]
fn a_server_is_found_at_its_new_address_only() {
    if !possible(&["nginx", "curl"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let film = directory.path().join("film.bin");
    fs::write(&film, vec![7; 100_000]).unwrap();
    // Were the old address answered too, the film would come twice.
    let script = "sleep 2; curl -sS -m 1 {url1}; curl -sS http://10.77.0.3/film.bin";
    let summary = run(
        directory.path(),
        &format!(
            r#"
            [run]
            duration = "20s"
            [film]
            rate = "1M"
            duration = "1s"
            file = "{}"
            [[server]]
            node = "origin"
            [[client]]
            name = "curl"
            command = ["sh", "-c", "{script}"]
            [[event]]
            at = "1s"
            renumber = "origin"
            {}
            "#,
            film.display(),
            network("4M", "10ms", 50, "")
        ),
    );
    assert!(summary.right && summary.complete && summary.exit_code == Some(0), "{summary:?}");
}
