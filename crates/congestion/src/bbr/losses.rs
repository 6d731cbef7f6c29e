//! How much the path holds, and when losses are too many for it (sections 3.4.2.1 and 5.5.10.2).

use super::parameters::LOSS_THRESHOLD;
use crate::delivery_rate::RateSample;

/// `BBR.inflight_longterm` and how it grows.
#[derive(Clone, Debug)]
pub(super) struct LongTerm {
    /// `BBR.inflight_longterm` in bytes, infinite before a probe lost too much.
    pub inflight: f64,
    /// `BBR.probe_up_acked_per_inc`.
    pub acked_per_increase: f64,
    /// `BBR.bw_probe_up_acked`.
    pub acked: f64,
    /// `BBR.bw_probe_up_rounds`.
    pub rounds: u32,
}

impl LongTerm {
    pub(super) fn new() -> Self {
        Self { inflight: f64::INFINITY, acked_per_increase: f64::INFINITY, acked: 0.0, rounds: 0 }
    }
}

/// The losses since a packet was sent and what was in flight then, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub lost: f64,
    pub in_flight: f64,
}

impl Losses {
    /// Those that a sample tells of.
    pub(super) fn of(sample: &RateSample) -> Self {
        Self { lost: sample.lost.as_f64(), in_flight: sample.sent_in_flight.as_f64() }
    }

    /// `IsInflightTooHigh` (section 5.5.10.2).
    pub(super) fn are_too_many(self) -> bool {
        self.lost > self.in_flight * LOSS_THRESHOLD
    }

    /// `InflightAtLoss` (section 5.5.10.2): where in a packet of this size they became too many.
    pub(super) fn inflight_at_loss(self, size: f64) -> f64 {
        let before = (self.in_flight - size).max(0.0);
        let lost_before = (self.lost - size).max(0.0);
        before + ((LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_too_many_above_two_in_a_hundred() {
        let losses = |lost, in_flight| Losses { lost, in_flight };
        assert!(!losses(2000.0, 100_000.0).are_too_many());
        assert!(losses(2001.0, 100_000.0).are_too_many());
        // The third of a hundred packets: 0.02 (99 + x) = 2 + x holds a little before it.
        assert_eq!(losses(3000.0, 100_000.0).inflight_at_loss(1000.0), 99_000.0);
        // In one large piece: 0.02 (90 + x) = x.
        let at = losses(10_000.0, 100_000.0).inflight_at_loss(10_000.0);
        assert!((at - (90_000.0 + 1800.0 / 0.98)).abs() < 1e-6, "{at}");
    }
}
