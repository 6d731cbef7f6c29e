//! What the control decides, and why.

use std::fmt;

use anabranch_units::Duration;

/// Why a number of connections was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The round-trip time is near its least: the link is not in full use.
    RoomLeft,
    /// Far more connections than the sender has use for.
    NotNeeded,
    /// Fewer than the sender needs, and not so many that others would starve.
    Needed,
    /// The round-trip time is beyond what is borne: the link is in full use.
    Queue,
    /// The queue had grown far beyond what is borne, and is drained for a while; see
    /// [`Law::Proportional`](super::Law::Proportional).
    Draining,
    /// All round trips stayed long, and equally long but for jitter: that is no queue but another path, and its least
    /// round-trip time is the new measure.
    RouteChanged,
    /// The stream gives way for a moment, or goes on after it: what it takes for the route may be a queue.
    RouteLookedAt,
    /// The stream gives way for a moment, or goes on after it: its losses may be those of a queue.
    LossesLookedAt,
    /// What is lost is lost in a queue that the stream helps to overflow.
    LossesOfQueue,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoomLeft => "the round-trip time is near its least, so the link has room",
            Self::NotNeeded => "the equation allows more than is needed",
            Self::Needed => "the equation allows less than is needed",
            Self::Queue => "the round-trip time tells of a queue",
            Self::Draining => "a long queue is drained",
            Self::RouteLookedAt => "whether the route is as long as it seems is looked at",
            Self::LossesLookedAt => "whose losses they are is looked at",
            Self::LossesOfQueue => "what is lost is lost in a queue, so there are fewer",
            Self::RouteChanged => {
                "the round-trip time stays long and does not vary as a queue does, so the route has changed"
            }
        })
    }
}

/// What an average round-trip time led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// How many connections are to be open: `target` in whole connections, at least one.
    pub connections: u32,
    /// The number before it is rounded (n), at least one.
    pub target: f64,
    /// The average (ave_rtt).
    pub average: Duration,
    /// The least average so far (rtt_min).
    pub least: Duration,
    /// Why.
    pub reason: Reason,
}
