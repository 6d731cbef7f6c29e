//! How far the work is, and how long it still takes.

use std::time::{Duration, Instant};

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Runs that are done, those that were kept from before among them.
    pub done: usize,
    /// All runs.
    pub total: usize,
    /// How long the rest takes, once a run has shown how fast this machine is.
    pub left: Option<Duration>,
}

/// The time on the clock.
#[allow(
    clippy::disallowed_methods,
    reason = "a person is told how long it still takes; no result depends on it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What the work is expected to take.
///
/// A run's *size* tells how its time compares with that of other runs of its experiment. Experiments differ
/// in what a size costs: one that has finished runs is reckoned by those, another by the runs of all.
#[derive(Debug)]
pub(crate) struct Forecast {
    experiments: Vec<Sizes>,
    workers: usize,
}

#[derive(Clone, Debug, Default)]
struct Sizes {
    left: f64,
    done: f64,
    seconds: f64,
}

impl Forecast {
    /// For so many experiments, with runs side by side.
    pub(crate) fn new(experiments: usize, workers: usize) -> Self {
        Self { experiments: vec![Sizes::default(); experiments], workers: workers.max(1) }
    }

    /// Adds a run that is to be done.
    pub(crate) fn expect(&mut self, experiment: usize, size: f64) {
        self.experiments[experiment].left += size;
    }

    /// A run is done, and took so long; `None` when it was there already.
    pub(crate) fn finish(&mut self, experiment: usize, size: f64, took: Option<Duration>) {
        let sizes = &mut self.experiments[experiment];
        sizes.left = (sizes.left - size).max(0.0);
        if let Some(took) = took {
            sizes.done += size;
            sizes.seconds += took.as_secs_f64();
        }
    }

    /// How long what is left takes; `None` before anything has shown it.
    pub(crate) fn left(&self) -> Option<Duration> {
        let total = |of: fn(&Sizes) -> f64| self.experiments.iter().map(of).sum::<f64>();
        let common = cost(total(|sizes| sizes.seconds), total(|sizes| sizes.done))?;
        let seconds = (self.experiments.iter())
            .map(|sizes| sizes.left * cost(sizes.seconds, sizes.done).unwrap_or(common))
            .sum::<f64>();
        Duration::try_from_secs_f64(seconds / self.workers as f64).ok()
    }
}

fn cost(seconds: f64, size: f64) -> Option<f64> {
    (size > 0.0).then(|| seconds / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_reckoned_by_the_runs_of_the_same_experiment() {
        let mut forecast = Forecast::new(2, 2);
        for _ in 0..4 {
            forecast.expect(0, 1.0);
            forecast.expect(1, 10.0);
        }
        assert_eq!(forecast.left(), None);
        // A run that was kept tells nothing about time.
        forecast.finish(0, 1.0, None);
        assert_eq!(forecast.left(), None);
        forecast.finish(0, 1.0, Some(Duration::from_secs(3)));
        // Two runs of 3 s, and four that are ten times as large, by two workers.
        assert_eq!(forecast.left(), Some(Duration::from_secs(63)));
        forecast.finish(1, 10.0, Some(Duration::from_secs(2)));
        assert_eq!(forecast.left(), Some(Duration::from_secs(6)));
    }
}
