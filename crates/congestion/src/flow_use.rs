//! How much of its own virtual flow a member of a group uses.
//!
//! What a member leaves of its flow goes to the others of its group. A flow that nobody uses must not collect
//! a share of strangers' for them, so it counts for [`LENDS`] times what its member uses of it, lately and on
//! average, and at the most for all of its window: one that rests counts for nothing within [`COUNTS_FOR`],
//! one that sends a packet now and then for next to nothing, and one whose member is held back by the group
//! in full. RFC 7661 is the model: there a window counts as used where half of it is, at some time in a
//! second. Here it is less than half, because to hand on what an application leaves is what a group is for,
//! and an average, because others use the window at all times and not only when its member does.

use anabranch_units::{Duration, Time};

/// A member that has used nothing for so long counts for nothing.
pub(crate) const COUNTS_FOR: Duration = Duration::from_secs(2);
/// A flow counts for so many times what its member uses.
pub(crate) const LENDS: f64 = 4.0;

/// The use of one flow. One that begins counts in full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowUse {
    /// The mean part of the flow's window that was used, from 0 to 1, as it was `at` that time.
    mean: f64,
    at: Option<Time>,
}

impl FlowUse {
    pub(crate) fn new() -> Self {
        Self { mean: 1.0, at: None }
    }

    pub(crate) fn begun(now: Time) -> Self {
        Self { mean: 1.0, at: Some(now) }
    }

    /// The member used as much of it as if it had used all of it for so long.
    pub(crate) fn used(&mut self, now: Time, span: Duration) {
        self.mean = (self.mean_at(now) + span.ratio_to(COUNTS_FOR)).min(1.0);
        self.at = Some(now);
    }

    /// The flow has begun by now: from here on it has to be used.
    pub(crate) fn begin(&mut self, now: Time) {
        self.at.get_or_insert(now);
    }

    /// The part of the flow's window that counts, from 0 to 1.
    pub(crate) fn counts(&self, now: Time) -> f64 {
        (LENDS * self.mean_at(now)).min(1.0)
    }

    fn mean_at(&self, now: Time) -> f64 {
        let rested = self.at.map_or(Duration::ZERO, |at| now.since(at));
        self.mean * (1.0 - rested.ratio_to(COUNTS_FOR)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// What counts after ten seconds in which a packet of `window` is acknowledged every `every_ms`, after
    /// 100 ms.
    fn steady(every_ms: u64, window: u64) -> f64 {
        let mut usage = FlowUse::new();
        for millis in (0..10_000).step_by(every_ms as usize) {
            usage.used(at(millis), Duration::from_millis(100) / window);
        }
        usage.counts(at(10_000))
    }

    #[test]
    fn who_sends_nothing_for_two_seconds_counts_for_nothing() {
        let mut usage = FlowUse::new();
        assert_eq!(usage.counts(at(4000)), 1.0);
        usage.begin(at(5000));
        assert_eq!(usage.counts(at(6400)), 1.0);
        assert!((0.1..0.5).contains(&usage.counts(at(6900))));
        assert_eq!(usage.counts(at(7000)), 0.0);
    }

    #[test]
    fn it_counts_for_four_times_what_is_used() {
        // Every 10 ms 1 of 30 packets: a third of the window.
        assert_eq!(steady(10, 30), 1.0);
        // Every 10 ms 1 of 100.
        assert!((steady(10, 100) - 0.4).abs() < 0.05, "{}", steady(10, 100));
        // Once a second 1 of 10.
        assert!(steady(1000, 10) < 0.05, "{}", steady(1000, 10));
    }
}
