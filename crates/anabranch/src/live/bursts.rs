//! Datagrams of UDP that leave together: one call of the system for several of one length (segmentation offload of
//! UDP, Linux 4.18). Each stays a datagram of its own.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

/// Most datagrams in a burst, and most bytes: what Linux takes.
#[cfg(target_os = "linux")]
const MOST: usize = 44;
#[cfg(not(target_os = "linux"))]
const MOST: usize = 1;
const MOST_BYTES: usize = 60_000;
/// A full socket is tried again after so long. To be told by the system would mean to be woken for each datagram that
/// has left.
const FULL: Duration = Duration::from_millis(1);

/// Where the datagrams go, and those that wait to leave.
pub(super) struct Bursts {
    socket: UdpSocket,
    to: SocketAddr,
    /// As many of `length` bytes as are in here, the last may be shorter.
    waiting: Vec<u8>,
    length: usize,
    count: usize,
    is_ended: bool,
    /// The length of datagrams that the system makes of what it is given, 0 when it makes one of all.
    cut: usize,
    /// Whether the system can do it.
    is_possible: bool,
}

impl Bursts {
    /// The socket does not block.
    pub(super) fn new(socket: UdpSocket, to: SocketAddr) -> Self {
        let (waiting, is_possible) = (Vec::new(), MOST > 1);
        Self { socket, to, waiting, length: 0, count: 0, is_ended: false, cut: 0, is_possible }
    }

    /// Adds a datagram; those before it leave first where it does not go with them.
    pub(super) async fn push(&mut self, packet: &Arc<[u8]>) {
        let fits = self.is_possible
            && !self.is_ended
            && packet.len() <= self.length
            && self.count < MOST
            && self.waiting.len() + packet.len() <= MOST_BYTES;
        if self.count > 0 && !fits {
            self.flush().await;
        }
        if self.count == 0 {
            self.length = packet.len();
        }
        self.is_ended = packet.len() < self.length;
        self.waiting.extend_from_slice(packet);
        self.count += 1;
    }

    /// All that wait leave. Nobody has to listen at an address of UDP: what cannot be sent is lost.
    pub(super) async fn flush(&mut self) {
        if self.count > 0 && !(self.is_possible && self.together().await) {
            for datagram in self.waiting.chunks(self.length.max(1)) {
                let _ = self.send(datagram).await;
            }
        }
        self.waiting.clear();
        (self.count, self.is_ended) = (0, false);
    }

    /// `false`: the system cannot do it, and does not try again.
    async fn together(&mut self) -> bool {
        let is_set = match self.count {
            // What is longer would be cut.
            1 => self.length <= self.cut || self.cut == 0 || self.set(0),
            _ => self.length == self.cut || self.set(self.length),
        };
        let is_sent = is_set
            && match self.send(&self.waiting).await {
                Ok(()) => true,
                // It is not for being many that one cannot be sent.
                Err(_) => self.count == 1,
            };
        if !is_sent {
            self.is_possible = false;
            self.set(0);
        }
        is_sent
    }

    async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        loop {
            match self.socket.send_to(bytes, self.to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(FULL).await,
                sent => return sent.map(drop),
            }
        }
    }

    fn set(&mut self, length: usize) -> bool {
        let is_set = cut(&self.socket, length).is_ok();
        if is_set {
            self.cut = length;
        }
        is_set
    }
}

#[cfg(target_os = "linux")]
fn cut(socket: &UdpSocket, length: usize) -> io::Result<()> {
    let length = i32::try_from(length).unwrap_or(0);
    nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::UdpGsoSegment, &length)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn cut(_: &UdpSocket, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn datagrams_keep_their_bounds_and_their_order() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap();
        for is_possible in [true, false] {
            let mut bursts = Bursts::new(UdpSocket::bind("127.0.0.1:0").unwrap(), to);
            bursts.is_possible &= is_possible;
            let lengths: Vec<usize> =
                [vec![1316; 50], vec![188], vec![1316, 1200, 1316, 1400, 1400, 7]].concat();
            for (number, length) in (0u8..).zip(&lengths) {
                bursts.push(&vec![number; *length].into()).await;
            }
            bursts.flush().await;
            assert_eq!(bursts.is_possible, is_possible && MOST > 1);
            let mut buffer = [0; 2048];
            for (number, length) in (0u8..).zip(&lengths) {
                let received = receiver.recv(&mut buffer).unwrap();
                assert_eq!(&buffer[..received], &vec![number; *length]);
            }
        }
    }
}
