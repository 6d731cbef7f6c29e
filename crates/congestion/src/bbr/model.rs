//! The steps of every acknowledgement that bring the model up to date (section 5.2.3).

use super::flow::Bbr;
use crate::delivery_rate::RateSample;

impl Bbr {
    /// `StartRound` (section 5.5.1).
    pub(super) fn start_round(&mut self) {
        self.rounds.start(self.delivered);
    }

    /// `UpdateMaxBw` (section 5.5.5).
    fn update_max_bandwidth(&mut self, sample: &RateSample) {
        self.rounds.update(sample.prior_delivered.get(), sample.total_delivered.get());
        if self.rounds.is_start {
            self.cycle.rounds_since_probe_up = self.cycle.rounds_since_probe_up.saturating_add(1);
        }
        let rate = sample.rate.bytes_per_second();
        if rate > 0.0 && (rate >= self.max_bandwidth.most() || !sample.is_app_limited) {
            self.max_bandwidth.add(rate);
        }
    }

    /// `UpdateModelAndState` (section 5.2.3).
    pub(super) fn update_model_and_state(&mut self, sample: &RateSample) {
        self.short_term.update_latest(sample);
        self.update_max_bandwidth(sample);
        self.short_term.adapt(self.state.is_probing(), self.max_bandwidth.most(), self.cwnd);
        self.aggregation.update(
            self.now,
            sample.newly_acked.as_f64(),
            self.bandwidth,
            self.cwnd,
            (self.rounds.count, self.aggregation_rounds()),
        );
        if self.rounds.is_start && !sample.is_app_limited {
            self.full_pipe.round_ended(sample.rate.bytes_per_second());
        }
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_cycle(sample);
        self.min_rtt.update(self.now, sample.rtt);
        self.check_probe_rtt(sample);
        self.short_term.advance_latest(sample);
        // `BoundBWForModel`
        self.bandwidth = self.max_bandwidth.most().min(self.short_term.bandwidth);
    }

    /// A loss event or a time-out has begun, and what it may take back is saved (`OnEnterFastRecovery`,
    /// `OnEnterRTO`, section 5.6.4.4).
    pub(super) fn enter_recovery(&mut self) {
        self.recovery_since.get_or_insert(self.rounds.count);
    }
}
