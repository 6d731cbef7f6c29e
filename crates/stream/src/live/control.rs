//! The rate of a connection: which algorithm of [`congestion`] decides it.

use congestion::tfrc;
use units::{Bytes, Duration};

use super::PACKET_OVERHEAD;
use super::wire::{MAX_PAYLOAD, MEDIA_HEADER};

/// Timers of operating systems are so coarse.
const TIMER: Duration = Duration::from_millis(1);

/// A packet of the stream as the network sees it: what the equation calls s.
pub fn packet_size() -> Bytes {
    Bytes::of(MEDIA_HEADER + MAX_PAYLOAD) + PACKET_OVERHEAD
}

/// The parameters of a connection's rate control, for a sender and a receiver that have a real timer.
pub fn parameters() -> tfrc::Parameters {
    tfrc::Parameters { granularity: TIMER, ..tfrc::Parameters::RFC5348 }
}
