//! How often a rate controller measures.

use anabranch_units::Duration;

/// Length of a measuring interval (delta of MultiTCP section 6.3, phi of TCP-ROME section III-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// The same always.
    Fixed(Duration),
    /// This many round-trip times.
    RoundTrips(u32),
}

impl Interval {
    /// No interval is shorter: on a path without delay a controller would do nothing but measure. Ours.
    pub const LEAST: Duration = Duration::from_millis(10);
    /// No interval is longer, whatever a broken path reports as its round-trip time. Ours.
    pub const MOST: Duration = Duration::from_secs(10);

    /// The interval at a mean round-trip time of `rtt`.
    pub fn at(self, rtt: Duration) -> Duration {
        let length = match self {
            Self::Fixed(length) => length,
            Self::RoundTrips(count) => rtt * u64::from(count),
        };
        length.clamp(Self::LEAST, Self::MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_the_round_trip_time_within_bounds() {
        let rtt = Duration::from_millis(80);
        assert_eq!(Interval::Fixed(Duration::from_millis(300)).at(rtt), Duration::from_millis(300));
        assert_eq!(Interval::RoundTrips(6).at(rtt), Duration::from_millis(480));
        assert_eq!(Interval::RoundTrips(6).at(Duration::ZERO), Interval::LEAST);
        assert_eq!(Interval::RoundTrips(6).at(Duration::MAX), Interval::MOST);
    }
}
