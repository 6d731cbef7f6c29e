//! When a round trip that stays long is the route's, and not a queue's.
//!
//! A route changes at once and stays as it is then. A queue builds up over some round trips, and then grows
//! and shrinks: its own stream's as that sends more and less, that of others as they find their rates. So a
//! round trip that is beyond what is borne is taken for another route's when two things are so:
//!
//! - it came at once: half of what was added, or more, was added from one round trip to the next;
//! - it is steady: what varies slowly, beside the jitter ([`super::noise`]), is little. A median tells, so
//!   that a burst of the stream's own does not matter; what grows and falls like a saw's teeth is far from
//!   its median all the time.
//!
//! A queue can look so for a while, when a flow with a large first window begins, or while CUBIC is near its
//! largest window. So a route is on probation: a round trip that is shorter by a part of what the route was
//! longer by tells that it was a queue. Then the shortest round trip is what it was before, and the next time
//! twice as many round trips have to speak for a route. What was so for a minute is a route for good.

use std::collections::VecDeque;

use anabranch_units::{Duration, Ratio, Time};

use super::noise::distance;

/// So many round trips have to speak for a route at first, and at the most. If they do not, twice as many are
/// looked at.
const ROUND_TRIPS: usize = 16;
const MOST_ROUND_TRIPS: usize = 512;
/// Before they are looked at so many pass, in which the stream's own queue drains that the longer route
/// leaves.
const DRAINING: usize = 8;
/// What was added at once is what two of them are longer than the two before.
const BEFORE: usize = 2;
const AFTER: usize = 2;
/// So many round trips show that something was added; it was added in these, or in the one before.
const RECENT: usize = 3;
const REACH: usize = RECENT + 2;
/// At least this part of what is beyond the shortest round trip and its jitter came at once.
const AT_ONCE: Ratio = Ratio::new(1, 2);
/// At least this part of the round trip was added, and at most so many times it: less is hardly beyond what
/// is borne, and more is a long queue rather than a route.
const LEAST_ADDED: Ratio = Ratio::new(1, 10);
const MOST_ADDED: u64 = 2;
/// What varies slowly is at most this part of the variance, and its deviation this part of what was added.
const SLOW: f64 = 0.4;
const LEAST_OF_ADDED: f64 = 1.0 / 8.0;
/// The deviation as a multiple of the median distance from the median, where draws are normal.
const DEVIATION: f64 = 1.4826;
/// Or, in place of the first, its deviation is so small a part of the round trip.
const STEADY: f64 = 0.02;
/// A route was a queue if a round trip is shorter by this part of what was added.
const TOO_SHORT: Ratio = Ratio::new(1, 4);
const PROBATION: Duration = Duration::from_secs(60);

/// A suspicion that what is beyond what is borne is no queue.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    began: Time,
    /// The number of connections with which it began.
    connections: f64,
    /// Round trips since.
    passed: usize,
}

/// A route that was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    at: Time,
    /// The shortest round trip before.
    before: Duration,
    /// A round trip below that tells that it was none.
    least: Duration,
}

/// What speaks for another route, and whether it was one.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    /// The round trips of late, the oldest first.
    round_trips: VecDeque<Duration>,
    suspicion: Option<Suspicion>,
    found: Option<Found>,
    /// So many round trips have to speak for it.
    patience: usize,
}

/// A route was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Route {
    /// The median of its round trips.
    pub(super) level: Duration,
    /// How many connections there were before the stream gave way, and how long ago that was.
    pub(super) connections: f64,
    pub(super) since: Duration,
}

impl Default for Trial {
    fn default() -> Self {
        Self { round_trips: VecDeque::new(), suspicion: None, found: None, patience: ROUND_TRIPS }
    }
}

impl Trial {
    /// The mean of the last few round trips.
    pub(super) fn recent(&self) -> Option<Duration> {
        let first = self.round_trips.len().checked_sub(RECENT)?;
        mean(self.round_trips.range(first..).copied())
    }

