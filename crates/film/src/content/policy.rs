//! What can be chosen of the content coordinator.

use anabranch_units::{Bytes, Duration};

/// When an outstanding segment counts as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRule {
    /// As published: its play time is nearer than the RTT of the connection it is assigned to.
    RoundTrip,
    /// As printed: the same, and only a connection is asked again whose RTT is below the play time, where
    /// with [`MissingRule::RoundTrip`] it is any whose RTT is below that of the first.
    PlayTime,
    /// Ours: it is expected after its play time, by what its connection has before it and delivers; a silent
    /// connection is expected to stay silent as long again as it has been.
    Expected,
}

/// How much is in flight on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// So many requests.
    Requests(usize),
    /// As published (section III-A): an amount in proportion to the congestion window. The receiver knows it
    /// by what the connection delivers in a round trip; twice that is asked for, so that the window can grow,
    /// and two requests at the least. The factor is ours.
    Windows,
}

impl InFlight {
    /// The least number of requests.
    pub fn least(self) -> usize {
        match self {
            Self::Requests(count) => count,
            Self::Windows => 2,
        }
    }
}

/// Parameters of the content coordinator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// When a segment counts as missing.
    pub missing: MissingRule,
    /// How much of a connection's throughput one segment takes: its size is rate x this time.
    pub segment_time: Duration,
    /// How much of its throughput the only connection is asked for at once, as far as that leaves enough for others.
    pub alone_time: Duration,
    /// Bounds of a segment's size. Equal bounds give the fixed size of the paper.
    pub segment_size: (Bytes, Bytes),
    /// Size of the first segment of a connection whose rate is not known.
    pub first_segment: Bytes,
    /// The same while others bring something: what it has not brought yet is a hole in what they bring.
    pub further_segment: Bytes,
    /// Requests in flight on a connection: with two, the next response follows without an idle round trip.
    pub in_flight: InFlight,
    /// How far ahead of a reader bytes are asked for (the bound on memory).
    pub look_ahead: Bytes,
    /// After so many missed segments in a row a connection is given up (0: never).
    pub abandon_after: u32,
    /// With so much play time in order before a reader, requests are as long as that allows; `None`: they
    /// never are longer than [`Policy::segment_time`] says.
    pub unhurried_from: Option<Duration>,
}

impl Policy {
    /// TCP-ROME as published: segments of one size, missing when the play time is nearer than the RTT.
    pub fn rome(segment: Bytes, look_ahead: Bytes) -> Self {
        Self {
            missing: MissingRule::RoundTrip,
            segment_time: Duration::ZERO,
            alone_time: Duration::ZERO,
            segment_size: (segment, segment),
            first_segment: segment,
            further_segment: segment,
            in_flight: InFlight::Requests(2),
            look_ahead,
            abandon_after: 8,
            unhurried_from: None,
        }
    }

    /// Ours: segments sized by time, missing when they are expected after their play time.
    pub fn expected(look_ahead: Bytes) -> Self {
        Self {
            missing: MissingRule::Expected,
            segment_time: Duration::from_millis(400),
            alone_time: Duration::ZERO,
            segment_size: (Bytes::kib(16), Bytes::mib(16)),
            first_segment: Bytes::kib(128),
            further_segment: Bytes::kib(32),
            in_flight: InFlight::Requests(2),
            look_ahead,
            abandon_after: 4,
            unhurried_from: None,
        }
    }
}
