//! Startup and Drain (sections 5.3.1 and 5.3.2).

use super::flow::Bbr;
use super::losses::Losses;
use super::parameters::{DRAIN_ROUNDS, EXTRA_ACKED_ROUNDS, STARTUP_LOSSES};
use super::state::State;
use crate::delivery_rate::RateSample;

impl Bbr {
    /// `EnterStartup`, when a probe for the round trip ends before the pipe was full, or when the losses did
    /// not happen that ended it.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// For how many round trips aggregation is remembered (section 5.5.9).
    pub(super) fn aggregation_rounds(&self) -> u64 {
        if self.full_pipe.was_reached { EXTRA_ACKED_ROUNDS } else { 1 }
    }

    /// `CheckStartupDone` (section 5.3.1.1).
    pub(super) fn check_startup_done(&mut self, sample: &RateSample) {
        self.check_startup_high_loss(sample);
        if self.state == State::Startup && self.full_pipe.was_reached {
            // `EnterDrain`
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    /// `CheckStartupHighLoss` (section 5.3.1.3).
    fn check_startup_high_loss(&mut self, sample: &RateSample) {
        if self.full_pipe.was_reached {
            return;
        }
        self.losses_in_round += u32::from(!sample.newly_lost.is_zero());
        if !self.short_term.is_round_start {
            return;
        }
        let losses = std::mem::take(&mut self.losses_in_round);
        let has_recovered_for_a_round = self.recovery_since.is_some_and(|since| since < self.rounds.count);
        if has_recovered_for_a_round && losses >= STARTUP_LOSSES && Losses::of(sample).are_too_many() {
            self.undo.state = Some(State::Startup);
            self.full_pipe.was_reached = true;
            self.full_pipe.is_full = true;
            self.long_term.inflight = self.bdp().max(self.short_term.inflight_latest);
        }
    }

    /// `CheckDrainDone` (section 5.3.2).
    pub(super) fn check_drain_done(&mut self, sample: &RateSample) {
        let is_drained = sample.in_flight.as_f64() <= self.inflight_at(self.bandwidth);
        if self.state == State::Drain
            && (is_drained || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS)
        {
            // `EnterProbeBW` (section 5.3.3.9)
            self.start_down();
        }
    }
}
