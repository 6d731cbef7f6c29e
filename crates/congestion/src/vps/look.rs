//! What a company sees of its queue, and whether another one sees the same.
//!
//! Queues are looked at on two time scales, for each is blind to what the other one sees. A queue behind DropTail rises
//! for seconds, and is known by several falls over many of them. One behind RED or `CoDel` comes and goes within a few
//! round trips, which the least round trip of a long interval hardly shows.

use std::cell::OnceCell;

use anabranch_units::Duration;

use super::delays::{Comparison, known_in, movements, noise, steps};
use super::likeness::{Persistence, likeness};
use super::settings::Settings;

/// On how many time scales queues are looked at.
pub(super) const SCALES: usize = 2;
/// The one whose intervals are as long as [`Settings::interval`] says,
pub(super) const WIDE: usize = 0;
/// and one of half as long ones, of which as many are looked at.
pub(super) const CLOSE: usize = 1;

/// How long an interval of a scale is.
pub(super) fn interval(scale: usize, settings: &Settings) -> Duration {
    if scale == CLOSE { settings.interval / 2 } else { settings.interval }
}

/// What a company sees on one scale.
pub(super) struct Look {
    signal: Vec<f64>,
    steps: Vec<f64>,
    noise: f64,
    /// How many intervals its movements are spread over.
    spread: f64,
    /// How long its movements last, once somebody asks.
    persistence: OnceCell<Persistence>,
}

impl Look {
    /// `None` where too little is known, or nothing moves.
    pub(super) fn of(signal: Vec<f64>, settings: &Settings) -> Option<Self> {
        let count = known_in(&signal);
        if count < settings.join_known {
            return None;
        }
        let known = signal.iter().filter(|value| !value.is_nan());
        let square = known.map(|value| value * value).sum::<f64>() / count as f64;
        if square < settings.least_deviation.as_secs_f64().powi(2) {
            return None;
        }
        let steps = steps(&signal);
        let (noise, spread) = (noise(&signal), movements(&steps));
        Some(Self { noise, spread, steps, signal, persistence: OnceCell::new() })
    }

    fn persistence(&self) -> &Persistence {
        self.persistence.get_or_init(|| Persistence::of(&self.signal))
    }

    /// A number that is nearly the same for those who see the same: a sum of what they saw with random signs,
    /// which follow from the round.
    pub(super) fn projection(&self, round: u64) -> f64 {
        let signed = |(place, value): (usize, &f64)| {
            let mixed = (round << 8 | place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if mixed >> 63 == 0 { *value } else { -*value }
        };
        self.signal.iter().enumerate().filter(|(_, value)| !value.is_nan()).map(signed).sum()
    }

    /// The concordance of two that see the same queue; `None` where they do not.
    pub(super) fn agreement(&self, other: &Self, settings: &Settings) -> Option<f64> {
        let known = settings.join_known;
        let &Settings { differ_at_most, differ_at_least, times_noise, join_likeness, .. } = settings;
        let levels = Comparison::of(&self.signal, &other.signal, known)?;
        let moved = levels.ours + levels.theirs;
        let tolerated = (times_noise * (self.noise + other.noise)).max(differ_at_least * moved);
        if levels.difference > tolerated.min(differ_at_most * moved) {
            return None;
        }
        // What happens suddenly has to agree as well.
        let sudden = Comparison::of(&self.steps, &other.steps, known / 2)?;
        if sudden.difference > differ_at_most * (sudden.ours + sudden.theirs) {
            return None;
        }
        let likeness = likeness(&levels, self.persistence(), other.persistence());
        // Of few movements chance is less like a normal deviate.
        let needed = join_likeness * (1.0 + 1.0 / self.spread.min(other.spread).max(1.0));
        (likeness >= needed).then(|| levels.concordance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vps::delays::without_mean;

    /// Both as two members see it, the second one with up to half a millisecond besides.
    fn two(queue: impl Fn(usize) -> f64) -> [Option<Look>; 2] {
        let seen = |noise: usize| {
            let noise = |at: usize| 5e-4 * (at * noise * 37 % 101) as f64 / 101.0;
            let mut signal: Vec<f64> = (0..100).map(|at| queue(at) + noise(at)).collect();
            without_mean(&mut signal);
            Look::of(signal, &Settings::default())
        };
        [seen(0), seen(1)]
    }

    #[test]
    fn who_sees_the_same_falls_agrees_and_who_sees_others_does_not() {
        let falls = |at: usize| (at * at % 97 % 13) as f64 / 1000.0;
        let [Some(one), Some(other)] = two(falls) else { panic!("it moves") };
        assert!(one.agreement(&other, &Settings::default()).is_some());
        let [Some(late), _] = two(|at| falls(at + 31)) else { panic!("it moves") };
        assert!(late.agreement(&other, &Settings::default()).is_none());
    }

    #[test]
    fn a_queue_that_hardly_moves_and_one_of_which_little_is_known_say_nothing() {
        assert!(two(|at| (at % 13) as f64 / 10_000.0).iter().all(Option::is_none));
        assert!(
            two(|at| if at < 20 { (at % 13) as f64 / 1000.0 } else { f64::NAN }).iter().all(Option::is_none)
        );
    }
}
