//! TCP's retransmission time-out in whole ticks, as ns-2 has it in TFRC's equation.

use anabranch_units::Duration;

/// More ticks than any round trip has.
const MOST_TICKS: i64 = 1_000_000_000;

/// Mean and deviation of the round-trip time in ticks, each in fixed point (RFC 6298 with gains of 1/8 and
/// 1/4).
#[derive(Clone, Copy, Debug)]
pub(super) struct CoarseTimeout {
    tick: Duration,
    eighths: i64,
    deviation_quarters: i64,
}

impl CoarseTimeout {
    /// After the first sample.
    pub(super) fn new(sample: Duration, tick: Duration) -> Self {
        let ticks = in_ticks(sample, tick);
        Self { tick, eighths: 8 * ticks, deviation_quarters: 2 * ticks }
    }

    /// A further sample.
    pub(super) fn update(&mut self, sample: Duration) {
        let error = in_ticks(sample, self.tick) - self.eighths / 8;
        self.eighths = (self.eighths + error).max(1);
        self.deviation_quarters =
            (self.deviation_quarters + error.abs() - self.deviation_quarters / 4).max(1);
    }

    /// Mean and four deviations, in whole ticks.
    pub(super) fn timeout(&self) -> Duration {
        let ticks = (8 * self.deviation_quarters + self.eighths) / 8;
        self.tick * u64::try_from(ticks).unwrap_or(0)
    }
}

/// Rounded to whole ticks, at least one.
fn in_ticks(sample: Duration, tick: Duration) -> i64 {
    let ticks = (sample + tick / 2).as_nanos().checked_div(tick.as_nanos()).unwrap_or(u64::MAX);
    i64::try_from(ticks).unwrap_or(MOST_TICKS).clamp(1, MOST_TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_round_trips_keep_a_rest_of_deviation() {
        let (tick, rtt) = (Duration::from_millis(100), Duration::from_millis(168));
        // 2 ticks and a deviation of 1: 2 + 4 * 1.
        let mut timeout = CoarseTimeout::new(rtt, tick);
        assert_eq!(timeout.timeout(), Duration::from_millis(600));
        // Fixed point stops at a deviation of 3/4: 2 + 4 * 0.75.
        for _ in 0..100 {
            timeout.update(rtt);
        }
        assert_eq!(timeout.timeout(), Duration::from_millis(500));
        // A round trip shorter than a tick counts as one, with a deviation of a half.
        assert_eq!(CoarseTimeout::new(Duration::from_millis(5), tick).timeout(), Duration::from_millis(300));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        for tick in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let mut timeout = CoarseTimeout::new(Duration::MAX, tick);
            timeout.update(Duration::ZERO);
            timeout.update(Duration::MAX);
            assert!(timeout.timeout() >= tick);
        }
    }
}
