//! Meters of throughput: from arrivals, as (time, bytes), in constant memory.
//!
//! - [`WindowedMeter`]: mean of the last while.
//! - [`ExponentialMeter`]: exponential average over intervals, as MultiTCP section 6.3 has it.
//! - [`SteadyMeter`]: what a connection gives for sure, from its first bytes on.
//!
//! Times that go back count as the last one.

use units::{Bytes, Duration, Rate, Ratio, Time};

const PART_COUNT: usize = 16;
const PARTS: u64 = Bytes::of(PART_COUNT).get();

/// Mean rate over the last while.
///
/// The while is kept in 16 parts of which the present one is still growing, so it is up to a sixteenth shorter than asked for.
/// Before so much time has gone by, the mean is that since the creation.
#[derive(Clone, Debug)]
pub struct WindowedMeter {
    /// Length of a part, above zero.
    part: Duration,
    created: Time,
    /// Which part since the creation is the present one.
    present: u64,
    parts: [Bytes; PART_COUNT],
    now: Time,
}

impl WindowedMeter {
    /// A meter of the rate over the last `window` that begins now.
    pub fn new(window: Duration, now: Time) -> Self {
        let part = (window / PARTS).max(Duration::from_nanos(1));
        Self { part, created: now, present: 0, parts: Default::default(), now }
    }

    /// `bytes` came at `now`.
    pub fn arrived(&mut self, now: Time, bytes: Bytes) {
        self.advance(now);
        self.parts[Self::index(self.present)] += bytes;
    }

    /// The rate over the window that ends at `now`; zero at the creation.
    pub fn rate(&mut self, now: Time) -> Rate {
        self.advance(now);
        let first = self.created + self.part * self.present.saturating_sub(PARTS - 1);
        Rate::of(self.parts.iter().copied().sum(), self.now.since(first))
    }

    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        let present = self.now.since(self.created).as_nanos() / self.part.as_nanos();
        for passed in 0..(present - self.present).min(PARTS) {
            self.parts[Self::index(present - passed)] = Bytes::ZERO;
        }
        self.present = present;
    }

    fn index(part: u64) -> usize {
        Bytes::new(part % PARTS).as_usize()
    }
}

/// Exponential average of the rates of intervals: T_m = alpha T_m + (1 - alpha) T_n (end of MultiTCP section 6.3).
#[derive(Clone, Debug)]
pub struct ExponentialMeter {
    interval: Duration,
    alpha: Ratio,
    average: Option<Rate>,
    began: Time,
    arrived: Bytes,
}

/// After so many silent intervals the average is zero, whatever alpha is: no loop over a time without bound.
const MOST_SILENT_INTERVALS: u64 = 1000;

impl ExponentialMeter {
    /// A meter whose first interval begins now; `interval` is at least a nanosecond, `alpha` at most one.
    pub fn new(interval: Duration, alpha: Ratio, now: Time) -> Self {
        let alpha = if alpha < Ratio::ONE { alpha } else { Ratio::ONE };
        Self {
            interval: interval.max(Duration::from_nanos(1)),
            alpha,
            average: None,
            began: now,
            arrived: Bytes::ZERO,
        }
    }

    /// `bytes` came at `now`.
    pub fn arrived(&mut self, now: Time, bytes: Bytes) {
        self.advance(now);
        self.arrived += bytes;
    }

    /// The average over the intervals that have ended by `now`; the first one is its first value.
    pub fn rate(&mut self, now: Time) -> Option<Rate> {
        self.advance(now);
        self.average
    }

    fn advance(&mut self, now: Time) {
        let ended = now.since(self.began).as_nanos() / self.interval.as_nanos();
        if ended == 0 {
            return;
        }
        self.began += self.interval * ended;
        let arrived = std::mem::take(&mut self.arrived);
        self.end_interval(Rate::of(arrived, self.interval));
        if ended > MOST_SILENT_INTERVALS {
            self.average = Some(Rate::ZERO);
        } else {
            (1..ended).for_each(|_| self.end_interval(Rate::ZERO));
        }
    }

    fn end_interval(&mut self, rate: Rate) {
        let averaged = |mean: Rate| {
            mean.as_f64() * self.alpha.as_f64() + rate.as_f64() * self.alpha.complement().as_f64()
        };
        self.average = Some(self.average.map_or(rate, |mean| Rate::from_bps_f64(averaged(mean).round())));
    }
}

/// What a connection gives for sure: the lesser of a short and a long mean, both from the first request on.
///
/// Meant to size requests. A burst (a full socket buffer that is read at once, a loss that was repaired) raises the
/// short mean and hardly the long one, so a peak does not count; a path that becomes slow lowers the short one, so that
/// counts at once. At the start both are the mean since the first request, with its round trip in it.
#[derive(Clone, Debug)]
pub struct SteadyMeter {
    short: WindowedMeter,
    long: WindowedMeter,
}

