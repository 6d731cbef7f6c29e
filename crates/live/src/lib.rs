//! Live media over a lossy network: `anabranch send` and `anabranch receive` without their sockets and
//! clocks.
//!
//! - [`Sender`]: what leaves next, and on which connection: new media, what was lost, parity.
//! - [`Receiver`]: puts the stream together again within its latency budget, and reports.
//! - [`fec`]: parity for blocks of packets, and how much of it.
//! - [`control`]: the rate of a connection.
//! - [`ts`]: a byte stream in packets of whole MPEG-TS packets, and the rate of a file by its clock.
//!
//! The sender and the receiver share no clock. A driver moves datagrams between them: see [`Sender`] and
//! [`Receiver`].

pub mod control;
pub mod fec;
pub mod ts;

mod arrivals;
mod buffer;
mod bursts;
mod clock;
mod connection;
mod demand;
mod fitting;
mod history;
mod levels;
mod one_connection;
mod queue;
mod receiver;
mod round_trips;
mod sender;
mod sharing;

pub use buffer::Counts;
pub use receiver::{Receiver, ReceiverStatus};
pub use sender::{ConnectionStatus, Fec, Sender, SenderStatus, Settings};

pub use anabranch_congestion::aggregate::Scheme;
pub use anabranch_protocol::ConnectionId;

use anabranch_units::{Bytes, Duration, Rate};

/// What a datagram of QUIC has around its payload on an IPv4 network: IP 20 bytes, UDP 8, QUIC's short header
/// with an identifier of 4 bytes and a packet number of 2, the frame's type and length 3, AEAD tag 16.
pub const PACKET_OVERHEAD: Bytes = Bytes::new(20 + 8 + 7 + 3 + 16);
/// Shortest latency budget.
pub const LEAST_LATENCY: Duration = Duration::from_millis(10);
/// Longest latency budget: times are told in 32 bits, and what waits is in memory.
pub const MOST_LATENCY: Duration = Duration::from_secs(60);
/// A connection from which nothing has come for so long is dead. Its rate and its part of the stream are gone long
/// before; until then a link that answers again is used at once, as after a tunnel, and one that is dead has to be
/// connected anew.
pub const IDLE: Duration = Duration::from_secs(30);
/// What an end keeps of a stream is bounded by what comes at this rate within the latency,
const FASTEST: Rate = Rate::from_mbps(1200);
/// but no less
const LEAST_KEPT: Bytes = Bytes::mib(16);
/// and no more than this.
const MOST_KEPT: Bytes = Bytes::mib(256);
/// What a packet takes in memory besides its bytes, about.
const KEPT_OVERHEAD: Bytes = Bytes::new(128);
/// Most connections of a sender.
pub const MAX_CONNECTIONS: usize = 64;

/// A way into the network that connections share, such as an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UplinkId(pub u32);

/// Most that an end keeps of a stream with this latency.
fn most_kept(latency: Duration) -> Bytes {
    FASTEST.amount_in(latency).clamp(LEAST_KEPT, MOST_KEPT)
}

/// What keeping a packet costs.
fn kept_size(payload: &[u8]) -> Bytes {
    Bytes::of(payload.len()) + KEPT_OVERHEAD
}
