//! What a group hears of its members.

use anabranch_units::{Duration, Time};

/// An acknowledgement of some of what a member sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When it arrived.
    pub now: Time,
    /// The round trip that it measured.
    pub rtt: Option<Duration>,
    /// The member's smoothed round-trip time.
    pub srtt: Duration,
}
