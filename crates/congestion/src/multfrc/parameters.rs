//! What the control of the number of connections is made of.

use anabranch_units::Ratio;

use super::law::Law;
use super::path::Least;

/// What the control law is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// How the number of connections follows the round-trip time.
    pub law: Law,
    /// How many round trips make an average (m).
    pub round_trips: u32,
    /// The queueing delay that is borne, as a part of the least round-trip time (gamma).
    pub tolerance: Ratio,
    /// What the least round-trip time (rtt_min) is.
    pub least: Least,
    /// The most connections.
    pub most_connections: u32,
    /// Whether jitter is told from queues, and another route found by that (`noise.rs`, `route.rs`), see
    /// [`RouteChanged`](super::Reason::RouteChanged). Ours: the paper proposes traceroute.
    pub tells_jitter: bool,
    /// Whether the number is looked for by a part of it at a time, not by a step, while no queue is seen
    /// (`startup.rs`), and does not grow beyond what the sender has use for. In the paper neither is so.
    pub startup: bool,
}

impl Parameters {
    /// Those of the paper, section IV.B: alpha = beta = 1, gamma = 0.2, m = 50. The bound is ours.
    pub const PAPER: Self = Self {
        law: Law::InverseIncrease { increase: 1.0, decrease: 1.0 },
        round_trips: 50,
        tolerance: Ratio::new(1, 5),
        least: Least::Average,
        most_connections: 50,
        tells_jitter: false,
        startup: false,
    };

    /// Those of figure 9(b): alpha = 6, beta = 2.
    pub const FAST: Self = Self { law: Law::InverseIncrease { increase: 6.0, decrease: 2.0 }, ..Self::PAPER };

    /// Ours, for [`crate::aggregate::Scheme::AllInOne`]: [`Law::Proportional`], more often and in smaller
    /// steps. `docs/live-control.md` has the reasons.
    pub const AUTO: Self = Self {
        law: Law::Proportional { increase: 0.5, decrease: 0.3 },
        round_trips: 15,
        least: Least::Sample,
        tells_jitter: true,
        startup: true,
        ..Self::PAPER
    };
}

impl Default for Parameters {
    fn default() -> Self {
        Self::PAPER
    }
}
