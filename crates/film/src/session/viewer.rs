//! The reader whose play is modelled, and what it shows.

use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::content::ReaderId;

/// A rate is measured over so long, or the next take after it.
pub(super) const MEASURED_OVER: Duration = Duration::from_secs(10);

/// The reader whose play is modelled.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    pub(super) reader: ReaderId,
    /// Where its play began.
    pub(super) start: u64,
    /// The next byte that it takes.
    pub(super) position: u64,
    /// Since when bytes lie ready; `None`: it waits for some.
    pub(super) ready: Option<Time>,
    pub(super) is_full: bool,
    /// What the player's own buffer held when it was full.
    pub(super) holds: Option<u64>,
    /// When what is measured now began, and where; and the last take.
    pub(super) measured: (Time, u64),
    pub(super) took: Time,
}

impl Viewer {
    pub(super) fn new(reader: ReaderId, start: u64, now: Time) -> Self {
        Self {
            reader,
            start,
            position: start,
            ready: None,
            is_full: false,
            holds: None,
            measured: (now, start),
            took: now,
        }
    }

    /// Everything before this was played at least, if it holds no more than it ever did.
    pub(super) fn at_least_played(&self) -> Option<Bytes> {
        self.holds.map(|holds| Bytes::new(self.position.saturating_sub(holds).saturating_sub(self.start)))
    }

    pub(super) fn measure_anew(&mut self, now: Time) {
        self.measured = (now, self.position);
        self.took = now;
    }

    /// It has taken everything before `position`. Answers what it took per time, when that was long enough.
    pub(super) fn takes(&mut self, position: u64, now: Time) -> Option<Rate> {
        if position == self.position {
            return None;
        }
        let paused = now.since(self.took) >= MEASURED_OVER;
        self.took = now;
        self.position = position;
        let (since, from) = self.measured;
        if paused || position < from {
            self.measure_anew(now);
            return None;
        }
        if now.since(since) < MEASURED_OVER {
            return None;
        }
        self.measure_anew(now);
        Some(Rate::of(Bytes::new(position - from), now.since(since)))
    }
}
