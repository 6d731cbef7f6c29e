//! The constants of the draft, with its names.

use anabranch_units::Duration;

/// `BBR.PacingMarginPercent` (section 2.5): how far below the bandwidth packets are paced, as what stays.
pub(super) const PACING_MARGIN: f64 = 0.99;
/// `BBR.LossThresh` (section 2.8): more losses in a round trip than this are congestion.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// `BBR.Beta` (section 2.8): what of a bound stays at least after a round trip with losses.
pub(super) const BETA: f64 = 0.7;
/// `BBR.Headroom` (section 2.8): what of the long-term bound is left to others.
pub(super) const HEADROOM: f64 = 0.15;
/// `BBR.MinPipeCwnd` (section 2.8) in segments.
pub(super) const LEAST_WINDOW_SEGMENTS: f64 = 4.0;
/// `BBRStartupFullLossCnt` (section 5.3.1.3).
pub(super) const STARTUP_LOSSES: u32 = 6;
/// `BBR.ExtraAckedFilterLen` (section 2.12) in round trips; in Startup one.
pub(super) const EXTRA_ACKED_ROUNDS: u64 = 10;
/// `BBR.MinRTTFilterLen` (section 2.16.1).
pub(super) const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// `BBR.ProbeRTTInterval` (section 2.16.2).
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// `BBR.ProbeRTTDuration` (section 2.16.2).
pub(super) const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// Growth that is none (section 5.3.1.2): less than a quarter.
pub(super) const FULL_PIPE_GROWTH: f64 = 1.25;
/// So many round trips without growth fill the pipe (section 5.3.1.2).
pub(super) const FULL_PIPE_ROUNDS: u32 = 3;
/// Drain ends after so many round trips (section 5.3.2).
pub(super) const DRAIN_ROUNDS: u64 = 3;
/// `T_reno_bound` (section 5.3.3.8) in round trips.
pub(super) const RENO_ROUNDS: f64 = 63.0;
/// The least time between two probes for bandwidth (`T_bbr`, section 5.3.3.8); up to a second is added.
pub(super) const LEAST_PROBE_WAIT: Duration = Duration::from_secs(2);
/// Send quanta in `BBR.offload_budget` (section 5.5.8).
pub(super) const OFFLOAD_QUANTA: f64 = 3.0;
/// The largest send quantum in bytes (section 5.6.3).
pub(super) const LARGEST_QUANTUM: f64 = 65_536.0;