impl SteadyMeter {
    /// Long enough for several round trips of any path that carries media. Ours.
    const SHORT: Duration = Duration::from_secs(1);
    /// Long enough to flatten the sawtooth of a TCP connection. Ours.
    const LONG: Duration = Duration::from_secs(8);

    /// A meter of a connection that is asked for its first bytes now.
    pub fn new(now: Time) -> Self {
        Self { short: WindowedMeter::new(Self::SHORT, now), long: WindowedMeter::new(Self::LONG, now) }
    }

    /// `bytes` came at `now`.
    pub fn arrived(&mut self, now: Time, bytes: Bytes) {
        self.short.arrived(now, bytes);
        self.long.arrived(now, bytes);
    }

    /// The rate that can be counted on at `now`; zero before the first bytes.
    pub fn rate(&mut self, now: Time) -> Rate {
        self.short.rate(now).min(self.long.rate(now))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Feeds 1000 bytes every 10 ms, 800 kbps, from `from` to `to` in milliseconds.
    fn feed(mut arrived: impl FnMut(Time, Bytes), from: u64, to: u64) {
        (from / 10..to / 10).for_each(|step| arrived(at((step + 1) * 10), Bytes::new(1000)));
    }

    #[test]
    fn a_windowed_mean_forgets() {
        let mut meter = WindowedMeter::new(Duration::from_millis(1600), Time::ZERO);
        assert_eq!(meter.rate(Time::ZERO), Rate::ZERO);
        feed(|now, bytes| meter.arrived(now, bytes), 0, 50);
        assert_eq!(meter.rate(at(50)), Rate::from_kbps(800), "from the first bytes on");
        feed(|now, bytes| meter.arrived(now, bytes), 50, 5000);
        let kbps = meter.rate(at(5000)).as_bps() / 1000;
        assert!((795..=806).contains(&kbps), "{kbps}");
        assert!(meter.rate(at(5800)) < Rate::from_kbps(450));
        assert_eq!(meter.rate(at(6600)), Rate::ZERO);
        assert_eq!(meter.rate(Time::NEVER), Rate::ZERO);
    }

    #[test]
    fn an_exponential_average_is_that_of_section_6_3() {
        let mut meter = ExponentialMeter::new(Duration::from_secs(1), Ratio::new(9, 10), Time::ZERO);
        meter.arrived(at(500), Bytes::new(100_000));
        assert_eq!(meter.rate(at(999)), None);
        assert_eq!(meter.rate(at(1000)), Some(Rate::from_kbps(800)));
        meter.arrived(at(1500), Bytes::new(200_000));
        // 0.9 * 800 + 0.1 * 1600, then twice times 0.9 without arrivals.
        assert_eq!(meter.rate(at(2000)), Some(Rate::from_kbps(880)));
        assert_eq!(meter.rate(at(4000)), Some(Rate::from_bps(712_800)));
        assert_eq!(meter.rate(Time::NEVER), Some(Rate::ZERO));
    }

    #[test]
    fn a_steady_rate_ignores_a_peak_and_sees_a_fall() {
        let mut meter = SteadyMeter::new(Time::ZERO);
        assert_eq!(meter.rate(at(80)), Rate::ZERO);
        feed(|now, bytes| meter.arrived(now, bytes), 0, 8000);
        meter.arrived(at(8000), Bytes::new(400_000));
        let peak = meter.rate(at(8000)).as_bps() / 1000;
        assert!((800..=1250).contains(&peak), "half a megabyte at once: {peak} kbps");
        assert_eq!(meter.rate(at(9000)), Rate::ZERO);
    }

    proptest! {
        #[test]
        fn no_mean_is_above_the_fastest_millisecond(
            window in 1u64..5000, arrivals in prop::collection::vec((1u64..500, 0u64..10_000), 1..200),
        ) {
            let mut meter = WindowedMeter::new(Duration::from_millis(window), Time::ZERO);
            let mut steady = SteadyMeter::new(Time::ZERO);
            let (mut now, mut total) = (0, 0);
            for (step, bytes) in arrivals {
                (now, total) = (now + step, total + bytes);
                meter.arrived(at(now), Bytes::new(bytes));
                steady.arrived(at(now), Bytes::new(bytes));
                // No more than all that ever came, in the least time that the meter can look back.
                let least = Duration::from_millis(now.min(window)) * Ratio::new(15, 16);
                let most = Rate::of(Bytes::new(total), least);
                prop_assert!(meter.rate(at(now)) <= most);
                prop_assert!(steady.rate(at(now)) <= meter_of_all(total, now));
            }
        }
    }

    fn meter_of_all(total: u64, now: u64) -> Rate {
        Rate::of(Bytes::new(total), Duration::from_millis(now.min(8000)) * Ratio::new(15, 16))
    }
}
