//! The least round-trip time of a path (rtt_min), and when it is taken for another path.
//!
//! The paper takes the least average ever seen, and proposes traceroute for a change of route. A shorter
//! route shows by itself. With a longer one every average is beyond what is borne, and the number of
//! connections goes down to one and stays there: the stream keeps the rate of one connection at least. That
//! is where our rule begins. A queue that a single connection makes, alone or with others, grows and shrinks:
//! round trips differ. If instead, for several averages on end, no round trip came back within what is borne,
//! and all of them are equally long but for a hundredth, then that is what the path takes now.
//!
//! It can be wrong: a queue that never varies looks the same. What that costs is bounded: the number of
//! connections rises from one until the queue is longer by what is borne, and falls again; and a shorter
//! round trip sets things right at once.

use anabranch_units::{Duration, Ratio};

use super::window::Average;

/// What the least round-trip time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Least {
    /// The least average, as in the paper.
    Average,
    /// The shortest single round trip. Where a queue never drains as long as an average takes, a newcomer
    /// comes nearer to the truth with it.
    Sample,
}

/// Round trips that differ by no more than this part of the shortest are equally long.
const EQUAL: Ratio = Ratio::new(1, 100);
const NO_SUSPICION: (u32, Duration, Duration) = (0, Duration::MAX, Duration::ZERO);

/// The least round-trip time, and what speaks against it.
#[derive(Clone, Debug)]
pub(super) struct LeastRtt {
    least: Duration,
    measure: Least,
    /// After how many averages the path counts as another one.
    patience: Option<u32>,
    /// How many averages on end have spoken for another path, the shortest round trip among them and the
    /// largest average.
    suspicion: (u32, Duration, Duration),
}

impl LeastRtt {
    pub(super) fn new(measure: Least, patience: Option<u32>) -> Self {
        Self { least: Duration::MAX, measure, patience, suspicion: NO_SUSPICION }
    }

    /// The least average of the path, never zero. The longest time there is before the first average.
    pub(super) fn rtt(&self) -> Duration {
        self.least.max(Duration::from_nanos(1))
    }

    /// A further average; `is_alone`: it was measured with a single connection. Whether the path was found to
    /// be another one.
    pub(super) fn update(&mut self, average: Average, tolerance: Ratio, is_alone: bool) -> bool {
        self.least = self.least.min(match self.measure {
            Least::Average => average.mean,
            Least::Sample => average.shortest,
        });
        let Some(patience) = self.patience else { return false };
        let (count, shortest, largest) = self.suspicion;
        let (shortest, largest) = (shortest.min(average.shortest), largest.max(average.mean));
        let is_borne = shortest <= self.least + self.least * tolerance;
        if !is_alone || is_borne || largest > shortest + shortest * EQUAL {
            self.suspicion = NO_SUSPICION;
            return false;
        }
        self.suspicion = (count + 1, shortest, largest);
        if count + 1 < patience.max(1) {
            return false;
        }
        self.suspicion = NO_SUSPICION;
        self.least = shortest;
        true
    }
}
