//! The least round-trip time of a path (rtt_min), and when it is taken for another path.
//!
//! The paper takes the least average ever seen, and proposes traceroute for a change of route. A shorter route shows by itself.
//! With a longer one every average is beyond what is borne, and the number of connections goes down to one and stays there: the
//! stream keeps the rate of one connection at least. That is where our rule begins. With a single connection the round-trip
//! time falls back to its least now and then if a queue of ours is what made it long, as TFRC leaves the queue at every loss.
//! If instead, for several averages on end, no single round trip came back within what is borne, and the averages lie no higher
//! above the shortest round trip than is borne, then the shortest one is what the path takes now.
//!
//! It can be wrong: a queue that another flow, or a single connection of ours, never lets drain looks the same. What that costs is
//! bounded: the number of connections rises from one until the queue is longer by what is borne, and falls again; and a
//! shorter round trip sets things right at once.

use units::{Duration, Ratio};

use super::Average;

#[derive(Clone, Debug)]
pub(super) struct LeastRtt {
    least: Duration,
    /// After how many averages the path counts as another one.
    patience: Option<u32>,
    /// How many averages on end have spoken for another path, and the shortest round trip among them.
    suspicion: (u32, Duration),
}

impl LeastRtt {
    pub(super) fn new(patience: Option<u32>) -> Self {
        Self { least: Duration::MAX, patience, suspicion: (0, Duration::MAX) }
    }

    /// The least average of the path, never zero. The longest time there is before the first average.
    pub(super) fn rtt(&self) -> Duration {
        self.least.max(Duration::from_nanos(1))
    }

    /// A further average; `is_alone`: it was measured with a single connection. Whether the path was found to be another one.
    pub(super) fn update(&mut self, average: Average, tolerance: Ratio, is_alone: bool) -> bool {
        self.least = self.least.min(average.mean);
        let Some(patience) = self.patience else { return false };
        let bound = |rtt: Duration| rtt + rtt * tolerance;
        let shortest = self.suspicion.1.min(average.shortest);
        if !is_alone || shortest <= bound(self.least) || average.mean > bound(shortest) {
            self.suspicion = (0, Duration::MAX);
            return false;
        }
        self.suspicion = (self.suspicion.0 + 1, shortest);
        if self.suspicion.0 < patience.max(1) {
            return false;
        }
        self.suspicion = (0, Duration::MAX);
        self.least = shortest;
        true
    }
}
