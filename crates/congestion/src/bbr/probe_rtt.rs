//! `ProbeRTT`: little in flight for a moment, to see the round trip without a queue (section 5.3.4).

use super::cycle::ProbeRtt;
use super::flow::Bbr;
use super::parameters::PROBE_RTT_DURATION;
use super::state::State;
use crate::delivery_rate::RateSample;

impl Bbr {
    /// `CheckProbeRTT` (section 5.3.4.3).
    pub(super) fn check_probe_rtt(&mut self, sample: &RateSample) {
        if self.state != State::ProbeRtt && self.min_rtt.is_expired && !self.is_idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt.done_at = None;
            self.start_stopping();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if !sample.delivered.is_zero() {
            self.is_idle_restart = false;
        }
    }

    /// `HandleProbeRTT` (section 5.3.4.3). That samples count as limited by the application is
    /// [`Pacing::is_held_back`](crate::control::Pacing::is_held_back).
    fn handle_probe_rtt(&mut self, sample: &RateSample) {
        if self.probe_rtt.done_at.is_none() {
            if sample.in_flight.as_f64() <= self.probe_rtt_window() {
                self.probe_rtt = ProbeRtt { done_at: Some(self.now + PROBE_RTT_DURATION), has_round: false };
                self.start_round();
            }
            return;
        }
        self.probe_rtt.has_round |= self.rounds.is_start;
        if self.probe_rtt.has_round {
            self.check_probe_rtt_done();
        }
    }

    /// `CheckProbeRTTDone` (section 5.3.4.3), with `ExitProbeRTT` (section 5.3.4.4).
    pub(super) fn check_probe_rtt_done(&mut self) {
        if self.probe_rtt.done_at.is_none_or(|done_at| self.now <= done_at) {
            return;
        }
        self.min_rtt.probed(self.now);
        self.restore_cwnd();
        self.short_term.reset();
        if self.full_pipe.was_reached {
            self.start_down();
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }
}
