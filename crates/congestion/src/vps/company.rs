//! Members that share a pool as one, and with which others they belong.

use super::delays::without_mean;
use super::look::{Look, SCALES};
use super::names::MemberId;

/// Members that are moved together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move {
    pub members: Vec<MemberId>,
    /// The company that they join; `None`: one of their own.
    pub to: Option<u64>,
    /// The concordance of their delays with those that they join or leave.
    pub concordance: f64,
}

/// Who shares a pool.
pub(super) struct Company {
    pub number: u64,
    pub members: Vec<MemberId>,
    /// In how many intervals something was known of the member that was heard of longest.
    pub heard: u32,
    /// What it sees of its queue at each time scale.
    pub looks: [Option<Look>; SCALES],
}

/// The median of signals in each interval, of those that are known.
pub(super) fn median(signals: &[&[f64]]) -> Vec<f64> {
    let length = signals.first().map_or(0, |signal| signal.len());
    let mut median: Vec<f64> = (0..length)
        .map(|place| {
            let mut values: Vec<f64> =
                signals.iter().map(|signal| signal[place]).filter(|value| !value.is_nan()).collect();
            let middle = values.len() / 2;
            if values.is_empty() {
                f64::NAN
            } else {
                *values.select_nth_unstable_by(middle, f64::total_cmp).1
            }
        })
        .collect();
    without_mean(&mut median);
    median
}

/// A sum of signals, interval by interval.
pub(super) struct Sum(Vec<(f64, f64)>);

impl Sum {
    pub(super) fn new(length: usize) -> Self {
        Self(vec![(0.0, 0.0); length])
    }

    pub(super) fn add(&mut self, signal: &[f64]) {
        for ((sum, count), value) in self.0.iter_mut().zip(signal).filter(|(_, value)| !value.is_nan()) {
            *sum += value;
            *count += 1.0;
        }
    }

    /// The mean of those that are known in each interval.
    pub(super) fn mean(&self) -> Vec<f64> {
        let of = |(sum, count): &(f64, f64)| if *count < 0.5 { f64::NAN } else { sum / count };
        let mut mean: Vec<f64> = self.0.iter().map(of).collect();
        without_mean(&mut mean);
        mean
    }
}

/// The moves that bring pairs of companies together, each to the largest of those that belong together.
pub(super) fn moves_of(companies: &[Company], joined: &[(usize, usize, f64)]) -> Vec<Move> {
    let mut heads: Vec<usize> = (0..companies.len()).collect();
    let head = |heads: &[usize], mut place: usize| {
        while heads[place] != place {
            place = heads[place];
        }
        place
    };
    let mut concordances = vec![0.0; companies.len()];
    for (one, other, concordance) in joined {
        for place in [*one, *other] {
            concordances[place] = f64::max(concordances[place], *concordance);
        }
        let (mut larger, mut smaller) = (head(&heads, *one), head(&heads, *other));
        if companies[larger].members.len() < companies[smaller].members.len() {
            std::mem::swap(&mut larger, &mut smaller);
        }
        heads[smaller] = larger;
    }
    let mut moves = Vec::new();
    for (place, company) in companies.iter().enumerate() {
        let target = head(&heads, place);
        if target != place {
            let (members, to) = (company.members.clone(), Some(companies[target].number));
            moves.push(Move { members, to, concordance: concordances[place] });
        }
    }
    moves
}
