//! The long-term model: how much the path holds without too many losses (sections 5.3.3.9 and 5.5.10.2).

use super::flow::Bbr;
use super::losses::Losses;
use super::parameters::HEADROOM;
use super::state::State;
use crate::delivery_rate::{LostPacket, RateSample};

impl Bbr {
    /// `HandleLostPacket` (section 5.5.10.2).
    pub(super) fn handle_lost_packet(&mut self, packet: &LostPacket) {
        if self.short_term.note_loss(self.delivered) {
            match self.recovery_since {
                Some(_) => self.save_cwnd(),
                None => self.save_state_upon_loss(),
            }
        }
        if !self.cycle.is_probe_sample {
            return;
        }
        let losses = Losses { lost: packet.lost.as_f64(), in_flight: packet.sent_in_flight.as_f64() };
        if losses.are_too_many() {
            let inflight = losses.inflight_at_loss(packet.size.as_f64());
            self.handle_inflight_too_high(inflight, packet.is_app_limited);
        }
    }

    /// `HandleInflightTooHigh` (section 5.5.10.2).
    fn handle_inflight_too_high(&mut self, inflight: f64, is_app_limited: bool) {
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        if !is_app_limited {
            self.long_term.inflight = inflight.max(self.reduced_target());
        }
        if self.state == State::ProbeBwUp {
            self.undo.state = Some(State::ProbeBwUp);
            self.start_down();
        }
    }

    /// `InflightWithHeadroom` (section 5.3.3.9).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let inflight = self.long_term.inflight;
        if inflight.is_infinite() {
            return inflight;
        }
        let headroom = (HEADROOM * inflight).max(self.segment);
        (inflight - headroom).max(self.least_window())
    }

    /// The end of `AdaptLongTermModel` (section 5.3.3.9): losses are few, and bounds may rise.
    pub(super) fn raise_long_term(&mut self, sample: &RateSample) {
        let losses = Losses::of(sample);
        if losses.are_too_many() || self.long_term.inflight.is_infinite() {
            return;
        }
        self.long_term.inflight = self.long_term.inflight.max(losses.in_flight);
        if self.state == State::ProbeBwUp {
            self.probe_long_term_upward(sample);
        }
    }

    /// `ProbeInflightLongtermUpward` (section 5.3.3.9).
    fn probe_long_term_upward(&mut self, sample: &RateSample) {
        if !self.cycle.is_cwnd_limited || self.cwnd < self.long_term.inflight {
            return;
        }
        let bound = &mut self.long_term;
        bound.acked += sample.newly_acked.as_f64();
        if bound.acked >= bound.acked_per_increase {
            let increases = (bound.acked / bound.acked_per_increase).floor();
            bound.acked -= increases * bound.acked_per_increase;
            bound.inflight += increases * self.segment;
        }
        if self.rounds.is_start {
            self.raise_slope();
        }
    }

    /// `RaiseInflightLongtermSlope` (section 5.3.3.9).
    pub(super) fn raise_slope(&mut self) {
        let growth_this_round = f64::from(1u32 << self.long_term.rounds);
        self.long_term.rounds = (self.long_term.rounds + 1).min(30);
        self.long_term.acked_per_increase = (self.cwnd / growth_this_round).max(self.segment);
    }
}
