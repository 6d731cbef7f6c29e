//! Live media over QUIC datagrams (RFC 9221): the sockets and the clock of [`anabranch_live`].
//!
//! Each connection of the sender is a QUIC connection of its own, so that each has its own path and its own
//! numbers. QUIC's congestion control does not limit it: the control of the rate in [`anabranch_live`]
//! decides when a datagram leaves. `docs/live-protocol.md` describes the protocol.
//!
//! A [`Sender`] is given packets of a stream and a [`Receiver`] gives them out; where they come from and go
//! to (UDP, a file, a player) is the caller's. Nothing is decided here: what leaves when, and on which
//! connection, is `anabranch-live`'s.

mod control;
mod receiver;
mod sender;
mod socket;
mod tls;
mod unlimited;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_units::Time;
use quinn::{AckFrequencyConfig, Endpoint, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use tokio::time::timeout;

pub use receiver::{MOST_SENDERS, PacketStream, Receiver, ReceiverError, ReceiverEvent, ReceiverSettings};
pub use sender::{GroupName, GroupNameError, GroupSettings, SendError, Sender, SenderEvent, SenderSettings};
pub use tls::{Fingerprint, Identity, Trusted};

/// Something is said so often on a connection that has nothing to say.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Datagrams that wait in QUIC: the rate decides before, so these are few.
const DATAGRAM_BUFFER: usize = 1024 * 1024;
/// Events and packets that a driver takes before it does what is due.
const AT_ONCE: usize = 64;
/// Packets that QUIC may leave unacknowledged, for 25 ms at the most: nothing waits for its acknowledgements
/// of datagrams.
const UNACKNOWLEDGED: VarInt = VarInt::from_u32(50);
/// Longest time for a handshake, our own included; the sender's attempts are shorter.
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
    /// The sender goes before its stream has ended, and does not come back.
    pub(super) const LEFT: VarInt = VarInt::from_u32(4);
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
        Time::ZERO + anabranch_units::Duration::from(self.0.elapsed())
    }

    /// Waits until then; at the least one turn of the timer, so that no mistake makes this a busy loop.
    async fn sleep_until(self, at: Time) {
        let left = at.since(self.now()).max(anabranch_units::Duration::from_micros(50));
        tokio::time::sleep(left.min(anabranch_units::Duration::from_secs(3600)).into()).await;
    }
}

/// What is around a datagram of the stream in one of UDP, as quinn reckons: a short header with an identifier
/// of four bytes and the longest packet number (RFC 9000, section 17.3.1), the tag of AEAD, and the longest
/// frame around a datagram (RFC 9221).
const AROUND: usize = 1 + 4 + 4 + 16 + 9;
/// A whole packet of the stream in a datagram of UDP.
const WHOLE: u16 = 1391;
const _: () = assert!(anabranch_protocol::live::wire::MAX_DATAGRAM + AROUND == WHOLE as usize);
/// Every path of QUIC carries so long ones (RFC 9000, section 14).
const LEAST_WHOLE: u16 = 1200;
/// The search for the longest datagram that a path carries (RFC 8899) begins with the 1200 bytes that every
/// path of QUIC does, tries what lies half way and then [`WHOLE`]: five, six and seven packets of a transport
/// stream.
const LEAST_STEP: u16 = 90;
/// It is tried again so long after it was found, and after a path carried less than before.
const SEARCH_AGAIN: Duration = Duration::from_secs(10);

/// What a round trip is taken for until it is measured: the first packets of a handshake are sent again after three
/// times as long, and each time after twice as long as before. A third of RFC 9002's (section 6.2.2): where a burst of
/// losses takes the first packets, a stream that has begun waits for seconds. What is sent again in vain, where a round
/// trip takes longer, are a few packets.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Closes all connections, and waits until the other ends can know it.
async fn leave(endpoint: &Endpoint, code: VarInt, why: &[u8]) {
    endpoint.close(code, why);
    let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
}

fn transport() -> TransportConfig {
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.ack_eliciting_threshold(UNACKNOWLEDGED);
    let mut transport = TransportConfig::default();
    transport
        .initial_rtt(INITIAL_RTT)
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(4096))
        .receive_window(VarInt::from_u32(16 * 1024))
        .send_window(16 * 1024)
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER))
        .datagram_send_buffer_size(DATAGRAM_BUFFER)
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(IdleTimeout::try_from(Duration::from(anabranch_live::IDLE)).ok())
        .ack_frequency_config(Some(acknowledgements))
        .congestion_controller_factory(Arc::new(unlimited::Unlimited))
        // Datagrams that the rate lets leave at the same time, as those of a burst that came, are one call of the system
        // where their lengths are nearly equal.
        .enable_segmentation_offload(true)
        // What a receiver says is short.
        .mtu_discovery_config(None);
    transport
}

/// The same for the end whose datagrams are long: the path is known to carry so much.
fn sending_transport(carries: u16) -> TransportConfig {
    let mut search = MtuDiscoveryConfig::default();
    search
        .upper_bound(WHOLE)
        .minimum_change(LEAST_STEP)
        .interval(SEARCH_AGAIN)
        .black_hole_cooldown(SEARCH_AGAIN);
    let mut transport = transport();
    transport.initial_mtu(carries).mtu_discovery_config(Some(search));
    transport
}
