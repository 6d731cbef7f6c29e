//! The rate of a connection: which algorithm of [`anabranch_congestion`] decides it.

use anabranch_congestion::response::Equation;
use anabranch_congestion::tfrc;
use anabranch_protocol::live::wire::{MAX_PAYLOAD, MEDIA_HEADER};
use anabranch_units::{Bytes, Duration};

use super::PACKET_OVERHEAD;

/// Timers of operating systems are so coarse.
const TIMER: Duration = Duration::from_millis(1);

/// A report is a datagram for which both ends wake up. So many of them are enough.
const LEAST_FEEDBACK_INTERVAL: Duration = Duration::from_millis(10);

/// In such steps TCP's time-out is estimated: the least deviation, four times of which are added, is between
/// 0.75 and one.
const TIMEOUT_TICK: Duration = Duration::from_millis(50);

/// A packet of the stream as the network sees it: what the equation calls s.
pub fn packet_size() -> Bytes {
    Bytes::of(MEDIA_HEADER + MAX_PAYLOAD) + PACKET_OVERHEAD
}

/// The parameters of a connection's rate control, for a sender and a receiver that have a real timer.
///
/// What one TCP connection would get is what today's would: its window grows as CUBIC's, and it waits for
/// about a round trip and 0.2 s before it sends again. RFC 5348 reckons with Reno and four round trips, and
/// gets a small part of a link with a long queue beside CUBIC. And a stream has a rate of its own: what it
/// sent before the first loss is no measure of what the path bears.
pub fn parameters() -> tfrc::Parameters {
    tfrc::Parameters {
        granularity: TIMER,
        equation: Equation::Cubic,
        timeout: tfrc::Timeout::Coarse { tick: TIMEOUT_TICK },
        first_interval_arrived: true,
        least_feedback_interval: LEAST_FEEDBACK_INTERVAL,
        ..tfrc::Parameters::RFC5348
    }
}
