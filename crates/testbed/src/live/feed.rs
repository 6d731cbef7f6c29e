//! Feeds a film to a sender as it is due.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use super::{DATAGRAM, Media, hurry};

/// The longest sleep, so that a stop is noticed.
const LONGEST_SLEEP: StdDuration = StdDuration::from_millis(100);

/// What was fed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// When each datagram of the film was sent, from the start of the feed, in the film's order.
    pub at: Vec<StdDuration>,
}

/// Sends `media` over a connected socket, a datagram whenever it is due, until its end or `stop`.
pub fn feed(socket: &UdpSocket, media: &Media, start: Instant, stop: &AtomicBool) -> Fed {
    hurry();
    let mut fed = Fed::default();
    for (datagram, due) in media.bytes.chunks(DATAGRAM).zip(&media.due) {
        while let Some(wait) = due.checked_sub(start.elapsed()).filter(|wait| !wait.is_zero()) {
            if stop.load(Relaxed) {
                return fed;
            }
            thread::sleep(wait.min(LONGEST_SLEEP));
        }
        fed.at.push(start.elapsed());
        // A sender that is gone refuses; its packets are then missing, which is the result. What is refused
        // is told at the next datagram, which has not left then.
        let _ = socket.send(datagram).or_else(|_| socket.send(datagram));
    }
    fed
}

#[cfg(test)]
mod tests {
    use anabranch_units::Rate;

    use super::*;

    #[test]
    fn a_film_is_fed_whole_and_no_earlier_than_it_is_due() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let film: Vec<u8> = (0..DATAGRAM * 5 + 188).map(|at| (at % 251) as u8).collect();
        let media = Media::constant(film, Rate::from_mbps(1));
        let fed = feed(&sender, &media, Instant::now(), &AtomicBool::new(false));
        assert!(fed.at.len() == 6 && fed.at.iter().zip(&media.due).all(|(at, due)| at >= due), "{fed:?}");
        receiver.set_read_timeout(Some(StdDuration::from_secs(5))).unwrap();
        let (mut whole, mut buffer) = (Vec::new(), [0; 2048]);
        while whole.len() < media.bytes.len() {
            let length = receiver.recv(&mut buffer).unwrap();
            whole.extend_from_slice(&buffer[..length]);
        }
        assert!(whole == media.bytes);
    }

    #[test]
    fn a_stop_is_noticed() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        let media = Media::constant(vec![0; DATAGRAM * 2], Rate::from_bps(1));
        let fed = feed(&socket, &media, Instant::now(), &AtomicBool::new(true));
        assert_eq!(fed.at.len(), 1);
    }
}
