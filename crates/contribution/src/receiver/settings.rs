//! What a receiver needs, and what it tells.

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_sockets::ListenError;
use tokio::sync::mpsc;

use crate::Identity;

/// Most senders at a time: what waits of each is in memory.
pub const MOST_SENDERS: usize = 64;
/// The stream, a packet at a time.
pub type PacketStream = mpsc::Receiver<Arc<[u8]>>;

/// What a receiver needs.
#[derive(Clone, Debug)]
pub struct ReceiverSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who it is.
    pub identity: Identity,
    /// What a sender has to show; empty: nothing.
    pub token: Vec<u8>,
    /// The least latency budget: the larger of this and the sender's holds.
    pub latency: anabranch_units::Duration,
    /// Whether it waits for the next sender when all streams have ended.
    pub keep: bool,
    /// Senders at a time, 1 to [`MOST_SENDERS`].
    pub senders: usize,
}

/// Why a receiver cannot work.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiverError {
    /// The address is not ours or taken.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverEvent {
    /// A sender is there.
    Sender {
        /// Where it sends from.
        from: SocketAddr,
        /// The latency budget of both.
        latency: anabranch_units::Duration,
        /// Its place, from 0: the stream goes to this one of the receiver's outputs.
        place: usize,
    },
    /// A connection of the sender is gone, and why.
    Lost(SocketAddr, String),
    /// Somebody was not let in, and why.
    Refused(SocketAddr, &'static str),
    /// The stream of the sender in this place has ended.
    Ended(usize),
}
