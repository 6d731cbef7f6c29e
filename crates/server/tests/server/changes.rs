//! Files that change while they are sent: what comes is one version, or it is cut off.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anabranch_protocol::stripe::QueueEnd;
use anabranch_protocol::stripe::frame::Frame;
use anabranch_server::{Config, Shape};
use anabranch_units::Rate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Running, receive_head, send};
use crate::stripe;

fn slow(config: &mut Config) {
    config.shape = Some(Shape { rate: Some(Rate::from_mbps(20)), ..Shape::default() });
}

/// A file that has lain there for a while, so that a change has another time.
fn put_old(server: &Running, length: usize) -> Vec<u8> {
    let film = server.put("film.mp4", length);
    let file = OpenOptions::new().write(true).open(server.root().join("film.mp4")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(10)).unwrap();
    film
}

/// A connection on which the answer has begun.
async fn begin(server: &Running) -> TcpStream {
    let mut stream = server.connect().await;
    send(&mut stream, "GET /film.mp4", "Connection: close\r\n").await;
    receive_head(&mut stream).await;
    stream
}

async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut body = Vec::new();
    let _ = stream.read_to_end(&mut body).await;
    body
}

fn overwrite(path: &Path, length: usize) {
    OpenOptions::new().write(true).open(path).unwrap().write_all(&vec![0xEE; length]).unwrap();
}

#[tokio::test]
async fn a_file_that_is_overwritten_is_not_sent_as_a_mix_of_two() {
    let server = Running::start(slow);
    let film = put_old(&server, 1 << 20);
    let stream = begin(&server).await;
    overwrite(&server.root().join("film.mp4"), film.len());
    let body = rest(stream).await;
    assert!(body.len() < film.len() && body == film[..body.len()], "{} bytes", body.len());
}

#[tokio::test]
async fn a_file_that_is_replaced_is_sent_as_it_was() {
    let server = Running::start(slow);
    let film = put_old(&server, 500_000);
    let stream = begin(&server).await;
    fs::write(server.root().join("new"), vec![0xEE; 500_000]).unwrap();
    fs::rename(server.root().join("new"), server.root().join("film.mp4")).unwrap();
    assert!(rest(stream).await == film);
    assert!(server.get("/film.mp4", "").await.body == vec![0xEE; 500_000]);
}

#[tokio::test]
async fn a_recording_that_goes_on_is_sent_as_long_as_was_promised() {
    let server = Running::start(slow);
    let film = put_old(&server, 500_000);
    let stream = begin(&server).await;
    let mut file = OpenOptions::new().append(true).open(server.root().join("film.mp4")).unwrap();
    file.write_all(&[1; 1000]).unwrap();
    assert!(rest(stream).await == film);
}

#[tokio::test]
async fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let server = Running::start(|_| {});
    let made = std::process::Command::new("mkfifo").arg(server.root().join("film.mp4")).status().unwrap();
    assert!(made.success());
    assert_eq!(server.get("/film.mp4", "").await.status, 404);
}

#[tokio::test]
async fn a_group_whose_file_is_overwritten_gets_no_mix() {
    let server = Running::start(slow);
    let film = put_old(&server, 1 << 20);
    let (mut stream, head) = stripe::join(&server, "/film.mp4", stripe::TOKEN).await;
    assert!(head.contains(" 101 "), "{head}");
    let mut order = Vec::new();
    Frame::Want { range: 0..film.len() as u64, priority: QueueEnd::Back }.encode(&mut order);
    stream.write_all(&order).await.unwrap();
    let mut input = vec![0];
    stream.read_exact(&mut input).await.unwrap();
    overwrite(&server.root().join("film.mp4"), film.len());
    input.extend(rest(stream).await);
    let (mut at, mut got) = (0, 0);
    while let Some((Frame::Data { offset, payload, .. }, length)) = Frame::decode(&input[at..]).unwrap() {
        let start = usize::try_from(offset).unwrap();
        assert!(payload == &film[start..start + payload.len()], "the first version only");
        at += length;
        got += payload.len();
    }
    assert!(0 < got && got < film.len(), "{got} bytes");
}
