//! `anabranch serve` hands over to a new run without a broken answer.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use common::{Server, World, anabranch, film, wait_until};
use rustix::process::{Pid, Signal, kill_process};

/// A request for the film on a connection of its own, whose answer has begun.
fn begin(server: &Server) -> TcpStream {
    let address = server.url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET /film.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status[9..], b"200");
    stream
}

/// The rest of an answer without its head.
fn body(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let head = rest.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    rest.split_off(head)
}

#[test]
fn a_download_goes_on_across_a_restart_and_new_requests_are_answered_by_the_new_run() {
    let film = film(400_000, 1);
    let world = World::new(&film);
    // Two seconds of answer, and no grace for it: it is the handing over that lets it end.
    let mut server = world.serve(&["--max-rate", "1600k", "--stop-grace", "0s"]);
    let long = begin(&server);
    server.signal(Signal::USR2);
    let said = server.says("serves from now on");
    let next = said.split_whitespace().find_map(|word| word.parse::<i32>().ok()).unwrap();
    let answered_by_the_next = begin(&server);
    assert!(body(long) == film);
    assert_eq!(server.ended(), Some(0));
    assert!(body(answered_by_the_next) == film);
    drop(begin(&server));
    kill_process(Pid::from_raw(next).unwrap(), Signal::TERM).unwrap();
    let address = server.url.trim_start_matches("http://").trim_end_matches('/');
    wait_until("the new run's end", || TcpStream::connect(address).is_err());
}

#[test]
fn where_the_new_run_cannot_start_the_old_one_goes_on() {
    let film = film(1000, 2);
    let world = World::new(&film);
    let mut server = world.serve(&[]);
    std::fs::rename(world.path("served"), world.path("elsewhere")).unwrap();
    server.signal(Signal::USR2);
    assert!(server.says("no other run takes over").contains("this one goes on"));
    std::fs::rename(world.path("elsewhere"), world.path("served")).unwrap();
    assert!(body(begin(&server)) == film);
}

#[test]
fn a_socket_of_systemd_is_served_and_systemd_is_told() {
    let world = World::new(b"film");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // Whoever comes before the program does is served as well.
    let early = TcpStream::connect(address).unwrap();
    let notified = UnixDatagram::bind(world.path("notify")).unwrap();
    notified.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = anabranch();
    command.args(["serve", "--http", &address.to_string()]).arg(world.path("served"));
    command.env("LISTEN_FDS", "1").env("NOTIFY_SOCKET", world.path("notify")).stderr(Stdio::null());
    command.fd_mappings(vec![FdMapping { parent_fd: OwnedFd::from(socket), child_fd: 3 }]).unwrap();
    let child = Running(command.spawn().unwrap());
    drop(command);
    let mut state = [0; 100];
    let length = notified.recv(&mut state).unwrap();
    assert_eq!(std::str::from_utf8(&state[..length]).unwrap(), format!("READY=1\nMAINPID={}", child.0.id()));
    let mut stream = early;
    stream.write_all(b"GET /film.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(body(stream), b"film");
}

#[test]
fn a_socket_that_is_not_served_is_told() {
    let world = World::new(b"film");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = anabranch();
    command.args(["serve", "--http", "127.0.0.2:0"]).arg(world.path("served")).env("LISTEN_FDS", "1");
    command.fd_mappings(vec![FdMapping { parent_fd: OwnedFd::from(socket), child_fd: 3 }]).unwrap();
    let said = common::ends_with(&command.output().unwrap(), 2);
    assert!(said.contains("nothing is to be served there"), "{said}");
}

/// A program that is ended with the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
