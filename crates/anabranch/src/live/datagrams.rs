//! What comes piece by piece, whether anybody takes it or not.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

use quinn::udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[cfg(feature = "srt")]
use super::srt;
use crate::failure::Failure;

/// Packets of SRT that are taken at once where so many have come.
#[cfg(feature = "srt")]
const AT_ONCE: usize = 64;
/// A datagram of UDP has fewer bytes, and so have several that the system gives as one.
const LONGEST: usize = 64 * 1024;

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
pub(super) struct Inlet {
    socket: AsyncFd<UdpSocket>,
    state: UdpSocketState,
    /// Of `LONGEST` for each that is read at once; the system has memory only for what was written to.
    buffer: Vec<u8>,
}

impl Inlet {
    /// # Errors
    /// The system does not take it, such as for want of memory.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        #[expect(
            deprecated,
            reason = "what takes its place is unsafe code; a std socket keeps its descriptor as it has to"
        )]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Self { socket, state, buffer: vec![0; LONGEST * BATCH_SIZE] })
    }

    async fn receive(&mut self, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        loop {
            let mut ready = self.socket.readable().await?;
            let mut buffers = self.buffer.chunks_mut(LONGEST).map(IoSliceMut::new);
            let mut buffers: [_; BATCH_SIZE] =
                std::array::from_fn(|_| buffers.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let received =
                ready.try_io(|socket| self.state.recv(socket.get_ref().into(), &mut buffers, &mut meta));
            // Nothing is there.
            let Ok(received) = received else { continue };
            let count = received?;
            if count < BATCH_SIZE {
                // There was no more. What comes from here on is told anew.
                ready.clear_ready();
            }
            for (buffer, meta) in self.buffer.chunks(LONGEST).zip(&meta[..count]) {
                buffer[..meta.len].chunks(meta.stride.max(1)).for_each(&mut *take);
            }
            return Ok(());
        }
    }
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
}
