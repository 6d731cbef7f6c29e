//! Random early detection (Floyd and Jacobson 1993), gentle above the upper threshold.

use anabranch_queues::{Codepoint, Verdict};
use anabranch_units::{Bytes, Rate};

use crate::model::Red;
use anabranch_scenario::random::Random;

/// The average queue and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct RedAverage {
    parameters: Red,
    /// Time of a typical packet's transmission, by which the average falls while the link is idle.
    packet_time: f64,
    average: f64,
    /// Packets since the last drop or mark.
    since_drop: f64,
}

impl RedAverage {
    pub(super) fn new(parameters: Red, rate: Rate) -> Self {
        let packet_time = rate.time_for(Bytes::new(1000)).as_nanos() as f64;
        Self { parameters, packet_time, average: 0.0, since_drop: 0.0 }
    }

    /// What becomes of a packet that finds `waiting` others. The link was last busy at `idle_since`.
    pub(super) fn judge(
        &mut self,
        codepoint: Codepoint,
        waiting: usize,
        idle_since: u64,
        now: u64,
        random: &mut Random,
    ) -> Verdict {
        let Red { low, high, most, weight, ecn } = self.parameters;
        if now > idle_since {
            let missed = (now - idle_since) as f64 / self.packet_time;
            self.average *= libm::pow(1.0 - weight, missed);
        }
        self.average += weight * (waiting as f64 - self.average);
        let probability = if self.average < low {
            self.since_drop = 0.0;
            return Verdict::Passes;
        } else if self.average < high {
            most * (self.average - low) / (high - low)
        } else if self.average < 2.0 * high {
            most + (1.0 - most) * (self.average - high) / high
        } else {
            self.since_drop = 0.0;
            return Verdict::Dropped;
        };
        self.since_drop += 1.0;
        // Drops are spread evenly (section 4): the longer ago the last one, the likelier the next.
        let spread = self.since_drop * probability;
        let drops = spread >= 1.0 || random.unit() < probability / (1.0 - spread);
        if !drops {
            return Verdict::Passes;
        }
        self.since_drop = 0.0;
        // Above the upper threshold marks were not enough (RFC 3168, section 7).
        Verdict::picked(ecn && codepoint.is_capable() && self.average < high)
    }
}
