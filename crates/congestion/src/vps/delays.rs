//! The queueing delay that a member's packets met, by when they were sent.
//!
//! A round trip is put down to the time at which its packet left, and not to that of its acknowledgement: up
//! to a common queue all packets of a sender come the same way, so that two members behind it see its length
//! at the same moment, however far their receivers are beyond it.

use anabranch_units::{Duration, Time};

/// Of fewer than two round trips in an interval nothing is known: one alone may be that of a packet for which
/// the receiver's timer ran. What is written down of one alone is below zero; this is of none.
const NOTHING: f32 = f32::NEG_INFINITY;

/// By so many standard errors a covariance has to be too small.
const ERRORS: f64 = 2.0;

/// The least round trips of a member in intervals of the same length, a ring of the newest ones.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// In seconds, below zero where there was only one. Interval `n` is at `n` modulo the length.
    least: Box<[f32]>,
    /// Of how many of them something is known.
    known: usize,
    /// Of how many something ever was.
    heard: u32,
    /// The newest interval that is known.
    newest: u64,
}

impl Delays {
    pub(super) fn new(intervals: usize) -> Self {
        Self { least: vec![NOTHING; intervals.max(1)].into(), known: 0, heard: 0, newest: 0 }
    }

    /// Which interval a time is in.
    pub(super) fn interval(at: Time, length: Duration) -> u64 {
        at.as_nanos() / length.as_nanos().max(1)
    }

    /// A packet that was sent in this interval came back after so long. The least of an interval counts:
    /// what a receiver waits before it acknowledges, and what a burst waits for itself, is nobody else's.
    pub(super) fn sample(&mut self, interval: u64, rtt: Duration) {
        let length = self.least.len() as u64;
        if interval > self.newest {
            for stale in (self.newest + 1..=interval).rev().take(self.least.len()) {
                let stale = std::mem::replace(&mut self.least[(stale % length) as usize], NOTHING);
                self.known -= usize::from(is_known(stale));
            }
            self.newest = interval;
        }
        if interval + length > self.newest {
            let least = &mut self.least[(interval % length) as usize];
            let rtt = rtt.as_secs_f64() as f32;
            if *least == NOTHING {
                *least = -rtt;
            } else {
                let is_new = !is_known(*least);
                self.known += usize::from(is_new);
                self.heard = self.heard.saturating_add(u32::from(is_new));
                *least = least.abs().min(rtt);
            }
        }
    }

    /// In how many intervals something was known.
    pub(super) fn heard(&self) -> u32 {
        self.heard
    }

    /// Whether anything can be known of the intervals from this one on.
    pub(super) fn is_newer_than(&self, interval: u64) -> bool {
        self.newest > interval
    }

    #[cfg(test)]
    fn get(&self, interval: u64) -> f64 {
        let length = self.least.len() as u64;
        let is_kept = interval <= self.newest && interval + length > self.newest;
        let least = if is_kept { self.least[(interval % length) as usize] } else { NOTHING };
        if is_known(least) { least.into() } else { f64::NAN }
    }

    /// So many intervals up to and without `end`; `None` where less than `least` of them are known.
    pub(super) fn signal(&self, end: u64, count: usize, least: usize) -> Option<Vec<f64>> {
        // Of most it need not be looked at one by one.
        if self.known < least {
            return None;
        }
        let mut signal = vec![f64::NAN; count];
        let ring = self.least.len() as u64;
        let (first, unborn) = (end.saturating_sub(count as u64), (count as u64).saturating_sub(end));
        // A division for each interval would be most of what this costs.
        let mut slot = (first % ring) as usize;
        for (interval, value) in (first..end).zip(&mut signal[(unborn as usize).min(count)..]) {
            if interval <= self.newest && interval + ring > self.newest && is_known(self.least[slot]) {
                *value = self.least[slot].into();
            }
            slot = if slot + 1 == self.least.len() { 0 } else { slot + 1 };
        }
        if known_in(&signal) < least {
            return None;
        }
        Some(signal)
    }
}

/// Whether something is known by what is written down of an interval.
fn is_known(least: f32) -> bool {
    least.is_sign_positive()
}

