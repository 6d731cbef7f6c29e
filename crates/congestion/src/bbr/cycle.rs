//! Where a flow stands in its probes.

use anabranch_units::{Duration, Time};

/// `BBR.ack_phase` (section 2.14): what acknowledgements tell of the probe for bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
    /// Nothing.
    #[default]
    None,
    /// Sending at the estimated bandwidth to fill the pipe.
    Refilling,
    /// What is in flight rises.
    Starting,
    /// What was sent in the probe is answered.
    Coming,
    /// The probe has stopped, and what was sent in it is still answered.
    Stopping,
}

/// Where the flow stands between two probes.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pub feedback: Feedback,
    /// `BBR.is_bw_probe_sample`.
    pub is_probe_sample: bool,
    /// `BBR.prev_probe_too_high`.
    pub was_too_high: bool,
    /// `BBR.prev_probe_precautionary`.
    pub was_precautionary: bool,
    /// `BBR.rounds_since_probe_up`.
    pub rounds_since_probe_up: u64,
    /// `BBR.bw_probe_wait`.
    pub wait: Duration,
    /// `BBR.cycle_stamp`.
    pub stamp: Time,
    /// `C.is_cwnd_limited`.
    pub is_cwnd_limited: bool,
}

/// How far a probe has come.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeRtt {
    /// `BBR.probe_rtt_done_stamp`; `None` while too much is in flight.
    pub done_at: Option<Time>,
    /// `BBR.probe_rtt_round_done`.
    pub has_round: bool,
}
