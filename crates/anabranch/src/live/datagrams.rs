//! What comes piece by piece, whether anybody takes it or not.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

#[cfg(feature = "srt")]
use super::srt;
use crate::failure::Failure;

/// Packets of SRT that are taken at once where so many have come.
#[cfg(feature = "srt")]
const AT_ONCE: usize = 64;
/// A datagram of UDP has fewer bytes, and so have several that the system gives as one.
const LONGEST: usize = 64 * 1024;
/// How often it is looked for datagrams that come close together.
const LOOK: Duration = Duration::from_millis(4);
/// They come close together when so many have come in a row within that time of the one before,
const CLOSE: u32 = 8;
/// and no longer when so many looks in a row have found nothing.
const VAIN: u32 = 3;
/// What the system has to hold from one look to the next: what comes at 1.2 Gbit/s, each datagram in memory of twice its
/// size. Linux tells twice of what was asked for (socket(7)).
const HOLDS: usize = 3 << 20;

pub(super) enum Datagrams {
    Udp(Box<Inlet>, SocketAddr),
    #[cfg(feature = "srt")]
    Srt(srt::Packets),
}

impl Datagrams {
    /// Waits for the next one, and gives it to `take` with those that have come with it. Nothing is lost when it is
    /// given up.
    ///
    /// # Errors
    /// Nothing can be received any more.
    pub(super) async fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), Failure> {
        match self {
            #[cfg(feature = "srt")]
            Self::Srt(packets) => {
                take(&packets.receive().await?);
                for _ in 1..AT_ONCE {
                    let Some(packet) = packets.receive_now() else { break };
                    take(&packet);
                }
                Ok(())
            }
            Self::Udp(inlet, address) => loop {
                match inlet.receive(&mut take).await {
                    // Another program's answer that does not concern us.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                    received => return received.map_err(|error| cannot_receive(*address, &error)),
                }
            },
        }
    }
}

/// A socket of UDP, read with one call of the system for all datagrams that have come. Room to send wakes nobody.
///
/// While they come close together it is looked for them every [`LOOK`], and nothing wakes for each, as a network card
/// moderates its interrupts. What is found together leaves together.
pub(super) struct Inlet {
    socket: Arc<UdpSocket>,
    /// The system tells that something has come; `None`: it is looked for.
    told: Option<AsyncFd<Arc<UdpSocket>>>,
    state: UdpSocketState,
    /// Of `LONGEST` for each that is read at once; the system has memory only for what was written to.
    buffer: Vec<u8>,
    /// Whether the system holds what comes from one look to the next.
    may_look: bool,
    /// When it is looked next, or when that would have been.
    next: Instant,
    /// How often in a row something came before that, or nothing when it was looked.
    in_a_row: u32,
}

impl Inlet {
    /// # Errors
    /// The system does not take it, such as for want of memory.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let may_look = SockRef::from(&socket).recv_buffer_size()? >= HOLDS;
        let socket = Arc::new(socket);
        let told = Some(told(&socket)?);
        let buffer = vec![0; LONGEST * BATCH_SIZE];
        Ok(Self { socket, told, state, buffer, may_look, next: Instant::now(), in_a_row: 0 })
    }

    async fn receive(&mut self, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let count = loop {
            let received = match &self.told {
                Some(told) => {
                    let mut ready = told.readable().await?;
                    let received = read(&self.state, &self.socket, &mut self.buffer, &mut meta);
                    // What comes from here on is told anew.
                    if received.as_ref().map_or_else(is_nothing, |count| *count < BATCH_SIZE) {
                        ready.clear_ready();
                    }
                    received
                }
                None => {
                    sleep_until(self.next).await;
                    read(&self.state, &self.socket, &mut self.buffer, &mut meta)
                }
            };
            match received {
                Err(error) if is_nothing(&error) => self.found_nothing()?,
                received => break received?,
            }
        };
        self.found(count);
        for (buffer, meta) in self.buffer.chunks(LONGEST).zip(&meta[..count]) {
            buffer[..meta.len].chunks(meta.stride.max(1)).for_each(&mut *take);
        }
        Ok(())
    }

    fn found_nothing(&mut self) -> io::Result<()> {
        if self.told.is_none() {
            self.in_a_row += 1;
            self.next = Instant::now() + LOOK;
            if self.in_a_row >= VAIN {
                (self.told, self.in_a_row) = (Some(told(&self.socket)?), 0);
            }
        }
        Ok(())
    }

    fn found(&mut self, count: usize) {
        let now = Instant::now();
        if self.told.is_some() {
            self.in_a_row = if now < self.next { self.in_a_row + 1 } else { 0 };
            if self.may_look && self.in_a_row >= CLOSE {
                self.told = None;
            }
        }
        if self.told.is_none() {
            self.in_a_row = 0;
        }
        // There may be more.
        self.next = if count < BATCH_SIZE { now + LOOK } else { now };
    }
}

