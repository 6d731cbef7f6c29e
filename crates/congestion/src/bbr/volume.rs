//! How much may be in flight (section 5.6.4).

use super::flow::Bbr;
use super::parameters::{BETA, LEAST_WINDOW_SEGMENTS, OFFLOAD_QUANTA};
use super::state::State;
use crate::delivery_rate::RateSample;

/// The largest window in bytes: what a `u64` and a float both hold exactly.
const LARGEST_WINDOW: f64 = (1u64 << 53) as f64;

impl Bbr {
    /// `BBR.MinPipeCwnd` in bytes.
    pub(super) fn least_window(&self) -> f64 {
        LEAST_WINDOW_SEGMENTS * self.segment
    }

    /// `BDPMultiple` (section 5.6.4.2).
    fn bdp_multiple(&self, bandwidth: f64, gain: f64) -> f64 {
        match self.min_rtt.rtt {
            Some(rtt) => gain * bandwidth * rtt.as_secs_f64(),
            None => self.initial_window,
        }
    }

    /// `QuantizationBudget` (section 5.6.4.2).
    fn quantized(&self, inflight: f64) -> f64 {
        let inflight = inflight.max(OFFLOAD_QUANTA * self.send_quantum()).max(self.least_window());
        if self.state == State::ProbeBwUp { inflight + 2.0 * self.segment } else { inflight }
    }

    /// `Inflight` (section 5.6.4.2) at this bandwidth.
    pub(super) fn inflight_at(&self, bandwidth: f64) -> f64 {
        self.quantized(self.bdp_multiple(bandwidth, 1.0))
    }

    /// `BBR.bdp`.
    pub(super) fn bdp(&self) -> f64 {
        self.bdp_multiple(self.bandwidth, 1.0)
    }

    /// `TargetInflight` (section 5.3.3.8).
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp().min(self.cwnd)
    }

    /// `ProbeRTTCwnd` (section 5.6.4.5).
    pub(super) fn probe_rtt_window(&self) -> f64 {
        self.bdp_multiple(self.bandwidth, State::ProbeRtt.cwnd_gain()).max(self.least_window())
    }

    /// The least that a probe with too many losses leaves of the window (section 5.5.10.2).
    pub(super) fn reduced_target(&self) -> f64 {
        self.target_inflight() * BETA
    }

    /// `SaveCwnd` (section 5.6.4.4).
    pub(super) fn save_cwnd(&mut self) {
        let is_modulated = self.recovery_since.is_some() || self.state == State::ProbeRtt;
        self.prior_cwnd = if is_modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// `RestoreCwnd` (section 5.6.4.4).
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// `SetCwnd` (section 5.6.4.6), with `UpdateMaxInflight` (section 5.6.4.2).
    pub(super) fn set_cwnd(&mut self, sample: &RateSample) {
        let gain = self.state.cwnd_gain();
        let most = self.quantized(self.bdp_multiple(self.bandwidth, gain) + self.aggregation.extra);
        let acked = sample.newly_acked.as_f64();
        if self.full_pipe.was_reached {
            self.cwnd = (self.cwnd + acked).min(most);
        } else if self.cwnd < most || sample.total_delivered.as_f64() < self.initial_window {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.clamp(self.least_window(), LARGEST_WINDOW.max(self.least_window()));
        if self.state == State::ProbeRtt {
            // `BoundCwndForProbeRTT` (section 5.6.4.5)
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_cwnd_for_model();
    }

    /// `BoundCwndForModel` (section 5.6.4.7).
    fn bound_cwnd_for_model(&mut self) {
        let bound = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.long_term.inflight,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(bound.min(self.short_term.inflight).max(self.least_window()));
    }
}