/// In how many intervals something is known.
pub(super) fn known_in(signal: &[f64]) -> usize {
    signal.iter().filter(|value| !value.is_nan()).count()
}

/// By how much a signal changed over two intervals, at each.
pub(super) fn steps(signal: &[f64]) -> Vec<f64> {
    signal.windows(3).map(|three| three[2] - three[0]).collect()
}

/// How many intervals the movements of a signal are spread over: the square of the sum of their squares by
/// the sum of their fourth powers. One sudden fall among slow rises is one or two, however long it was looked
/// at.
pub(super) fn movements(steps: &[f64]) -> f64 {
    let mut steps = steps.to_vec();
    without_mean(&mut steps);
    let squares = || steps.iter().filter(|step| !step.is_nan()).map(|step| step * step);
    squares().sum::<f64>().powi(2)
        / squares().map(|square| square * square).sum::<f64>().max(f64::MIN_POSITIVE)
}

/// One that is above both of its neighbours counts as the greater of them from now on.
pub(super) fn without_singles(signal: &mut [f64]) {
    let mut earlier = f64::NAN;
    for place in 0..signal.len() {
        let (here, later) = (signal[place], signal.get(place + 1).copied().unwrap_or(f64::NAN));
        if !here.is_nan() {
            signal[place] = here.min(earlier.max(later));
        }
        earlier = here;
    }
}

/// Takes away the mean of what is known.
pub(super) fn without_mean(signal: &mut [f64]) {
    let (sum, count) = signal
        .iter()
        .filter(|value| !value.is_nan())
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    signal.iter_mut().for_each(|value| *value -= sum / f64::max(count, 1.0));
}

/// How two signals go together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    /// Their mean squares, in seconds squared.
    pub ours: f64,
    pub theirs: f64,
    /// That of their difference.
    pub difference: f64,
    /// In how many intervals both are known.
    pub count: f64,
}

impl Comparison {
    /// Where both are known; `None` where that is in less than `least` intervals.
    pub(super) fn of(ours: &[f64], theirs: &[f64], least: usize) -> Option<Self> {
        let mut count = 0.0;
        let (mut our, mut their) = ((0.0, 0.0), (0.0, 0.0));
        let mut differences = 0.0;
        for (a, b) in ours.iter().zip(theirs) {
            let is_known = !a.is_nan() && !b.is_nan();
            let (a, b) = if is_known { (*a, *b) } else { (0.0, 0.0) };
            count += f64::from(u8::from(is_known));
            our = (our.0 + a, our.1 + a * a);
            their = (their.0 + b, their.1 + b * b);
            differences += (a - b) * (a - b);
        }
        // Signals are nearly without their means already, so that nothing is lost by this subtraction.
        let variance = |sum: f64, squares: f64| (squares / count - (sum / count).powi(2)).max(0.0);
        (count >= least.max(1) as f64).then(|| Self {
            ours: variance(our.0, our.1),
            theirs: variance(their.0, their.1),
            difference: variance(our.0 - their.0, differences),
            count,
        })
    }

    /// The concordance of the two (L. I. Lin, "A concordance correlation coefficient to evaluate
    /// reproducibility", Biometrics 45, 1989, without the means): 1 where they are the same, 0 where they
    /// have nothing to do with each other. Not only do delays of a common queue move together, they move
    /// by as much.
    pub(super) fn concordance(&self) -> f64 {
        1.0 - self.difference / (self.ours + self.theirs).max(f64::MIN_POSITIVE)
    }

    /// Whether ours do not follow theirs, and that is no chance: their covariance is less than half of the
    /// variance of theirs, by [`ERRORS`] of its standard errors. Of who sees the same queue it is all of that
    /// queue's variance, whatever each sees besides: noise only makes it less certain. Neighbouring intervals
    /// count as one, for queues last longer than an interval.
    pub(super) fn surely_parts(&self) -> bool {
        let covariance = (self.ours + self.theirs - self.difference) / 2.0;
        let rest = (self.ours * self.theirs - covariance.powi(2)).max(0.0);
        let error = (rest / (self.count / 2.0).max(1.0)).sqrt();
        covariance + ERRORS * error < self.theirs / 2.0
    }
}

