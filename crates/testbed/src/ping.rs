//! Echo requests beside the client: round-trip times with the queueing that it causes.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// The sockets of a run see each other's answers; there is one pinger, and this is it.
const IDENTIFIER: u16 = 0x6162;
/// How long answers are waited for after the last request.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// One echo request.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// When it was sent.
    pub sent: Instant,
    /// How long the answer took; `None` when none came.
    pub rtt: Option<Duration>,
}

/// Sends a request every `interval` until `stop`. To be called in the client's namespace.
///
/// # Errors
/// When the raw socket cannot be opened.
pub fn ping(to: Ipv4Addr, interval: Duration, stop: &AtomicBool) -> io::Result<Vec<Echo>> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
    socket.connect(&SockAddr::from(SocketAddrV4::new(to, 0)))?;
    let mut echoes: Vec<Echo> = Vec::new();
    let mut next = Instant::now();
    let mut end = None;
    loop {
        let now = Instant::now();
        if stop.load(Relaxed) {
            let end = *end.get_or_insert(now + LAST_WAIT);
            if now >= end || echoes.iter().all(|echo| echo.rtt.is_some()) {
                return Ok(echoes);
            }
            next = end;
        } else if now >= next {
            // A request that finds the interface's queue full is a lost one.
            let _ = socket.send(&request(sequence(echoes.len())));
            echoes.push(Echo { sent: now, rtt: None });
            next += interval;
        }
        let wait =
            next.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), LAST_WAIT / 10);
        socket.set_read_timeout(Some(wait))?;
        let mut packet = [0; 256];
        let Ok(length) = (&socket).read(&mut packet) else { continue };
        if let Some(answered) = answer(&packet[..length]) {
            let arrived = Instant::now();
            // Sequence numbers wrap: an answer belongs to the latest request of its number.
            let mut recent = echoes.iter_mut().enumerate().rev().take(1 << 16);
            if let Some((_, echo)) = recent.find(|(at, _)| sequence(*at) == answered) {
                echo.rtt.get_or_insert(arrived - echo.sent);
            }
        }
    }
}

fn sequence(index: usize) -> u16 {
    u16::try_from(index & 0xffff).unwrap_or_default()
}

/// An echo request (RFC 792) with eight bytes of data.
fn request(sequence: u16) -> [u8; 16] {
    let mut message = [0; 16];
    message[0] = ECHO_REQUEST;
    message[4..6].copy_from_slice(&IDENTIFIER.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    let checksum = !checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// The ones' complement sum of RFC 1071, for an even number of bytes.
fn checksum(message: &[u8]) -> u16 {
    message.chunks_exact(2).fold(0, |sum: u16, word| {
        let (sum, carry) = sum.overflowing_add(u16::from_be_bytes([word[0], word[1]]));
        sum + u16::from(carry)
    })
}

/// The sequence number of an answer to one of our requests; a raw socket gets the IPv4 header as well.
fn answer(packet: &[u8]) -> Option<u16> {
    let message = packet.get(usize::from(packet.first()? & 15) * 4..)?;
    match message.get(..8)? {
        [ECHO_REPLY, 0, _, _, a, b, c, d] if [*a, *b] == IDENTIFIER.to_be_bytes() => {
            Some(u16::from_be_bytes([*c, *d]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_valid_checksum() {
        for number in [0, 1, 0xfffe, 0xffff] {
            assert_eq!(checksum(&request(number)), 0xffff);
        }
    }

    #[test]
    fn only_answers_to_our_requests_count() {
        let mut packet = [0; 36];
        packet[0] = 0x45;
        packet[20..].copy_from_slice(&request(7));
        assert_eq!(answer(&packet), None);
        packet[20] = ECHO_REPLY;
        assert_eq!(answer(&packet), Some(7));
        packet[24] ^= 1;
        assert_eq!(answer(&packet), None);
        for length in 0..packet.len() {
            let _ = answer(&packet[..length]);
        }
    }
}
