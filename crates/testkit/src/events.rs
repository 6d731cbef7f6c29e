//! What is to happen in a virtual world.

use std::collections::BTreeMap;

use anabranch_units::Time;

/// What is to happen, in the order of time; what is due at the same time, in the order in which it was put
/// in.
///
/// ```
/// use anabranch_testkit::Events;
/// use anabranch_units::{Duration, Time};
///
/// let at = |millis| Time::ZERO + Duration::from_millis(millis);
/// let mut events = Events::default();
/// events.put(at(20), "later");
/// events.put(at(10), "first");
/// events.put(at(10), "second");
/// assert_eq!((events.next(), events.due(at(9))), (at(10), None));
/// let due: Vec<_> = std::iter::from_fn(|| events.due(at(10))).collect();
/// assert_eq!((due, events.next()), (vec!["first", "second"], at(20)));
/// ```
#[derive(Clone, Debug)]
pub struct Events<T> {
    queue: BTreeMap<(Time, u64), T>,
    count: u64,
}

impl<T> Default for Events<T> {
    fn default() -> Self {
        Self { queue: BTreeMap::new(), count: 0 }
    }
}

impl<T> Events<T> {
    /// Puts in what is to happen at a time.
    pub fn put(&mut self, at: Time, what: T) {
        self.count += 1;
        self.queue.insert((at, self.count), what);
    }

    /// When the next is due; [`Time::NEVER`] where there is none.
    pub fn next(&self) -> Time {
        self.queue.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at)
    }

    /// Takes out the next if it is due now.
    pub fn due(&mut self, now: Time) -> Option<T> {
        self.queue.first_entry().filter(|first| first.key().0 <= now).map(|first| first.remove())
    }

    /// Whether nothing is to happen any more.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
