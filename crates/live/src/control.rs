//! The rate of a connection: which algorithm of [`anabranch_congestion`] decides it.

use anabranch_congestion::tfrc;
use anabranch_protocol::live::wire::{MAX_PAYLOAD, MEDIA_HEADER};
use anabranch_units::{Bytes, Duration};

use super::PACKET_OVERHEAD;

/// Timers of operating systems are so coarse.
const TIMER: Duration = Duration::from_millis(1);

/// A packet of the stream as the network sees it: what the equation calls s.
pub fn packet_size() -> Bytes {
    Bytes::of(MEDIA_HEADER + MAX_PAYLOAD) + PACKET_OVERHEAD
}

/// The parameters of a connection's rate control, for a sender and a receiver that have a real timer: ours, or as
/// they were published (RFC 5348, section 4).
pub fn parameters(is_published: bool) -> tfrc::Parameters {
    let control = if is_published { tfrc::Parameters::RFC5348 } else { tfrc::Parameters::LIVE };
    tfrc::Parameters { granularity: TIMER, ..control }
}