    /// Whether `added` beyond the shortest round trip and its jitter came at once, a little before the last
    /// so many.
    pub(super) fn is_step(&self, added: Duration, since: usize) -> bool {
        let last = self.round_trips.len().saturating_sub(AFTER);
        let first = self.round_trips.len().saturating_sub(since + REACH).max(BEFORE);
        let steps = (first..=last).filter_map(|at| {
            let before = mean(self.round_trips.range(at - BEFORE..at).copied())?;
            Some(mean(self.round_trips.range(at..at + AFTER).copied())? - before)
        });
        steps.max().is_some_and(|step| step >= added * AT_ONCE)
    }

    /// What came at once, with so many connections, may be another route.
    pub(super) fn suspect(&mut self, now: Time, connections: f64) {
        self.suspicion = Some(Suspicion { began: now, connections, passed: 0 });
    }

    /// A round trip that does not overlap with the one before. `floor` is the shortest and what jitter adds
    /// to a mean, `jitter` its deviation.
    pub(super) fn round_trip(
        &mut self,
        now: Time,
        sample: Duration,
        floor: Duration,
        jitter: Duration,
    ) -> Option<Route> {
        while self.round_trips.len() >= BEFORE + 2 * REACH + DRAINING + 2 * self.patience {
            self.round_trips.pop_front();
        }
        self.round_trips.push_back(sample);
        let suspicion = self.suspicion.as_mut()?;
        suspicion.passed += 1;
        let count = suspicion.passed.checked_sub(DRAINING)?;
        let is_last = count >= 2 * self.patience;
        if count != self.patience && !is_last {
            return None;
        }
        let (connections, since) = (suspicion.connections, now.since(suspicion.began));
        if is_last {
            self.suspicion = None;
        }
        let first = self.round_trips.len().checked_sub(count)?;
        let mut seen: Vec<Duration> = self.round_trips.range(first..).copied().collect();
        let level = median(&mut seen)?;
        let added = level - floor;
        let is_plausible = added >= floor * LEAST_ADDED && added <= floor * MOST_ADDED;
        if !is_plausible
            || !is_steady(&mut seen, level, added, jitter)
            || !self.is_step(added, count + DRAINING + REACH)
        {
            return None;
        }
        self.suspicion = None;
        self.round_trips.clear();
        Some(Route { level, connections, since })
    }

    /// The shortest round trip is `least` now, and was `before`.
    pub(super) fn adopt(&mut self, now: Time, before: Duration, least: Duration) {
        let before = self.found.map_or(before, |found| found.before.min(before));
        self.found = Some(Found { at: now, before, least: least - (least - before) * TOO_SHORT });
    }

    /// The shortest round trip before, if `sample` tells that what was found was no route.
    pub(super) fn refute(&mut self, now: Time, sample: Duration) -> Option<Duration> {
        let found = self.found?;
        if now.since(found.at) > PROBATION {
            self.found = None;
            self.patience = (self.patience / 2).max(ROUND_TRIPS);
            return None;
        }
        if sample >= found.least {
            return None;
        }
        self.found = None;
        self.patience = (self.patience * 2).min(MOST_ROUND_TRIPS);
        Some(found.before)
    }
}

/// Whether round trips differ as draws of the jitter do, or hardly at all; they are longer by `added` than
/// those before. By the median of their distances, which bursts of the stream's own leave as it is.
fn is_steady(seen: &mut [Duration], level: Duration, added: Duration, jitter: Duration) -> bool {
    seen.iter_mut().for_each(|sample| *sample = distance(*sample, level));
    let variance = median(seen).map_or(0.0, |distance| (DEVIATION * distance.as_secs_f64()).powi(2));
    let slow = (variance - jitter.as_secs_f64().powi(2)).max(0.0);
    let is_little = slow.sqrt() <= LEAST_OF_ADDED * added.as_secs_f64();
    is_little && (slow <= SLOW * variance || slow.sqrt() <= STEADY * level.as_secs_f64())
}

/// The median, `None` of none; it leaves them in another order.
pub(super) fn median(times: &mut [Duration]) -> Option<Duration> {
    let middle = times.len() / 2;
    (!times.is_empty()).then(|| *times.select_nth_unstable(middle).1)
}

/// The mean, `None` of none.
fn mean(round_trips: impl Iterator<Item = Duration>) -> Option<Duration> {
    let (sum, count) =
        round_trips.fold((Duration::ZERO, 0), |(sum, count), sample| (sum + sample, count + 1));
    (count > 0).then(|| sum / count)
}
