//! The states, and what each of them does with the model (the table of section 5.6.1).

/// `BBR.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Looks for the bandwidth, doubling each round trip (section 5.3.1).
    Startup,
    /// Empties the queue that this left (section 5.3.2).
    Drain,
    /// Sends slower than the path delivers (section 5.3.3.1).
    ProbeBwDown,
    /// Sends as the path delivers (section 5.3.3.2).
    ProbeBwCruise,
    /// Fills the path for a round trip, before it asks for more (section 5.3.3.3).
    ProbeBwRefill,
    /// Sends faster than the path delivers, to see whether there is more (section 5.3.3.4).
    ProbeBwUp,
    /// Sends little, to see the round trip without a queue (section 5.3.4).
    ProbeRtt,
}

impl State {
    /// `BBR.pacing_gain`.
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::ProbeBwDown => 0.9,
            Self::ProbeBwUp => 1.25,
            Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeRtt => 1.0,
        }
    }

    /// `BBR.cwnd_gain`.
    pub(super) fn cwnd_gain(self) -> f64 {
        match self {
            Self::ProbeBwUp => 2.25,
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// `IsInAProbeBWState` (section 5.3.3.9).
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    /// `IsProbingBW` (section 5.3.3.9): losses are what it asks for, and not a change of the path.
    pub(super) fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
}
