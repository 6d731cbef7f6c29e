//! Proportional integral controller enhanced (RFC 8033, section 4; of the optional parts of section 5 marks,
//! 5.1).

use anabranch_scenario::model::Pie;
use anabranch_scenario::random::Random;

use crate::ecn::{Codepoint, Verdict};

/// T_UPDATE, in nanoseconds.
const UPDATE: u64 = 15_000_000;
/// MAX_BURST.
const BURST: u64 = 150_000_000;
/// Weights of the distance to the target, and of the trend; per second.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// From this probability on packets are dropped, marks or not (mark_ecnth, section 5.1).
const MARKS_BELOW: f64 = 0.1;

/// The probability of a drop, and what it follows from.
#[derive(Clone, Debug)]
pub struct PieState {
    /// QDELAY_REF, in seconds.
    target: f64,
    marks: bool,
    probability: f64,
    /// The queueing delay when the probability was last computed, in seconds.
    delay_before: f64,
    burst_left: u64,
    next_update: u64,
}

impl PieState {
    /// That of a queue in which nothing has been.
    pub fn new(parameters: Pie) -> Self {
        Self {
            target: parameters.target.as_secs_f64(),
            marks: parameters.ecn,
            probability: 0.0,
            delay_before: 0.0,
            burst_left: BURST,
            next_update: UPDATE,
        }
    }

    /// What becomes of a packet that comes now. Of a queue that `is_short`, with no more than two packets,
    /// nothing is dropped or marked early. `delay` tells how long a packet that came at a moment would have
    /// waited, in nanoseconds, for the moments since the last call.
    #[inline]
    pub fn judge(
        &mut self,
        codepoint: Codepoint,
        is_short: bool,
        now: u64,
        delay: impl Fn(u64) -> u64,
        random: &mut Random,
    ) -> Verdict {
        self.update(now, delay);
        let is_calm = self.delay_before < self.target / 2.0 && self.probability < 0.2;
        if self.burst_left > 0 || is_calm || is_short || random.unit() >= self.probability {
            return Verdict::Passes;
        }
        Verdict::picked(self.marks && codepoint.is_capable() && self.probability < MARKS_BELOW)
    }

    /// Does what should have been done at every update until now. To be called before the queue gets a packet,
    /// and before it loses one where `delay` could not tell afterwards what it was.
    #[inline]
    pub fn update(&mut self, now: u64, delay: impl Fn(u64) -> u64) {
        while self.next_update <= now {
            let delay = delay(self.next_update) as f64 / 1e9;
            if delay <= 0.0 && self.delay_before <= 0.0 && self.probability < 1e-9 {
                // Nothing will change until somebody comes.
                self.probability = 0.0;
                self.burst_left = BURST;
                self.next_update += (now - self.next_update) / UPDATE * UPDATE + UPDATE;
                return;
            }
            self.step(delay);
            self.next_update += UPDATE;
        }
    }

    /// Section 4.2, with the steps by the probability's size.
    fn step(&mut self, delay: f64) {
        let by = match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        let mut change = (ALPHA * (delay - self.target) + BETA * (delay - self.delay_before)) / by;
        if self.probability >= 0.1 {
            change = change.min(0.02);
        }
        self.probability += change;
        if delay <= 0.0 && self.delay_before <= 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        let half = self.target / 2.0;
        self.burst_left = if self.probability <= 0.0 && delay < half && self.delay_before < half {
            BURST
        } else {
            self.burst_left.saturating_sub(UPDATE)
        };
        self.delay_before = delay;
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Duration;

    use super::*;

    fn pie() -> PieState {
        PieState::new(Pie { target: Duration::from_millis(15), ecn: true })
    }

    #[test]
    fn the_probability_rises_above_the_target_and_falls_below_it() {
        let mut pie = pie();
        // The queue stays at 50 ms, then at 5.
        let mut highest = 0.0;
        for number in 1..2000 {
            let now = number * UPDATE;
            pie.update(now, |_| 50_000_000);
            assert!(pie.probability >= highest, "{number}");
            highest = pie.probability;
        }
        assert!(highest > 0.5, "{highest}");
        for number in 2000..6000 {
            let now = number * UPDATE;
            pie.update(now, |_| 5_000_000);
        }
        assert!(pie.probability <= 0.0);
        assert_eq!(pie.burst_left, BURST);
    }

    #[test]
    fn a_first_burst_and_a_short_queue_lose_nothing() {
        let mut random = Random::new(1, 1);
        let mut pie = pie();
        let until = |pie: &mut PieState, is_short, random: &mut Random| {
            (0..10_000u64).map(|number| number * 100_000).find(|now| {
                pie.judge(Codepoint::NotEct, is_short, *now, |_| 400_000_000, random) != Verdict::Passes
            })
        };
        assert!(until(&mut pie, false, &mut random).unwrap() >= BURST - UPDATE);
        assert_eq!(until(&mut pie, true, &mut random), None);
    }

    #[test]
    fn an_idle_time_costs_no_work_and_ends_with_a_burst_allowed() {
        let mut pie = pie();
        pie.update(u64::MAX / 2, |_| 0);
        assert!(pie.next_update > u64::MAX / 2 && pie.burst_left == BURST);
    }

    /// Of many packets that find such a probability, how many are marked and how many are dropped.
    fn marked_and_dropped(codepoint: Codepoint, probability: f64) -> (usize, usize) {
        let mut random = Random::new(1, 1);
        let mut pie = PieState { probability, burst_left: 0, delay_before: 0.1, ..pie() };
        let verdicts: Vec<_> =
            (0..1000).map(|_| pie.judge(codepoint, false, 0, |_| 100_000_000, &mut random)).collect();
        let count = |verdict| verdicts.iter().filter(|one| **one == verdict).count();
        (count(Verdict::Marked), count(Verdict::Dropped))
    }

    #[test]
    fn packets_of_those_who_know_marks_are_marked_until_there_are_too_many() {
        let (marked, dropped) = marked_and_dropped(Codepoint::Ect0, 0.09);
        assert!((60..120).contains(&marked) && dropped == 0, "{marked} and {dropped}");
        let (marked, dropped) = marked_and_dropped(Codepoint::NotEct, 0.09);
        assert!((60..120).contains(&dropped) && marked == 0, "{marked} and {dropped}");
        let (marked, dropped) = marked_and_dropped(Codepoint::Ect0, 0.11);
        assert!(dropped > 60 && marked == 0, "{marked} and {dropped}");
    }
}
