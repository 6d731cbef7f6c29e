//! What is known about the way from the sender to here.

use anabranch_units::{Bytes, Duration};

/// What the kernel knows about the way from the sender to here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Round-trip time as the receiver sees it, queueing included; until it is known, that of the handshake.
    pub rtt: Duration,
    /// Payload of the largest segment that arrived (the kernel's guess before the first).
    pub mss: Bytes,
    /// Packets that arrived out of order so far, or with QUIC those that are lost: zero without loss, rises
    /// with it. `None` before Linux 5.4.
    pub out_of_order: Option<u64>,
    /// The window that is advertised now; `None` before Linux 6.2.
    pub window: Option<Bytes>,
    /// How long ago payload arrived last.
    pub last_data_received: Duration,
    /// Segments with payload that arrived so far.
    pub data_segments_received: u64,
}
