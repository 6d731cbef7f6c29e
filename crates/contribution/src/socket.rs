//! A socket for QUIC that wakes nobody because a datagram has left it.
//!
//! tokio's asks the system to be told whenever there is room in the socket again: each datagram that leaves the
//! machine, or on loopback is read, then wakes the program once more. Here a full socket, which is rare as the rate
//! decides before, is tried again after a while.
//!
//! Another socket of the system can take its place. quinn's own way (`Endpoint::rebind`) ends its driver where a
//! connection is being told at that moment that its other end does not know it, as when a receiver was killed: it looks
//! for what it has forgotten already (quinn-proto 0.11.19, `Endpoint::handle_event`).

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Sleep, sleep};

/// A full socket is tried again after so long.
const FULL: Duration = Duration::from_millis(1);

/// tokio's runtime with such sockets.
#[derive(Debug)]
pub(super) struct Quiet;

impl Runtime for Quiet {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(QuietSocket::new(socket)?))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

/// A socket of the system.
#[derive(Debug)]
struct Socket {
    socket: AsyncFd<UdpSocket>,
    state: UdpSocketState,
}

impl Socket {
    fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        #[expect(
            deprecated,
            reason = "what takes its place is unsafe code; a std socket keeps its descriptor as it has to"
        )]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Self { socket, state })
    }

    /// What the system does not take in one call leaves one by one: of several in one call it wants each to fit into a
    /// packet, also where a longer one may go in fragments (`udp_send_skb` of Linux).
    fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let socket = self.socket.get_ref();
        let Some(length) = transmit.segment_size.filter(|length| *length > 0) else {
            return self.state.send(socket.into(), transmit);
        };
        match self.state.try_send(socket.into(), transmit) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {}
            sent => return sent,
        }
        let mut is_any_sent = false;
        for contents in transmit.contents.chunks(length) {
            let one = Transmit { contents, segment_size: None, ..*transmit };
            match self.state.send(socket.into(), &one) {
                Ok(()) => is_any_sent = true,
                // To be told of a full socket is to be asked to send all of them again.
                Err(_) if is_any_sent => break,
                full => return full,
            }
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            let room = buffers.len().min(meta.len());
            let received = ready.try_io(|socket| self.state.recv(socket.get_ref().into(), buffers, meta));
            // `Err`: nothing is there.
            if let Ok(received) = received {
                if received.as_ref().is_ok_and(|count| *count < room) {
                    // There was no more. What comes from here on is told anew.
                    ready.clear_ready();
                }
                return Poll::Ready(received);
            }
        }
    }
}

/// The system's socket of the moment.
#[derive(Debug)]
pub(super) struct QuietSocket {
    sockets: Mutex<Sockets>,
    is_full: AtomicBool,
}

#[derive(Debug)]
struct Sockets {
    newest: Arc<Socket>,
    /// The one before it, until something has come through the newest.
    before: Option<Arc<Socket>>,
    /// Who waits for what comes.
    reader: Option<Waker>,
}

impl QuietSocket {
    /// # Errors
    /// The system does not take it, such as for want of memory.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let sockets = Sockets { newest: Arc::new(Socket::new(socket)?), before: None, reader: None };
        Ok(Self { sockets: Mutex::new(sockets), is_full: AtomicBool::new(false) })
    }

    /// What is sent from now on leaves through this one. What still comes through the one before is read as well.
    ///
    /// # Errors
    /// As of [`Self::new`]; the one before stays.
    pub(super) fn replace(&self, socket: UdpSocket) -> io::Result<()> {
        let socket = Arc::new(Socket::new(socket)?);
        let mut sockets = self.sockets();
        sockets.before = Some(std::mem::replace(&mut sockets.newest, socket));
        if let Some(reader) = sockets.reader.take() {
            reader.wake();
        }
        Ok(())
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn newest(&self) -> Arc<Socket> {
        self.sockets().newest.clone()
    }
}

impl AsyncUdpSocket for QuietSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.newest().send(transmit);
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.is_full.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let (newest, before) = {
            let mut sockets = self.sockets();
            sockets.reader = Some(cx.waker().clone());
            (sockets.newest.clone(), sockets.before.clone())
        };
        // An error of the one before says nothing.
        if let Some(before) = before
            && let Poll::Ready(Ok(received)) = before.poll_recv(cx, buffers, meta)
        {
            return Poll::Ready(Ok(received));
        }
        let received = ready!(newest.poll_recv(cx, buffers, meta));
        if received.is_ok() {
            self.sockets().before = None;
        }
        Poll::Ready(received)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.newest().socket.get_ref().local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.newest().state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.newest().state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.newest().state.gro_segments()
    }
}

/// Waits for room in a socket that was full.
struct Room {
    socket: Arc<QuietSocket>,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Room").field(&self.socket).finish()
    }
}

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { socket, waiting } = self.get_mut();
        if socket.is_full.load(Ordering::Relaxed) || waiting.is_some() {
            let waits = waiting.get_or_insert_with(|| Box::pin(sleep(FULL)));
            ready!(Future::poll(waits.as_mut(), cx));
            *waiting = None;
            socket.is_full.store(false, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_the_system_does_not_take_in_one_call_leaves_one_by_one() {
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        from.set_nonblocking(true).unwrap();
        to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let socket = QuietSocket::new(from).unwrap();
        let (mut buffer, destination) = ([0; 100], to.local_addr().unwrap());
        // As many as fit into one call, and more than Linux takes in one.
        for count in [3, 200u8] {
            let contents: Vec<u8> = (0..count).flat_map(|index| [index; 20]).collect();
            let transmit = Transmit {
                destination,
                ecn: None,
                contents: &contents,
                segment_size: Some(20),
                src_ip: None,
            };
            socket.try_send(&transmit).unwrap();
            for index in 0..count {
                assert_eq!(
                    (to.recv(&mut buffer).unwrap(), buffer[..20] == [index; 20]),
                    (20, true),
                    "{index}"
                );
            }
        }
    }
}
