//! Changes on trial, and rests after those that failed.

use anabranch_units::{Duration, Rate, Time};

/// A change whose effect is still to be seen.
#[derive(Clone, Debug)]
pub(super) enum Trial {
    /// Connections were added.
    Added {
        /// Throughput before.
        before: Rate,
        /// Connections before.
        count: usize,
    },
    /// Connections were closed.
    GaveBack {
        /// So many.
        count: usize,
    },
}

/// A rest after a failure that doubles with every one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) until: Time,
    pub(super) next: Duration,
}

impl Rest {
    pub(super) fn begin(&mut self, now: Time, longest: Duration) {
        self.until = now + self.next;
        self.next = (self.next * 2).min(longest);
    }
}

/// Growth that brought nothing rests only so long while the buffer is low.
pub(super) const SHORT_REST: Duration = Duration::from_secs(2);

/// After so long without a byte, or four round trips, another connection is tried; then after twice as long each
/// time.
pub(super) const FIRST_HELP: Duration = Duration::from_secs(1);

/// A time in which nothing comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// When something came last.
    pub(super) since: Time,
    /// No further connection is tried before.
    pub(super) help: Rest,
}

impl Silence {
    /// One that began then.
    pub(super) fn since(since: Time) -> Self {
        Self { since, help: Rest { until: since, next: FIRST_HELP } }
    }
}
