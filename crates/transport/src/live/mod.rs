//! Live media over QUIC datagrams (RFC 9221): the sockets and the clock of [`stream::live`].
//!
//! Each connection of the sender is a QUIC connection of its own, so that each has its own path and its own numbers. QUIC's
//! congestion control does not limit it: the control of the rate in [`stream::live`] decides when a datagram leaves.
//! `docs/live-protocol.md` describes the protocol.

mod control;
mod receiver;
mod sender;
mod tls;
mod unlimited;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::{IdleTimeout, TransportConfig, VarInt};
use units::Time;

pub use receiver::{Packets, Receiver, ReceiverError, ReceiverEvent, ReceiverSettings};
pub use sender::{SendError, Sender, SenderEvent, SenderSettings};
pub use tls::{Fingerprint, Identity, Trusted};

/// A connection from which nothing has come for so long is dead. Its rate and its part of the stream are gone long before.
const IDLE: Duration = Duration::from_secs(8);
/// Something is said so often on a connection that has nothing to say.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Datagrams that wait in QUIC: the rate decides before, so these are few.
const DATAGRAM_BUFFER: usize = 256 * 1024;
/// Longest time for a handshake, our own included.
const HANDSHAKE: Duration = Duration::from_secs(8);

/// Why a connection is closed, in QUIC's close (RFC 9000, section 19.19).
mod code {
    use quinn::VarInt;

    /// The stream has ended.
    pub(super) const DONE: VarInt = VarInt::from_u32(0);
    /// The token is wrong.
    pub(super) const TOKEN: VarInt = VarInt::from_u32(1);
    /// Another sender is there.
    pub(super) const BUSY: VarInt = VarInt::from_u32(2);
    /// What came is not our protocol.
    pub(super) const PROTOCOL: VarInt = VarInt::from_u32(3);
}

/// The clock of one end: it begins when the end does, and never goes back.
#[derive(Clone, Copy, Debug)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    /// Not zero: cores keep times before now.
    fn now(self) -> Time {
        Time::ZERO + units::Duration::from(self.0.elapsed())
    }

    /// Waits until then; at the least one turn of the timer, so that no mistake makes this a busy loop.
    async fn sleep_until(self, at: Time) {
        let left = at.since(self.now()).max(units::Duration::from_micros(50));
        tokio::time::sleep(left.min(units::Duration::from_secs(3600)).into()).await;
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(4096))
        .receive_window(VarInt::from_u32(16 * 1024))
        .send_window(16 * 1024)
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER))
        .datagram_send_buffer_size(DATAGRAM_BUFFER)
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .congestion_controller_factory(Arc::new(unlimited::Unlimited));
    Arc::new(transport)
}
