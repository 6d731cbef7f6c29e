//! A socket for QUIC that wakes nobody because a datagram has left it.
//!
//! tokio's asks the system to be told whenever there is room in the socket again: each datagram that leaves the
//! machine, or on loopback is read, then wakes the program once more. Here a full socket, which is rare as the rate
//! decides before, is tried again after a while.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
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
        let state = UdpSocketState::new((&socket).into())?;
        #[expect(
            deprecated,
            reason = "what takes its place is unsafe code; a std socket keeps its descriptor as it has to"
        )]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Arc::new(QuietSocket { socket, state, is_full: AtomicBool::new(false) }))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

#[derive(Debug)]
struct QuietSocket {
    socket: AsyncFd<UdpSocket>,
    state: UdpSocketState,
    is_full: AtomicBool,
}

impl AsyncUdpSocket for QuietSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.state.send(self.socket.get_ref().into(), transmit);
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

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.get_ref().local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
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
