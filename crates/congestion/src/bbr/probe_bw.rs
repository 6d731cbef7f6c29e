//! `ProbeBW`: slower, as fast, and faster than the path delivers, in turn (section 5.3.3).

use anabranch_units::Duration;

use super::cycle::Feedback;
use super::flow::Bbr;
use super::parameters::{LEAST_PROBE_WAIT, RENO_ROUNDS};
use super::state::State;
use crate::delivery_rate::RateSample;

impl Bbr {
    /// `StartProbeBW_DOWN` (section 5.3.3.9), with `PickProbeWait` (section 5.3.3.8).
    pub(super) fn start_down(&mut self) {
        self.short_term.reset_signals();
        self.long_term.acked_per_increase = f64::INFINITY;
        self.cycle.rounds_since_probe_up = self.chance.coin();
        self.cycle.wait = LEAST_PROBE_WAIT + Duration::from_secs_f64(self.chance.fraction());
        self.cycle.stamp = self.now;
        self.start_stopping();
        self.state = State::ProbeBwDown;
    }

    /// From now on what comes is what a probe left on its way.
    pub(super) fn start_stopping(&mut self) {
        self.cycle.feedback = Feedback::Stopping;
        self.start_round();
    }

    /// `StartProbeBW_CRUISE` (section 5.3.3.9).
    pub(super) fn start_cruise(&mut self) {
        self.state = State::ProbeBwCruise;
    }

    /// `StartProbeBW_REFILL` (section 5.3.3.9).
    pub(super) fn start_refill(&mut self) {
        self.short_term.reset();
        (self.long_term.rounds, self.long_term.acked) = (0, 0.0);
        self.cycle.was_precautionary = false;
        self.cycle.feedback = Feedback::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
    }

    /// `StartProbeBW_UP` (section 5.3.3.9).
    fn start_up(&mut self, sample: &RateSample) {
        self.cycle.feedback = Feedback::Starting;
        self.start_round();
        self.full_pipe.reset(sample.rate.bytes_per_second());
        self.state = State::ProbeBwUp;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase` (section 5.3.3.9).
    pub(super) fn update_cycle(&mut self, sample: &RateSample) {
        if !self.full_pipe.was_reached || self.adapt_long_term_model(sample) {
            return;
        }
        let is_over = self.state == State::ProbeBwUp && self.is_time_to_go_down(sample);
        match self.state {
            State::ProbeBwDown if self.is_time_to_probe() => self.start_refill(),
            State::ProbeBwDown if self.is_time_to_cruise(sample) => self.start_cruise(),
            State::ProbeBwCruise if self.is_time_to_probe() => self.start_refill(),
            State::ProbeBwRefill if self.rounds.is_start => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample);
            }
            State::ProbeBwUp if is_over => {
                self.cycle.was_too_high = false;
                self.start_down();
            }
            _ => {}
        }
    }

    /// `AdaptLongTermModel` (section 5.3.3.9). Answers whether it decided the state.
    fn adapt_long_term_model(&mut self, sample: &RateSample) -> bool {
        if self.cycle.feedback == Feedback::Starting && self.rounds.is_start {
            self.cycle.feedback = Feedback::Coming;
        }
        if self.cycle.feedback == Feedback::Stopping && self.rounds.is_start {
            self.cycle.is_probe_sample = false;
            self.cycle.feedback = Feedback::None;
            if self.state.is_probe_bw() {
                if !sample.is_app_limited {
                    self.max_bandwidth.advance();
                }
                if self.cycle.was_precautionary && !self.cycle.was_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        self.raise_long_term(sample);
        false
    }

    /// `IsTimeToProbeBW` and `IsRenoCoexistenceProbeTime` (section 5.3.3.8).
    fn is_time_to_probe(&self) -> bool {
        let reno_rounds = (self.target_inflight() / self.segment).min(RENO_ROUNDS);
        self.now > self.cycle.stamp + self.cycle.wait
            || self.cycle.rounds_since_probe_up as f64 >= reno_rounds
    }

    /// `IsTimeToCruise` (section 5.3.3.9).
    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let in_flight = sample.in_flight.as_f64();
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight_at(self.max_bandwidth.most())
    }

    /// `IsTimeToGoDown` (section 5.3.3.9).
    fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        if self.cycle.was_too_high && sample.in_flight.as_f64() >= self.long_term.inflight {
            self.cycle.was_precautionary = true;
            return true;
        }
        if self.cycle.is_cwnd_limited && self.cwnd >= self.long_term.inflight {
            self.full_pipe.reset(sample.rate.bytes_per_second());
            return false;
        }
        self.full_pipe.is_full
    }
}
