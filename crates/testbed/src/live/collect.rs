//! Collects what a receiver sends, with its times.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration as StdDuration, Instant};

use socket2::{Domain, Socket, Type};

use super::hurry;

/// The socket's receive buffer: what waits for the collector must not be lost.
const SOCKET_BUFFER: usize = 4 << 20;
/// How often the collector looks whether to stop.
const LOOK: StdDuration = StdDuration::from_millis(50);
/// Largest datagram.
const LARGEST: usize = 65_536;

/// What a receiver sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// All bytes, in the order in which they came.
    pub bytes: Vec<u8>,
    /// Per datagram, when it came, and how many bytes there were with it.
    pub datagrams: Vec<(Instant, usize)>,
    /// Whether there was more than the limit, and the rest was left.
    pub truncated: bool,
}

/// A thread that collects.
#[derive(Debug)]
pub struct Collector {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    thread: JoinHandle<Collected>,
    address: SocketAddrV4,
}

impl Collector {
    /// Opens the port on the loopback of the calling thread's namespace, and collects up to `limit` bytes.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(port: u16, limit: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        // The system may give less; a live stream's datagrams are taken one by one as they come.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        socket.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())?;
        let socket = UdpSocket::from(socket);
        socket.set_read_timeout(Some(LOOK))?;
        let port = socket.local_addr()?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicUsize::new(0));
        let (told, counted) = (Arc::clone(&stop), Arc::clone(&count));
        let thread = thread::spawn(move || collect(&socket, limit, &counted, &told));
        Ok(Self { stop, count, thread, address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port) })
    }

    /// Where it collects.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// How many bytes there are until now.
    pub fn bytes(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Ends it, with what it has.
    pub fn stop(self) -> Collected {
        self.stop.store(true, Relaxed);
        // A panic of the thread was told on its own; nothing was collected then.
        self.thread.join().unwrap_or_default()
    }
}

fn collect(socket: &UdpSocket, limit: usize, count: &AtomicUsize, stop: &AtomicBool) -> Collected {
    hurry();
    let mut collected = Collected::default();
    let mut buffer = vec![0; LARGEST];
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) if collected.bytes.len() + length <= limit => {
                let now = Instant::now();
                collected.bytes.extend_from_slice(&buffer[..length]);
                collected.datagrams.push((now, collected.bytes.len()));
                count.store(collected.bytes.len(), Relaxed);
            }
            Ok(_) => collected.truncated = true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // Only when nothing waits any more.
                if stop.load(Relaxed) {
                    return collected;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return collected,
        }
        if collected.truncated && stop.load(Relaxed) {
            return collected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_kept_in_order_and_up_to_the_limit() {
        let collector = Collector::start(0, 10).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for part in ["one", "two", "three"] {
            sender.send_to(part.as_bytes(), collector.address()).unwrap();
        }
        let collected = collector.stop();
        assert_eq!(collected.bytes, b"onetwo");
        assert_eq!(collected.datagrams.iter().map(|(_, end)| *end).collect::<Vec<_>>(), [3, 6]);
        assert!(collected.truncated);
    }
}
