//! What is known over HTTP/3 of a path that loses packets.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;

use common::{World, ends_with, film};
use serde_json::Value;

/// Smaller packets are acknowledgements and the like.
const SMALLEST_WITH_DATA: usize = 1000;
/// The handshake and the beginning of the film.
const SPARED: u64 = 40;

/// A way to the server that drops one in `out_of` packets with the film. Its threads end with the test.
fn relay(server: SocketAddr, out_of: u64) -> SocketAddr {
    let outside = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = outside.local_addr().unwrap();
    thread::spawn(move || {
        let mut clients: Vec<(SocketAddr, Arc<UdpSocket>)> = Vec::new();
        let mut packet = [0; 65536];
        loop {
            let (length, from) = outside.recv_from(&mut packet).unwrap();
            let known = clients.iter().find(|(client, _)| *client == from).map(|(_, inside)| inside.clone());
            let inside = known.unwrap_or_else(|| {
                let inside = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
                inside.connect(server).unwrap();
                clients.push((from, inside.clone()));
                let (outside, back) = (outside.clone(), inside.clone());
                thread::spawn(move || pass_on(&back, &outside, from, out_of));
                inside
            });
            inside.send(&packet[..length]).unwrap();
        }
    });
    address
}

fn pass_on(inside: &UdpSocket, outside: &UdpSocket, client: SocketAddr, out_of: u64) {
    let mut packet = [0; 65536];
    let mut with_data = 0;
    while let Ok(length) = inside.recv(&mut packet) {
        with_data += u64::from(length >= SMALLEST_WITH_DATA);
        let dropped = length >= SMALLEST_WITH_DATA && with_data > SPARED && with_data % out_of == 0;
        if !dropped {
            outside.send_to(&packet[..length], client).unwrap();
        }
    }
}

/// The losses that a run tells of its connections, second by second.
fn told_losses(out_of: u64) -> Vec<Value> {
    let world = World::new(&film(4_000_000, 1));
    world.certificate();
    let server = world.serve_h3(&["--shape-rate", "8M"]);
    let port = server.url.trim_end_matches('/').rsplit_once(':').unwrap().1.parse::<u16>().unwrap();
    let way = relay(([127, 0, 0, 1], port).into(), out_of);
    let options = ["--http3-only", "--cacert", "cert.pem", "--stats", "stats", "--connections", "1"];
    let url = format!("https://{way}/film.bin");
    ends_with(&world.fetch(&options).arg(url).output().unwrap(), 0);
    let intervals = world.stats("stats").into_iter().filter(|line| line["event"] == "interval");
    intervals
        .flat_map(|line| line["connections"].as_array().unwrap().clone())
        .map(|one| one["loss_rate"].clone())
        .collect()
}

#[test]
fn what_a_path_loses_over_http3_is_told_and_what_a_sender_leaves_out_is_not() {
    let losses = told_losses(50);
    let last: Vec<_> = losses.iter().skip(1).map(|loss| loss.as_f64().unwrap()).collect();
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    // Of some 70 packets in a tenth of a second more than one loss is a single event.
    assert!(last.len() >= 2 && (0.006..0.04).contains(&mean), "{losses:?}");
    let without = told_losses(u64::MAX);
    assert!(without.len() >= 3 && without.iter().all(|loss| *loss == 0.0), "{without:?}");
}