/// The variance of what is no queue in a signal, in seconds squared: by the median square of how far each
/// interval is from between its neighbours, which the few sudden falls of a queue leave alone.
pub(super) fn noise(signal: &[f64]) -> f64 {
    let mut squares: Vec<f64> = signal
        .windows(3)
        .map(|three| (three[1] - f64::midpoint(three[0], three[2])).powi(2))
        .filter(|square| !square.is_nan())
        .collect();
    let middle = squares.len() / 2;
    if squares.is_empty() {
        return 0.0;
    }
    let (_, median, _) = squares.select_nth_unstable_by(middle, f64::total_cmp);
    // The median of a squared normal deviate is 0.455, and 1.5 variances are in each of these.
    *median / 0.455 / 1.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_an_interval_is_kept_and_old_ones_go() {
        let mut delays = Delays::new(10);
        for (interval, millis) in [(20, 50), (20, 40), (21, 60), (22, 45), (23, 50), (24, 45), (12, 10)] {
            delays.sample(interval, Duration::from_millis(millis));
            delays.sample(interval, Duration::from_millis(millis + 1));
        }
        assert!((delays.get(20) - 0.04).abs() < 1e-6 && delays.get(25).is_nan());
        // Interval 12 is ten and more before the newest: it was too late.
        assert!(delays.get(12).is_nan());
        delays.sample(31, Duration::from_millis(70));
        assert!(delays.get(21).is_nan() && !delays.get(22).is_nan());
    }

    #[test]
    fn a_single_interval_above_its_neighbours_counts_as_the_greater_of_them() {
        let mut delays = Delays::new(10);
        for (interval, millis) in (100..105).zip([40, 41, 90, 42, 43]) {
            delays.sample(interval, Duration::from_millis(millis));
            delays.sample(interval, Duration::from_millis(millis + 5));
        }
        let mut signal = delays.signal(105, 5, 3).expect("all are known");
        without_singles(&mut signal);
        let steps: Vec<f64> = signal.windows(2).map(|two| (two[1] - two[0]) * 1000.0).collect();
        for (step, expected) in steps.iter().zip([1.0, 1.0, 0.0, 0.0]) {
            assert!((step - expected).abs() < 0.01, "{steps:?}");
        }
        // Two in five are too few.
        assert!(delays.signal(108, 5, 3).is_none());
    }

    #[test]
    fn delays_of_one_queue_agree_and_those_of_two_do_not() {
        let queue = |phase: usize, at: usize| ((at + phase) % 17) as f64;
        let signal = |phase: usize| -> Vec<f64> { (0..50).map(|at| queue(phase, at)).collect() };
        let of = |one: &[f64], other: &[f64]| Comparison::of(one, other, 30).expect("enough").concordance();
        assert!(of(&signal(0), &signal(0)) > 0.999);
        assert!(of(&signal(0), &signal(8)) < 0.3);
        // As much together, but half as far: no common queue.
        let half: Vec<f64> = signal(0).iter().map(|value| value / 4.0).collect();
        assert!(of(&signal(0), &half) < 0.6);
    }

    #[test]
    fn noise_makes_it_uncertain_whether_one_follows_a_queue_and_not_certain_that_it_does_not() {
        let queue: Vec<f64> = (0..54).map(|at| (at % 9) as f64).collect();
        // Levels that have nothing to do with the queue: each for 7 intervals, in an order of no pattern.
        let levels = |most: f64| (0..54).map(move |at| most * f64::from((at / 7 * 37 % 11) as u8) / 10.0);
        let parts = |signal: &[f64]| Comparison::of(signal, &queue, 27).expect("enough").surely_parts();
        for most in [0.0, 5.0, 10.0, 20.0] {
            let noisy: Vec<f64> = levels(most).zip(&queue).map(|(level, queue)| level + queue).collect();
            assert!(!parts(&noisy), "{most}");
        }
        assert!(parts(&levels(2.0).collect::<Vec<_>>()));
        // With as much noise it may be either.
        assert!(!parts(&levels(40.0).collect::<Vec<_>>()));
    }
}
