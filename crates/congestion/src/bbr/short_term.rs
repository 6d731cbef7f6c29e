//! The short-term model: what the path delivered in the last round trip, and what losses make of it while the
//! flow asks for nothing more (sections 3.4.2.2 and 5.5.10.3).

use super::parameters::BETA;
use crate::delivery_rate::RateSample;

/// What is safe now.
#[derive(Clone, Debug)]
pub(super) struct ShortTerm {
    /// `BBR.bw_shortterm` in bytes per second, infinite where nothing bounds it.
    pub bandwidth: f64,
    /// `BBR.inflight_shortterm` in bytes, likewise.
    pub inflight: f64,
    /// `BBR.loss_round_start`: whether the last acknowledgement ended a round trip of losses' reckoning.
    pub is_round_start: bool,
    /// `BBR.inflight_latest`.
    pub inflight_latest: f64,
    /// `BBR.bw_latest`.
    bandwidth_latest: f64,
    /// `BBR.loss_round_delivered`.
    round_delivered: u64,
    /// `BBR.is_loss_in_round`.
    is_loss_in_round: bool,
}

impl ShortTerm {
    pub(super) fn new() -> Self {
        Self {
            bandwidth: f64::INFINITY,
            inflight: f64::INFINITY,
            is_round_start: false,
            inflight_latest: 0.0,
            bandwidth_latest: 0.0,
            round_delivered: 0,
            is_loss_in_round: false,
        }
    }

    /// `NoteLoss`. Answers whether it is the first one of its round trip.
    pub(super) fn note_loss(&mut self, delivered: u64) -> bool {
        let is_first = !std::mem::replace(&mut self.is_loss_in_round, true);
        if is_first {
            self.round_delivered = delivered;
        }
        is_first
    }

    /// `UpdateLatestDeliverySignals`, near the beginning of an acknowledgement.
    pub(super) fn update_latest(&mut self, sample: &RateSample) {
        self.bandwidth_latest = self.bandwidth_latest.max(sample.rate.bytes_per_second());
        self.inflight_latest = self.inflight_latest.max(sample.delivered.as_f64());
        self.is_round_start = sample.prior_delivered.get() >= self.round_delivered;
        if self.is_round_start {
            self.round_delivered = sample.total_delivered.get();
        }
    }

    /// `AdvanceLatestDeliverySignals`, near its end.
    pub(super) fn advance_latest(&mut self, sample: &RateSample) {
        if self.is_round_start {
            self.bandwidth_latest = sample.rate.bytes_per_second();
            self.inflight_latest = sample.delivered.as_f64();
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bandwidth_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// `AdaptLowerBoundsFromCongestion` at the end of a round trip: with losses, and where the flow did not
    /// ask for them, the bounds follow what was delivered, by no more than [`BETA`] at a time.
    pub(super) fn adapt(&mut self, is_probing: bool, max_bandwidth: f64, cwnd: f64) {
        if self.is_round_start && !is_probing && self.is_loss_in_round {
            if self.bandwidth.is_infinite() {
                self.bandwidth = max_bandwidth;
            }
            if self.inflight.is_infinite() {
                self.inflight = cwnd;
            }
            self.bandwidth = self.bandwidth_latest.max(BETA * self.bandwidth);
            self.inflight = self.inflight_latest.max(BETA * self.inflight);
        }
        if self.is_round_start {
            self.is_loss_in_round = false;
        }
    }

    /// Of `HandleSpuriousLossDetection` (section 5.5.11.2): the losses of this round trip were none, and the
    /// bounds are at least these.
    pub(super) fn undo(&mut self, bandwidth: f64, inflight: f64) {
        self.is_loss_in_round = false;
        (self.bandwidth, self.inflight) = (self.bandwidth.max(bandwidth), self.inflight.max(inflight));
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset(&mut self) {
        (self.bandwidth, self.inflight) = (f64::INFINITY, f64::INFINITY);
    }
}
