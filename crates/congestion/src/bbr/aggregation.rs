//! How much more than expected is acknowledged at once (section 5.5.9).

use anabranch_units::Time;

use super::filters::RecentRounds;

/// `BBR.extra_acked`.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// `BBR.extra_acked` in bytes.
    pub extra: f64,
    /// `BBR.extra_acked_interval_start`.
    start: Time,
    /// `BBR.extra_acked_delivered`.
    delivered: f64,
    filter: RecentRounds,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Self {
        Self { extra: 0.0, start: now, delivered: 0.0, filter: RecentRounds::default() }
    }

    /// The flow begins again after a rest (section 5.4).
    pub(super) fn restart(&mut self, now: Time) {
        self.start = now;
    }

    /// `UpdateACKAggregation`: `acked` bytes are newly acknowledged in this round, where `bandwidth` bytes
    /// per second are expected.
    pub(super) fn update(
        &mut self,
        now: Time,
        acked: f64,
        bandwidth: f64,
        cwnd: f64,
        (round, length): (u64, u64),
    ) {
        let mut expected = bandwidth * now.since(self.start).as_secs_f64();
        if self.delivered <= expected {
            (self.delivered, self.start, expected) = (0.0, now, 0.0);
        }
        self.delivered += acked;
        let extra = (self.delivered - expected).min(cwnd);
        self.extra = self.filter.add(round, extra, length);
    }
}
