//! The scripted server does what its script says.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anabranch_testkit::{Answer, Asked, ScriptedServer, status};

const REQUEST: &[u8] = b"GET /film.bin HTTP/1.1\r\nRange: bytes=2-3\r\n\r\n";

/// What comes on a connection of its own until it ends, and how it ends.
fn ask(server: &ScriptedServer) -> (String, std::io::Result<usize>) {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(REQUEST).unwrap();
    let mut came = Vec::new();
    let end = stream.read_to_end(&mut came);
    (String::from_utf8(came).unwrap(), end)
}

#[test]
fn the_steps_of_an_answer_are_taken_in_their_order() {
    let server = ScriptedServer::of(b"a film", |asked| match asked.number {
        0 => asked.good().hang_up(),
        1 => Answer::default().send("one ").wait(Duration::from_millis(5)).send("two").hang_up(),
        2 => Answer::default().send_in_pieces("three", 2, Duration::ZERO).then(status("204", "")).hang_up(),
        3 => status("404 Not Found", "Connection: close\r\n"),
        _ => Answer::default().send("cut").reset(),
    });
    let (came, end) = ask(&server);
    assert!(came.starts_with("HTTP/1.1 206 ") && came.contains("bytes 2-3/6\r\n"), "{came}");
    assert!(came.ends_with("\r\n\r\nfi") && end.is_ok(), "{came}");
    assert_eq!(ask(&server).0, "one two");
    assert_eq!(ask(&server).0, "threeHTTP/1.1 204\r\nContent-Length: 0\r\n\r\n");
    assert!(ask(&server).0.starts_with("HTTP/1.1 404 Not Found\r\n"));
    let (came, end) = ask(&server);
    assert_eq!((came.as_str(), end.unwrap_err().kind()), ("cut", ErrorKind::ConnectionReset));
    assert_eq!((server.requests(), server.connections().len()), (5, 5));
}

#[test]
fn a_server_that_is_dropped_cuts_its_connections_and_frees_its_port() {
    let server = ScriptedServer::start(|_| Answer::default().send("and then nothing").silence());
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(REQUEST).unwrap();
    stream.read_exact(&mut [0; 16]).unwrap();
    assert_eq!((server.open(), server.most_open()), (1, 1));
    let address = server.address;
    drop(server);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    assert!(TcpStream::connect(address).is_err());
    let back = ScriptedServer::at(address, b"a film", Asked::whole);
    assert_eq!(back.address, address);
}
