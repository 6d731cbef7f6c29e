//! A peer that is connected.

use std::fmt;
use std::time::{Duration, Instant};

use super::door::Ticket;
use super::error::Error;
use super::library::{Fault, Setting};
use super::socket::Socket;

/// Bytes of a message that is sent, as SRT's live mode has them (SRTO_PAYLOADSIZE): seven packets of a transport
/// stream.
pub const MOST_MESSAGE: usize = 1316;
/// Bytes that a message that comes may have: what fits into a datagram of 1500 bytes.
pub(super) const LONGEST: usize = 1456;
/// Between two looks at what a peer that is gone has left.
const LOOK: Duration = Duration::from_millis(5);

/// A connection. Dropped, it is closed.
pub struct Peer {
    socket: Socket,
    name: String,
    buffer: Box<[u8; LONGEST]>,
    /// How long the library keeps what has come.
    latency: Duration,
    gone: Option<Instant>,
    _ticket: Ticket,
}

impl Peer {
    pub(super) fn new(socket: Socket, name: String, ticket: Ticket) -> Self {
        let latency = milliseconds(&socket, Setting::Latency);
        Self { socket, name, buffer: Box::new([0; LONGEST]), latency, gone: None, _ticket: ticket }
    }

    /// Waits so long at the most for what comes next: none in that time is `None`. Blocks.
    ///
    /// # Errors
    /// [`Error::Gone`] when all has been told that came before the peer went.
    pub fn receive(&mut self, patience: Duration) -> Result<Option<&[u8]>, Error> {
        let until = Instant::now() + patience;
        let length = loop {
            let now = Instant::now();
            // A peer that is gone leaves what is not due yet.
            if self.gone.is_none() && self.socket.is_broken() {
                self.gone = Some(now);
            }
            match self.socket.libsrt.receive(self.socket.id, &mut self.buffer[..]) {
                Ok(length) => break length,
                Err(_) if let Some(gone) = self.gone => {
                    if now.duration_since(gone) > self.latency + LOOK * 10 {
                        return Err(Error::Gone);
                    }
                    std::thread::sleep(LOOK);
                }
                Err(Fault::Waits) => {
                    if self.socket.wait(until.saturating_duration_since(now)).is_err() {
                        self.gone = Some(now);
                    }
                }
                Err(Fault::Other(_)) => self.gone = Some(now),
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        };
        Ok(Some(&self.buffer[..length]))
    }

    /// Sends at most [`MOST_MESSAGE`] bytes, without waiting. `false`: there is no room, and it is not sent.
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn send(&self, message: &[u8]) -> Result<bool, Error> {
        match self.socket.libsrt.send(self.socket.id, message) {
            Ok(()) => Ok(true),
            Err(Fault::Waits) => Ok(false),
            Err(Fault::Other(_)) => Err(Error::Gone),
        }
    }

    /// Whether it is gone.
    pub fn is_gone(&self) -> bool {
        self.socket.is_broken()
    }

    /// Whether all that was sent has come there, which keeps it for [`Self::latency_there`].
    pub fn has_everything(&self) -> bool {
        self.socket.libsrt.number(self.socket.id, Setting::Unacknowledged).unwrap_or(0) <= 0
    }

    /// How long the peer keeps what has come until it hands it on.
    pub fn latency_there(&self) -> Duration {
        milliseconds(&self.socket, Setting::PeerLatency)
    }
}

/// Who it is: an address of IP, or the URL that was called.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.name).finish()
    }
}

fn milliseconds(socket: &Socket, setting: Setting) -> Duration {
    let number = socket.libsrt.number(socket.id, setting).unwrap_or(0);
    Duration::from_millis(u64::try_from(number).unwrap_or(0))
}
