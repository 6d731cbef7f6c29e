//! `anabranch serve` as an operator sees it: few open files, rotated logs, signals.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use common::{Server, World, wait_until};
use rustix::process::Signal;

/// A server that is started with other limits of open files.
fn with_files(world: &World, limits: &str, options: &[&str]) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limits} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_anabranch")]);
    Server::by(command, &world.path("served"), options)
}

/// The status of the answer to a request on a connection of its own.
fn status(server: &Server) -> u16 {
    let address = server.url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(b"GET /film.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("an answer in time");
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

/// Connections that say nothing.
fn silent(server: &Server, count: usize) -> Vec<TcpStream> {
    let address = server.url.trim_start_matches("http://").trim_end_matches('/');
    (0..count).map(|_| TcpStream::connect(address).unwrap()).collect()
}

#[test]
fn more_clients_than_usual_open_files_are_served_at_once() {
    let world = World::new(b"film");
    let server = with_files(&world, "-Sn 100", &["--header-timeout", "60s"]);
    let _silent = silent(&server, 150);
    assert_eq!(status(&server), 200);
}

#[test]
fn where_the_system_permits_few_open_files_it_is_told_and_nobody_waits() {
    let world = World::new(b"film");
    let server = with_files(&world, "-n 200", &["--header-timeout", "60s"]);
    let said = server.before().join("");
    assert!(
        said.contains("at most 36 connections at a time in place of 4096") && said.contains("ulimit"),
        "{said}"
    );
    // Who says nothing gives its place to who asks.
    let _silent = silent(&server, 80);
    assert_eq!(status(&server), 200);
    server.signal(Signal::TERM);
}

#[test]
fn a_rotated_log_goes_on_under_its_name_and_signals_end_nothing() {
    let world = World::new(b"film");
    let (log, old) = (world.path("access.log"), world.path("access.log.1"));
    let mut server = world.serve(&["--access-log", log.to_str().unwrap(), "--verbose"]);
    let has = |path: &std::path::Path, count: usize| {
        fs::read_to_string(path).is_ok_and(|text| text.lines().count() == count)
    };
    assert_eq!(status(&server), 200);
    assert!(server.says("GET /film.bin").contains("127.0.0.1: GET /film.bin: 200, 4 bytes"));
    wait_until("the line", || has(&log, 1));
    for signal in [Signal::HUP, Signal::USR1] {
        fs::rename(&log, &old).unwrap();
        server.signal(signal);
        wait_until("the new log", || log.exists());
        assert_eq!(status(&server), 200);
        wait_until("the next line", || has(&log, 1) && has(&old, 1));
    }
    assert_eq!(server.stop(Signal::TERM), Some(143));
}

#[test]
fn a_signal_for_a_log_that_is_not_there_ends_nothing() {
    let world = World::new(b"film");
    let server = world.serve(&[]);
    server.signal(Signal::USR1);
    assert_eq!(status(&server), 200);
}
