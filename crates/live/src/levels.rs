//! When the least of a quantity counts for a route that has become longer. Queues only add to it, so the
//! least ever seen is the route's; but when a longer route takes its place nothing is as short any more, and
//! that looks like a queue that stands.
//!
//! A queue grows and shrinks, a route does not: when for a minute the least of each window is the same, and
//! the mean hardly above it, that is what the route takes now. A longer route with a jitter of its own is not
//! found so: then what it adds goes on to count as a queue. And it is a route when for a window nothing would
//! be of use, as everything is longer by more than may be borne.

use std::collections::VecDeque;

use anabranch_units::{Duration, Time};

/// The least of each such time is compared.
const WINDOW: Duration = Duration::from_secs(5);
/// So many of them have to be equal.
const WINDOWS: usize = 12;
/// They are when means and least differ by no more than this part of what the route would be longer by, or by
/// [`EQUAL`].
const PART: i64 = 20;
/// Microseconds that are nothing.
const EQUAL: i64 = 5_000;

/// A quantity in the last windows, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    began: Time,
    open: Option<Window>,
    /// The least and the mean of each.
    past: VecDeque<(i64, i64)>,
}

/// The window that is open.
#[derive(Clone, Copy, Debug)]
struct Window {
    least: i64,
    sum: i64,
    count: i64,
}

impl Window {
    fn add(before: Option<Self>, value: i64) -> Self {
        let Self { least, sum, count } = before.unwrap_or(Self { least: value, sum: 0, count: 0 });
        Self { least: least.min(value), sum: sum.saturating_add(value), count: count + 1 }
    }
}

impl Levels {
    /// A further value, where `least` is the route's and what is more than `borne` above that is of no use.
    /// Answers with what the route takes when it has become longer.
    pub(super) fn sample(&mut self, value: i64, least: i64, borne: i64, now: Time) -> Option<i64> {
        let age = now.since(self.began);
        if age < WINDOW {
            self.open = Some(Window::add(self.open, value));
            return None;
        }
        let window = self.open.replace(Window::add(None, value));
        self.began = now;
        let Some(window) = window.filter(|_| age < WINDOW * 2) else {
            // Nobody knows what was in the time between.
            self.past.clear();
            return None;
        };
        if self.past.len() >= WINDOWS {
            self.past.pop_front();
        }
        self.past.push_back((window.least, window.sum / window.count));
        let lowest = self.past.iter().map(|(least, _)| *least).min()?;
        let highest = self.past.iter().map(|(_, mean)| *mean).max()?;
        let is_of_no_use = window.least.saturating_sub(least) > borne;
        let longer = lowest.saturating_sub(least);
        let is_steady = self.past.len() == WINDOWS
            && longer > EQUAL
            && highest.saturating_sub(lowest) <= EQUAL.max(longer / PART);
        if is_of_no_use {
            self.past.clear();
            return Some(window.least);
        }
        is_steady.then_some(lowest)
    }

    /// Whether for a window or longer nothing was about as short as `least`.
    pub(super) fn is_above(&self, least: i64) -> bool {
        let open = self.open.map_or(i64::MAX, |open| open.least);
        self.past.back().is_some_and(|(last, _)| open.min(*last).saturating_sub(least) > EQUAL)
    }
}

/// Microseconds that may be subtracted.
pub(super) fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
