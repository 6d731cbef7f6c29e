//! What bounds the rate beside the equation: the receive rates of the last round trips, and whether the
//! sender used what it was allowed.

use std::collections::VecDeque;

use anabranch_units::{Duration, Time};

/// More reports than two round trips bring; a receiver that sends more is bounded by the newest ones.
const MOST_RATES: usize = 8;

/// The receive rates reported of late (X_recv_set; RFC 5348, section 4.3), bytes per second.
#[derive(Clone, Debug)]
pub(super) struct ReceiveRates(VecDeque<(Time, f64)>);

impl ReceiveRates {
    /// No report yet, so no bound.
    pub(super) fn unbounded(now: Time) -> Self {
        Self(VecDeque::from([(now, f64::INFINITY)]))
    }

    pub(super) fn maximum(&self) -> f64 {
        self.0.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// Adds a rate and forgets those that are older than `memory`.
    pub(super) fn update(&mut self, rate: f64, now: Time, memory: Duration) {
        self.0.push_back((now, rate));
        self.0.retain(|(reported, _)| now.since(*reported) <= memory);
        if self.0.len() > MOST_RATES {
            self.0.pop_front();
        }
    }

    /// Adds a rate and keeps the largest only, as if it had been reported now.
    pub(super) fn maximize(&mut self, rate: f64, now: Time) {
        let known = self.0.iter().map(|(_, rate)| *rate).filter(|rate| rate.is_finite());
        let largest = known.fold(rate, f64::max);
        self.replace(largest, now);
    }

    pub(super) fn scale(&mut self, factor: f64) {
        for (_, rate) in &mut self.0 {
            *rate *= factor;
        }
    }

    pub(super) fn replace(&mut self, rate: f64, now: Time) {
        self.0 = VecDeque::from([(now, rate)]);
    }
}

/// Runs of packets that are kept apart; with more of them in a round trip the oldest become one.
const MOST_RUNS: usize = 16;

/// Finds out whether the sender had too little data in all the time that a report covers (RFC 5348, section
/// 4.3: a data-limited interval).
#[derive(Clone, Debug, Default)]
pub(super) struct DataLimit {
    /// The first and the last of consecutive packets after each of which more data waited.
    runs: VecDeque<(Time, Time)>,
    /// Whether the last packet belongs to the last run.
    is_running: bool,
    /// What the last report covered.
    covered: Option<Time>,
}

impl DataLimit {
    /// A packet was sent; was there more data than may be sent?
    pub(super) fn sent(&mut self, now: Time, has_more: bool) {
        match self.runs.back_mut() {
            Some((_, last)) if self.is_running && has_more => *last = now,
            _ if has_more => self.runs.push_back((now, now)),
            _ => {}
        }
        self.is_running = has_more;
        if self.runs.len() > MOST_RUNS
            && let Some((first, _)) = self.runs.pop_front()
        {
            self.runs[0].0 = first;
        }
    }

    /// A report covers the packets since the last report up to the one sent at `until`: was there never
    /// enough data?
    pub(super) fn was_limited(&mut self, until: Time) -> bool {
        let had_enough = self.runs.iter().any(|(first, last)| *first <= until && Some(*last) > self.covered);
        self.covered = Some(until);
        self.runs.retain(|(_, last)| *last > until);
        !had_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_largest_rate_of_the_memory_counts() {
        let memory = Duration::from_millis(200);
        let mut rates = ReceiveRates::unbounded(at(0));
        rates.update(10.0, at(100), memory);
        assert_eq!(rates.maximum(), f64::INFINITY);
        rates.update(5.0, at(250), memory);
        assert_eq!(rates.maximum(), 10.0);
        rates.update(6.0, at(301), memory);
        assert_eq!(rates.maximum(), 6.0);
        rates.scale(0.5);
        assert_eq!(rates.maximum(), 3.0);
        rates.maximize(1.0, at(400));
        rates.update(0.0, at(600), memory);
        assert_eq!(rates.maximum(), 3.0);
        let mut none = ReceiveRates::unbounded(at(0));
        none.maximize(7.0, at(1));
        assert_eq!(none.maximum(), 7.0);
    }

    #[test]
    fn reports_without_end_are_not_kept() {
        let mut rates = ReceiveRates::unbounded(at(0));
        for _ in 0..1000 {
            rates.update(1.0, at(0), Duration::MAX);
        }
        assert_eq!(rates.0.len(), MOST_RATES);
    }

    #[test]
    fn an_interval_is_limited_when_there_was_never_enough_in_it() {
        let mut limit = DataLimit::default();
        limit.sent(at(0), true);
        assert!(!limit.was_limited(at(0)));
        limit.sent(at(10), false);
        limit.sent(at(90), false);
        assert!(limit.was_limited(at(90)));
        // Enough only after what the report covers.
        limit.sent(at(190), false);
        limit.sent(at(210), true);
        assert!(limit.was_limited(at(190)));
        // That moment belongs to the next report.
        limit.sent(at(290), false);
        assert!(!limit.was_limited(at(290)));
        // Always enough, wherever reports cut.
        for moment in 40..60 {
            limit.sent(at(10 * moment), true);
        }
        for until in [410, 420, 500, 590] {
            assert!(!limit.was_limited(at(until)));
        }
    }

    #[test]
    fn runs_without_end_are_not_kept() {
        let mut limit = DataLimit::default();
        for moment in 0..1000 {
            limit.sent(at(moment), moment % 2 == 0);
        }
        assert_eq!(limit.runs.len(), MOST_RUNS);
        assert!(!limit.was_limited(at(0)));
        assert!(!limit.was_limited(at(999)));
    }
}
