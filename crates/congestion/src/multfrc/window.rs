//! The mean round-trip time of some round trips.

use anabranch_units::{Duration, Time};

/// The round-trip times of the last m round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Average {
    pub(super) mean: Duration,
    /// The shortest time among them.
    pub(super) shortest: Duration,
}

/// The measurement sub-system, equation (8): the mean over m round trips.
///
/// The paper's connections report once in a round trip, and it speaks of the mean of m reports. Several
/// connections report several times, and TFRC also at losses. So an average needs m reports, and m mean round
/// trips as well.
#[derive(Clone, Debug)]
pub(super) struct Window {
    round_trips: u64,
    /// When the first round trip began.
    began: Time,
    sum: Duration,
    count: u64,
    shortest: Duration,
}

impl Window {
    pub(super) fn new(round_trips: u32) -> Self {
        Self {
            round_trips: u64::from(round_trips.max(1)),
            began: Time::ZERO,
            sum: Duration::ZERO,
            count: 0,
            shortest: Duration::MAX,
        }
    }

    pub(super) fn sample(&mut self, now: Time, sample: Duration) -> Option<Average> {
        // A clock that was set back begins the window anew.
        if self.count == 0 || now < self.began {
            self.began = now - sample;
            (self.sum, self.count, self.shortest) = (Duration::ZERO, 0, Duration::MAX);
        }
        self.sum += sample;
        self.count += 1;
        self.shortest = self.shortest.min(sample);
        let mean = self.sum / self.count;
        if self.count < self.round_trips || now.since(self.began) < mean * self.round_trips {
            return None;
        }
        self.count = 0;
        Some(Average { mean, shortest: self.shortest })
    }
}
