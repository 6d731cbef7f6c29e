//! Feeds a film to a sender at the film's constant rate.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use anabranch_units::{Bytes, Rate};

use super::{DATAGRAM, hurry};

/// The longest sleep, so that a stop is noticed.
const LONGEST_SLEEP: StdDuration = StdDuration::from_millis(100);

/// What was fed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// When each datagram of the film was sent, from the start of the feed, in the film's order.
    pub at: Vec<StdDuration>,
}

/// Sends `film` over a connected socket, a datagram whenever it is due at `rate`, until its end or `stop`.
///
/// At a constant rate the program clock references grow evenly, so that the position in the film says when a
/// packet is due.
pub fn feed(socket: &UdpSocket, film: &[u8], rate: Rate, start: Instant, stop: &AtomicBool) -> Fed {
    hurry();
    let mut fed = Fed::default();
    let mut position = Bytes::ZERO;
    for datagram in film.chunks(DATAGRAM) {
        let due = StdDuration::from(rate.time_for(position));
        while let Some(wait) = due.checked_sub(start.elapsed()).filter(|wait| !wait.is_zero()) {
            if stop.load(Relaxed) {
                return fed;
            }
            thread::sleep(wait.min(LONGEST_SLEEP));
        }
        fed.at.push(start.elapsed());
        // A sender that is gone refuses; its packets are then missing, which is the result.
        let _ = socket.send(datagram);
        position += Bytes::new(datagram.len() as u64);
    }
    fed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_film_is_fed_whole_and_no_earlier_than_its_rate_says() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let film: Vec<u8> = (0..DATAGRAM * 5 + 188).map(|at| (at % 251) as u8).collect();
        let rate = Rate::from_mbps(1);
        let fed = feed(&sender, &film, rate, Instant::now(), &AtomicBool::new(false));
        for (index, at) in fed.at.iter().enumerate() {
            assert!(
                *at >= StdDuration::from(rate.time_for(Bytes::new((index * DATAGRAM) as u64))),
                "{index}"
            );
        }
        receiver.set_read_timeout(Some(StdDuration::from_secs(5))).unwrap();
        let (mut whole, mut buffer) = (Vec::new(), [0; 2048]);
        while whole.len() < film.len() {
            let length = receiver.recv(&mut buffer).unwrap();
            whole.extend_from_slice(&buffer[..length]);
        }
        assert!(whole == film && fed.at.len() == 6);
    }

    #[test]
    fn a_stop_is_noticed() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        let fed =
            feed(&socket, &[0; DATAGRAM * 2], Rate::from_bps(1), Instant::now(), &AtomicBool::new(true));
        assert_eq!(fed.at.len(), 1);
    }
}
