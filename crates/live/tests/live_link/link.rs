//! One direction of a link, as the testbed has it: a queue that drops what does not fit, a rate, a delay,
//! losses.

use std::collections::VecDeque;

use anabranch_testkit::Random;
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

/// A link that loses packets by itself, one by one or in bursts (Gilbert-Elliott: all in the bad state, none
/// in the good one).
#[derive(Clone, Debug)]
pub struct Link {
    pub rate: Rate,
    pub delay: Duration,
    pub queue: usize,
    pub loss: f64,
    /// The mean length of a burst, packets; one: losses are independent.
    pub burst: f64,
    pub random: Random,
    /// What is added to the delay at the most; packets do not overtake each other. Without it what TCP sends
    /// comes in step with what leaves the queue.
    pub jitter: Duration,
    last_arrival: Time,
    is_bad: bool,
    departures: VecDeque<Time>,
}

impl Link {
    pub fn new(rate: Rate, delay: Duration, queue: usize, (loss, burst): (f64, f64), seed: u64) -> Self {
        Self {
            rate,
            delay,
            queue,
            loss,
            burst,
            random: Random::new(seed),
            jitter: Duration::ZERO,
            last_arrival: Time::ZERO,
            is_bad: false,
            departures: VecDeque::new(),
        }
    }

    /// A packet enters: when it arrives, `None` if it does not.
    pub fn send(&mut self, size: Bytes, now: Time) -> Option<Time> {
        while self.departures.front().is_some_and(|departure| *departure <= now) {
            self.departures.pop_front();
        }
        // One is on the wire, the others wait.
        if self.departures.len() > self.queue {
            return None;
        }
        let departure = self.departures.back().map_or(now, |last| *last) + self.rate.time_for(size);
        self.departures.push_back(departure);
        if self.loses() {
            return None;
        }
        let jitter = if self.jitter.is_zero() {
            self.jitter
        } else {
            self.jitter * Ratio::from_f64(self.random.draw())
        };
        self.last_arrival = self.last_arrival.max(departure + self.delay + jitter);
        Some(self.last_arrival)
    }

    fn loses(&mut self) -> bool {
        let draw = self.random.draw();
        if self.burst <= 1.0 {
            return draw < self.loss;
        }
        let to_good = 1.0 / self.burst;
        let to_bad = to_good * self.loss / (1.0 - self.loss);
        self.is_bad = if self.is_bad { draw >= to_good } else { draw < to_bad };
        self.is_bad
    }
}
