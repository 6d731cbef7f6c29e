//! Several groups of the kernel's connections, from the command line. It needs root.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../kernel/tests/machine/mod.rs"]
mod machine;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use machine::is_alone;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(10);

fn anabranch(arguments: &str) -> Output {
    let words = arguments.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_anabranch")).args(words).output().unwrap()
}

fn succeeds(arguments: &str) -> String {
    let output = anabranch(arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Takes the control away, whatever happens.
struct Unloaded;

impl Drop for Unloaded {
    fn drop(&mut self) {
        anabranch("cc unload group");
    }
}

/// Loads the group; `None`, and a line that says why, where this machine cannot.
fn load(weights: &str) -> Option<Unloaded> {
    let loaded = anabranch(&format!("cc load group --weights {weights}"));
    if loaded.status.success() {
        return Some(Unloaded);
    }
    let why = String::from_utf8(loaded.stderr).unwrap();
    assert!(
        ["lets only root", "BTF", "6.4", "BPF file system"].iter().any(|known| why.contains(known)),
        "{why}"
    );
    anabranch_testkit::skipped(why.trim());
    None
}

/// A connection under the control, and what takes all that it sends.
fn connect(listener: &TcpListener) -> TcpStream {
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    socket2::SockRef::from(&stream).set_tcp_congestion(b"group").unwrap();
    stream.write_all(b"I have a control.").unwrap();
    let (mut other, _) = listener.accept().unwrap();
    thread::spawn(move || while other.read(&mut [0; 1000]).is_ok_and(|got| got > 0) {});
    stream
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The group that a connection is a member of, by its end here.
fn group_of(local: SocketAddr) -> Option<String> {
    let flows = lines(&succeeds("cc status group --json"));
    let own = flows.into_iter().find(|flow| flow["local"] == local.to_string())?;
    own["weight"].as_f64()?;
    Some(own["group"].as_str()?.to_owned())
}

/// The groups and how many members they have.
fn members() -> Vec<(String, u64)> {
    let groups = lines(&succeeds("cc status --groups --json"));
    let told =
        |group: &Value| (group["group"].as_str().unwrap().to_owned(), group["members"].as_u64().unwrap());
    groups.iter().map(told).collect()
}

#[test]
fn rules_say_which_group_a_connection_is_in() {
    if !is_alone("rules_say_which_group_a_connection_is_in") {
        return;
    }
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, second, _] = listeners.each_ref().map(|one| one.local_addr().unwrap().port());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weights.toml");
    let path = path.to_str().unwrap();
    let write = |groups: [&str; 2]| {
        let rule = |port, group| format!("[[rule]]\nremote_port = {port}\nweight = 4\ngroup = \"{group}\"\n");
        fs::write(path, rule(first, groups[0]) + &rule(second, groups[1])).unwrap();
    };
    write(["uplink", "campus"]);
    let Some(_control) = load(path) else { return };
    let mut streams = listeners.each_ref().map(connect);
    let locals = streams.each_ref().map(|stream| stream.local_addr().unwrap());
    assert_eq!(locals.map(|local| group_of(local).unwrap()), ["uplink", "campus", "default"]);
    let one_each = ["default", "uplink", "campus"].map(|name| (name.to_owned(), 1));
    assert_eq!(members(), one_each);
    let metrics = succeeds("cc status --prometheus");
    for line in [
        "anabranch_kernel_connections{control=\"group\"} 3.0".to_owned(),
        "anabranch_kernel_group_members{group=\"campus\"} 1.0".to_owned(),
        format!("local=\"{}\",remote=\"127.0.0.1:{first}\",group=\"uplink\"}} 4.0", locals[0]),
    ] {
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }

    // Another group from the next acknowledgement on. That of the other one keeps its name and its members.
    write(["campus", "campus"]);
    succeeds(&format!("cc set group --weights {path}"));
    let began = Instant::now();
    while group_of(locals[0]).as_deref() != Some("campus") || members()[1].1 != 2 {
        assert!(began.elapsed() < LIMIT, "{:?}", members());
        streams[0].write_all(&[7; 100]).unwrap();
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(members(), [("default".to_owned(), 1), ("campus".to_owned(), 2)]);
    drop(streams);
    let is_empty = || members().iter().all(|(_, members)| *members == 0);
    while !is_empty() {
        assert!(began.elapsed() < LIMIT, "{:?}", members());
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn groups_are_for_the_group() {
    let refused = anabranch("cc status ttfwc --groups");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