/// The system tells what comes to a socket.
fn told(socket: &Arc<UdpSocket>) -> io::Result<AsyncFd<Arc<UdpSocket>>> {
    #[expect(
        deprecated,
        reason = "what takes its place is unsafe code; a std socket keeps its descriptor as it has to"
    )]
    AsyncFd::with_interest(socket.clone(), Interest::READABLE)
}

/// What has come, at most as much as there is place for.
fn read(
    state: &UdpSocketState,
    socket: &UdpSocket,
    buffer: &mut [u8],
    meta: &mut [RecvMeta; BATCH_SIZE],
) -> io::Result<usize> {
    let mut buffers = buffer.chunks_mut(LONGEST).map(IoSliceMut::new);
    let mut buffers: [_; BATCH_SIZE] =
        std::array::from_fn(|_| buffers.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
    state.recv(socket.into(), &mut buffers, meta)
}

fn is_nothing(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Why there is no input any more.
pub(super) fn cannot_receive(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::failed(format_args!("cannot receive at udp://{address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn datagrams_that_have_come_are_taken_together_and_keep_their_bounds() {
        let inlet = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (to, from) = (inlet.local_addr().unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut inlet = Inlet::new(inlet).unwrap();
        let mut bursts = super::super::bursts::Bursts::new(from, to);
        // Those of one length leave as one, and come as one where the system can do that.
        let lengths = [vec![1316; 9], vec![188, 1316, 65_000, 1, 1400]].concat();
        for (number, length) in (0u8..).zip(&lengths) {
            bursts.push(&vec![number; *length].into()).await;
        }
        bursts.flush().await;
        let mut taken = Vec::new();
        inlet.receive(&mut |datagram| taken.push(datagram.to_vec())).await.unwrap();
        let sent: Vec<Vec<u8>> = (0u8..).zip(lengths).map(|(number, length)| vec![number; length]).collect();
        assert!(taken == sent, "{:?}", taken.iter().map(Vec::len).collect::<Vec<_>>());
    }

    /// An inlet, and who sends to it.
    fn inlet(may_look: bool) -> (Inlet, UdpSocket) {
        let (socket, sender) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        sender.connect(socket.local_addr().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        (Inlet { may_look, ..Inlet::new(socket).unwrap() }, sender)
    }

    /// Receives once; answers how many came.
    async fn receive(inlet: &mut Inlet) -> usize {
        let mut count = 0;
        inlet.receive(&mut |_| count += 1).await.unwrap();
        count
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_close_together_is_gathered_for_a_few_milliseconds() {
        let (mut inlet, sender) = inlet(true);
        for _ in 0..=CLOSE {
            assert!(inlet.told.is_some());
            sender.send(&[1]).unwrap();
            assert_eq!(receive(&mut inlet).await, 1);
        }
        let began = Instant::now();
        (0..5).for_each(|number| assert_eq!(sender.send(&[number]).unwrap(), 1));
        assert_eq!(receive(&mut inlet).await, 5);
        assert_eq!(began.elapsed(), LOOK);
        // More than is read at once does not wait for the next look.
        (0..BATCH_SIZE + 3).for_each(|_| assert_eq!(sender.send(&[1]).unwrap(), 1));
        assert_eq!(receive(&mut inlet).await, BATCH_SIZE);
        assert_eq!(receive(&mut inlet).await, 3);
        assert_eq!(began.elapsed(), LOOK * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_a_pause_comes_at_once() {
        let (mut inlet, sender) = inlet(true);
        for _ in 0..=CLOSE {
            sender.send(&[1]).unwrap();
            receive(&mut inlet).await;
        }
        assert!(inlet.told.is_none());
        let nothing = tokio::time::timeout(LOOK * (VAIN + 1), receive(&mut inlet)).await;
        assert!(nothing.is_err() && inlet.told.is_some());
        let began = Instant::now();
        for _ in 0..CLOSE * 2 {
            tokio::time::advance(LOOK).await;
            sender.send(&[1]).unwrap();
            assert_eq!(receive(&mut inlet).await, 1);
        }
        assert_eq!(began.elapsed(), LOOK * CLOSE * 2, "nothing waited");
    }

    #[tokio::test(start_paused = true)]
    async fn a_system_that_cannot_hold_it_tells_of_everything() {
        let (mut inlet, sender) = inlet(false);
        for _ in 0..CLOSE * 3 {
            sender.send(&[1]).unwrap();
            assert_eq!(receive(&mut inlet).await, 1);
        }
        assert!(inlet.told.is_some());
    }
}
