//! The retransmission time-out (RFC 6298).

use crate::model::Rto;

/// Round-trip estimate and time-out, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    initial: u64,
    least: u64,
    most: u64,
    granularity: u64,
    srtt: u64,
    variation: u64,
    /// The time-out is doubled so many times.
    backoff: u32,
    /// Set where the arithmetic is ns-2's.
    ticks: Option<Ticks>,
}

/// ns-2's arithmetic (version 2.35): whole ticks of the clock with three bits of fraction for the mean and
/// two for the variation, which cuts off what is smaller. After four doublings the mean is forgotten.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    srtt_eighths: i64,
    variation_quarters: i64,
}

impl Ticks {
    fn measured(&mut self, ticks: i64) {
        if self.srtt_eighths == 0 {
            *self = Self { srtt_eighths: ticks << 3, variation_quarters: ticks << 1 };
            return;
        }
        let error = ticks - (self.srtt_eighths >> 3);
        self.srtt_eighths = (self.srtt_eighths + error).max(1);
        let growth = error.abs() - (self.variation_quarters >> 2);
        self.variation_quarters = (self.variation_quarters + growth).max(1);
    }

    fn timeout(self) -> u64 {
        self.variation_quarters.unsigned_abs() + (self.srtt_eighths >> 3).unsigned_abs()
    }

    fn forget_mean(&mut self) {
        self.variation_quarters += self.srtt_eighths >> 3;
        self.srtt_eighths = 0;
    }
}

impl RoundTrip {
    /// With the arithmetic of RFC 6298.
    pub(super) fn new(parameters: &Rto) -> Self {
        Self {
            initial: parameters.initial.as_nanos(),
            least: parameters.least.as_nanos(),
            most: parameters.most.as_nanos(),
            granularity: parameters.granularity.as_nanos().max(1),
            srtt: 0,
            variation: 0,
            backoff: 0,
            ticks: None,
        }
    }

    /// With ns-2's arithmetic.
    pub(super) fn in_ticks(parameters: &Rto) -> Self {
        Self { ticks: Some(Ticks::default()), ..Self::new(parameters) }
    }

    /// Smoothed round-trip time; zero before the first measurement.
    pub(super) fn srtt(&self) -> u64 {
        self.srtt
    }

    /// A segment sent at `sent` was acknowledged at `now`. The clock that measures has only its ticks.
    pub(super) fn measured(&mut self, sent: u64, now: u64) {
        let ticks = now / self.granularity - sent / self.granularity;
        let rtt = ticks.max(1) * self.granularity;
        if let Some(estimate) = &mut self.ticks {
            estimate.measured(ticks.max(1) as i64);
        }
        if self.srtt == 0 {
            self.srtt = rtt;
            self.variation = rtt / 2;
        } else {
            self.variation = self.variation - self.variation / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
        }
    }

    /// The time-out that counts now.
    pub(super) fn timeout(&self) -> u64 {
        let base = if self.srtt == 0 {
            self.initial
        } else if let Some(ticks) = &self.ticks {
            (ticks.timeout() * self.granularity).max(self.least)
        } else {
            (self.srtt + self.granularity.max(4 * self.variation)).max(self.least)
        };
        base.saturating_mul(1 << self.backoff).min(self.most)
    }

    /// It ran out (5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
        if let Some(ticks) = self.ticks.as_mut().filter(|_| self.backoff > 3) {
            ticks.forget_mean();
        }
    }

    /// New data was acknowledged.
    pub(super) fn forget_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Duration;

    use super::*;

    const MS: u64 = 1_000_000;

    fn round_trip() -> RoundTrip {
        RoundTrip::new(&Rto {
            initial: Duration::from_secs(1),
            least: Duration::from_millis(200),
            most: Duration::from_secs(60),
            granularity: Duration::from_millis(1),
        })
    }

    #[test]
    fn the_first_measurement_sets_half_of_it_as_the_variation() {
        let mut estimate = round_trip();
        assert_eq!(estimate.timeout(), 1000 * MS);
        estimate.measured(0, 100 * MS);
        assert_eq!((estimate.srtt(), estimate.timeout()), (100 * MS, 300 * MS));
        // 3/4 * 50 + 1/4 * 40 = 47.5; 7/8 * 100 + 1/8 * 140 = 105.
        estimate.measured(0, 140 * MS);
        assert_eq!((estimate.srtt(), estimate.timeout()), (105 * MS, 295 * MS));
    }

    #[test]
    fn the_time_out_has_bounds_and_backs_off() {
        let mut estimate = round_trip();
        estimate.measured(0, 10 * MS);
        assert_eq!(estimate.timeout(), 200 * MS);
        for _ in 0..3 {
            estimate.back_off();
        }
        assert_eq!(estimate.timeout(), 1600 * MS);
        for _ in 0..30 {
            estimate.back_off();
        }
        assert_eq!(estimate.timeout(), 60_000 * MS);
        estimate.forget_backoff();
        assert_eq!(estimate.timeout(), 200 * MS);
    }
}
