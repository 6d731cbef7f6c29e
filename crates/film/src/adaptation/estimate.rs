//! What segments came at, averaged as dash.js does (`ThroughputModel`, version 5).

use anabranch_units::{Duration, Rate};

/// Two averages whose weights fall by the time of transfer, of which the smaller holds: a fall is believed
/// sooner than a rise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    /// In bit/s, as if nothing had come before the first sample.
    fast: f64,
    slow: f64,
    /// The time of transfer of all samples, in seconds.
    weight: f64,
}

impl Estimate {
    /// So fast for so long.
    pub(super) fn sample(&mut self, rate: Rate, over: Duration, (fast, slow): (Duration, Duration)) {
        let seconds = over.as_secs_f64();
        for (average, half_life) in [(&mut self.fast, fast), (&mut self.slow, slow)] {
            let kept = 0.5_f64.powf(seconds / half_life.as_secs_f64());
            *average = rate.as_f64() * (1.0 - kept) + *average * kept;
        }
        self.weight += seconds;
    }

    /// The smaller one, without the nothing before the first sample.
    pub(super) fn get(&self, (fast, slow): (Duration, Duration)) -> Option<Rate> {
        let average = |value: f64, half_life: Duration| {
            value / (1.0 - 0.5_f64.powf(self.weight / half_life.as_secs_f64()))
        };
        (self.weight > 0.0)
            .then(|| Rate::from_bps_f64(average(self.fast, fast).min(average(self.slow, slow))))
    }
}
