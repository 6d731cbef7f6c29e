//! The least round-trip time of a path (rtt_min), and when it is taken for another path.
//!
//! The paper takes the least average ever seen, and proposes traceroute for a change of route. A shorter
//! route shows by itself. With a longer one every average is beyond what is borne, and the number of
//! connections goes down to one and stays there: the stream keeps the rate of one connection at least. Where
//! jitter is told from queues, a longer route is found by what it does to single round trips (`route.rs`).

use anabranch_units::{Duration, Ratio, Time};

use super::noise::Noise;
use super::route::{Route, Trial};
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

/// The least round-trip time, and what speaks against it.
#[derive(Clone, Debug)]
pub(super) struct LeastRtt {
    least: Duration,
    measure: Least,
    tolerance: Ratio,
    jitter: Option<Jitter>,
}

/// Jitter as it is told from queues, and routes that are found in spite of it.
#[derive(Clone, Debug, Default)]
struct Jitter {
    noise: Noise,
    trial: Trial,
}

/// A mean round trip is so many deviations of the jitter above the shortest of many: what it is above that by
/// is a queue's.
const DEVIATIONS: u64 = 4;

/// Jitter counts for this part of the shortest round trip at the most: what others' flows make a long queue
/// vary by from one round trip to the next looks the same.
const MOST_JITTER: Ratio = Ratio::new(3, 4);

impl LeastRtt {
    /// `tolerance`: what is borne, as a part of the least; `tells_jitter`: from queues, and other routes by that.
    pub(super) fn new(measure: Least, tolerance: Ratio, tells_jitter: bool) -> Self {
        let jitter = tells_jitter.then(Jitter::default);
        Self { least: Duration::MAX, measure, tolerance, jitter }
    }

    /// The least average of the path, never zero. The longest time there is before the first average.
    pub(super) fn rtt(&self) -> Duration {
        self.least.max(Duration::from_nanos(1))
    }

    /// What jitter adds to a mean round trip, beside what is borne of a queue. Both vary by themselves, so
    /// their squares add up: a little jitter is within what is borne, and much of it counts in full.
    pub(super) fn jitter(&self) -> Duration {
        let Some(jitter) = &self.jitter else { return Duration::ZERO };
        let borne = self.rtt().as_secs_f64() * self.tolerance.as_f64();
        let added = (jitter.noise.deviation() * DEVIATIONS).as_secs_f64();
        Duration::from_secs_f64(borne.hypot(added) - borne).min(self.rtt() * MOST_JITTER)
    }

    /// What a queue adds to a mean round trip, as a part of the shortest; nothing while nothing is known of
    /// the jitter.
    pub(super) fn queueing(&self, mean: Duration) -> f64 {
        match &self.jitter {
            Some(jitter) if !jitter.noise.is_known() => 0.0,
            _ => (mean - self.jitter() - self.rtt()).ratio_to(self.rtt()),
        }
    }

    /// A round trip. Answers when another route was found.
    pub(super) fn sample(&mut self, now: Time, sample: Duration) -> Option<Route> {
        let added = self.jitter();
        let floor = self.rtt() + added;
        let jitter = self.jitter.as_mut()?;
        if let Some(before) = jitter.trial.refute(now, sample) {
            self.least = before.min(sample);
        }
        if !jitter.noise.sample(now, sample) {
            return None;
        }
        let route = jitter.trial.round_trip(now, sample, floor, jitter.noise.deviation())?;
        let (before, least) = (self.least, route.level - added);
        jitter.trial.adopt(now, before, least);
        self.least = least;
        Some(route)
    }

    /// Whether the last few round trips are beyond the shortest by more than `borne`, a part of it, and came
    /// to be so at once.
    pub(super) fn is_step(&self, borne: f64) -> bool {
        let Some(jitter) = &self.jitter else { return false };
        jitter.trial.recent().is_some_and(|recent| {
            self.queueing(recent) > borne && jitter.trial.is_step(recent - self.jitter() - self.rtt(), 0)
        })
    }

    /// What came at once, with so many connections, may be another route.
    pub(super) fn suspect(&mut self, now: Time, connections: f64) {
        if let Some(jitter) = &mut self.jitter {
            jitter.trial.suspect(now, connections);
        }
    }

    /// A further average.
    pub(super) fn update(&mut self, average: Average) {
        self.least = self.least.min(match self.measure {
            Least::Average => average.mean,
            Least::Sample => average.shortest,
        });
    }
}
