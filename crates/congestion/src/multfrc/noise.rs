//! What of the round-trip time comes and goes from one round trip to the next: jitter, and no queue.
//!
//! The model: a round trip is what the route takes, and a queue, and jitter. A route stays as it is. A queue
//! is what was sent before and has not left yet; from one round trip to the next it changes little, but for
//! the moment in which much is dropped. Jitter is drawn anew. So the differences of round trips that follow
//! each other are those of draws of the jitter, whatever the queue is. Their median passes over what a route
//! that changes, or a queue that falls, adds now and then.

use std::collections::VecDeque;

use anabranch_units::{Duration, Ratio, Time};

/// So many differences are looked at.
const DIFFERENCES: usize = 32;
/// Fewer say nothing.
const LEAST_DIFFERENCES: usize = 4;
/// The deviation as a part of the median of the differences, which is 0.6745 times the square root of two of
/// it where the draws are normal.
const DEVIATION: Ratio = Ratio::new(1048, 1000);

/// The jitter of a path, from round trips that follow each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Noise {
    last: Option<(Time, Duration)>,
    differences: VecDeque<Duration>,
}

impl Noise {
    /// A further round trip. Whether it counts: those that overlap with the one that counted last share its
    /// jitter, and are left out.
    pub(super) fn sample(&mut self, now: Time, sample: Duration) -> bool {
        let Some((then, last)) = self.last else {
            self.last = Some((now, sample));
            return true;
        };
        // A clock that was set back begins anew.
        if now >= then && now.since(then) < sample {
            return false;
        }
        self.last = Some((now, sample));
        if self.differences.len() >= DIFFERENCES {
            self.differences.pop_front();
        }
        self.differences.push_back(distance(sample, last));
        true
    }

    /// Whether enough was seen.
    pub(super) fn is_known(&self) -> bool {
        self.differences.len() >= LEAST_DIFFERENCES
    }

    /// The standard deviation of the jitter; zero before enough was seen.
    pub(super) fn deviation(&self) -> Duration {
        let mut sorted: Vec<Duration> = self.differences.iter().copied().collect();
        if !self.is_known() {
            return Duration::ZERO;
        }
        let middle = sorted.len() / 2;
        *sorted.select_nth_unstable(middle).1 * DEVIATION
    }
}

/// How far two times are from each other.
pub(super) fn distance(one: Duration, other: Duration) -> Duration {
    one.max(other) - one.min(other)
}
