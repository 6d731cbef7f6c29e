//! Which members share a bottleneck, from how their queueing delays move.
//!
//! A queue is felt by all who stand in it. Each member's round-trip time is averaged over intervals as RFC
//! 8382 has them (T of 350 ms, N of 50), and members are judged by the correlations of their averages, for
//! which the parts of the paths that do not move are nothing. Delay is what all senders know, so losses,
//! which are few, are not needed (Younis and Fahmy, "On efficient on-line grouping of flows with shared
//! bottlenecks at loaded servers", ICNP 2002, group by delay as well).
//!
//! Nothing is judged where a queue hardly moves: below [`Settings::least_deviation`] delays are noise.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_units::{Duration, Time};

use super::names::MemberId;

/// When members are parted and joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Over which delays are averaged (T).
    pub interval: Duration,
    /// How many averages are compared (N).
    pub intervals: usize,
    /// Members whose mean correlation with the rest of their company is lower are parted from it.
    pub part_below: f64,
    /// Members with a higher one belong together, and companies with a higher one between them are joined.
    pub join_above: f64,
    /// Delays that deviate by less from their mean say nothing.
    pub least_deviation: Duration,
}

impl Default for Settings {
    /// RFC 8382's intervals. The correlations are ours: far enough apart that noise moves nobody there and
    /// back.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(350),
            intervals: 50,
            part_below: 0.25,
            join_above: 0.6,
            least_deviation: Duration::from_micros(500),
        }
    }
}

/// What is known of the delays of members.
#[derive(Debug)]
pub(super) struct Watch {
    settings: Settings,
    /// End of the interval that runs.
    interval_end: Option<Time>,
    /// Intervals since the last judgement.
    since_judged: usize,
    delays: BTreeMap<MemberId, Delays>,
}

/// Members that are moved together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move {
    pub members: Vec<MemberId>,
    /// The company that they join; `None`: one of their own.
    pub to: Option<u64>,
    /// The mean correlation of their delays with those that they join or leave.
    pub correlation: f64,
}

/// The mean of what is known of pairs between two sets of members; `None` where nothing is.
fn mean_between(
    known: &BTreeMap<(MemberId, MemberId), f64>,
    ours: &[MemberId],
    theirs: &[MemberId],
) -> Option<f64> {
    let pairs = ours.iter().flat_map(|one| theirs.iter().filter_map(|other| known.get(&(*one, *other))));
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), correlation| (sum + correlation, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[derive(Clone, Debug, Default)]
struct Delays {
    /// Of the round trips measured in the interval that runs, seconds.
    sum: f64,
    count: u32,
    /// The averages in seconds, newest last; `None` where nothing was heard.
    means: VecDeque<Option<f64>>,
}

impl Watch {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, interval_end: None, since_judged: 0, delays: BTreeMap::new() }
    }

    pub(super) fn forget(&mut self, member: MemberId) {
        self.delays.remove(&member);
    }

    /// A round trip was measured.
    pub(super) fn sample(&mut self, member: MemberId, now: Time, rtt: Duration) {
        self.advance(now);
        let delays = self.delays.entry(member).or_default();
        delays.sum += rtt.as_secs_f64();
        delays.count = delays.count.saturating_add(1);
    }

    /// Ends the intervals that are over.
    fn advance(&mut self, now: Time) {
        let end = *self.interval_end.get_or_insert(now + self.settings.interval);
        if now < end {
            return;
        }
        let late = now.since(end).as_nanos() / self.settings.interval.as_nanos().max(1);
        let over = usize::try_from(late).unwrap_or(usize::MAX).saturating_add(1);
        self.interval_end = Some(end + self.settings.interval * (late + 1));
        self.since_judged = self.since_judged.saturating_add(over);
        for delays in self.delays.values_mut() {
            let mean = (delays.count > 0).then(|| delays.sum / f64::from(delays.count));
            (delays.sum, delays.count) = (0.0, 0);
            delays.means.push_back(mean);
            // Intervals in which nothing at all was heard.
            for _ in 1..over.min(self.settings.intervals + 1) {
                delays.means.push_back(None);
            }
            while delays.means.len() > self.settings.intervals {
                delays.means.pop_front();
            }
        }
    }

    /// Whether it is time to judge: once in half of the intervals.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        self.advance(now);
        self.since_judged >= self.settings.intervals / 2
    }

    /// Who belongs elsewhere, if anybody: see [`Move`]. At most one move in a judgement, for each changes what
    /// the others' company is.
    pub(super) fn judge(&mut self, company: &BTreeMap<MemberId, u64>) -> Option<Move> {
        self.since_judged = 0;
        let mut known: BTreeMap<(MemberId, MemberId), f64> = BTreeMap::new();
        for one in company.keys() {
            for other in company.keys().filter(|other| one < *other) {
                if let Some(correlation) = self.correlation(*one, *other) {
                    known.insert((*one, *other), correlation);
                    known.insert((*other, *one), correlation);
                }
            }
        }
        let companies: BTreeSet<u64> = company.values().copied().collect();
        let of = |number: u64| -> Vec<MemberId> {
            company.iter().filter(|(_, theirs)| **theirs == number).map(|(id, _)| *id).collect()
        };
        let mut joins = Vec::new();
        for one in &companies {
            for other in companies.iter().filter(|other| one < *other) {
                let (ours, theirs) = (of(*one), of(*other));
                if let Some(correlation) = mean_between(&known, &ours, &theirs)
                    && correlation > self.settings.join_above
                {
                    let (members, to) =
                        if ours.len() < theirs.len() { (ours, *other) } else { (theirs, *one) };
                    joins.push(Move { members, to: Some(to), correlation });
                }
            }
        }
        if let Some(join) = joins.into_iter().max_by(|a, b| a.correlation.total_cmp(&b.correlation)) {
            return Some(join);
        }
        let mut parts = Vec::new();
        for number in companies {
            let all = of(number);
            for cluster in self.clusters(&known, &all) {
                let rest: Vec<MemberId> = all.iter().copied().filter(|id| !cluster.contains(id)).collect();
                if let Some(correlation) = mean_between(&known, &cluster, &rest)
                    && correlation < self.settings.part_below
                {
                    parts.push(Move { members: cluster, to: None, correlation });
                }
            }
        }
        parts.into_iter().min_by(|a, b| a.correlation.total_cmp(&b.correlation))
    }

    /// Members that belong together by their delays: each goes with another one of its cluster.
    fn clusters(&self, known: &BTreeMap<(MemberId, MemberId), f64>, all: &[MemberId]) -> Vec<Vec<MemberId>> {
        let mut clusters: Vec<Vec<MemberId>> = Vec::new();
        for id in all {
            let goes_with = |other: &MemberId| {
                known.get(&(*id, *other)).is_some_and(|correlation| *correlation > self.settings.join_above)
            };
            let (near, far): (Vec<_>, Vec<_>) =
                clusters.into_iter().partition(|cluster| cluster.iter().any(goes_with));
            clusters = far;
            clusters.push(near.into_iter().flatten().chain([*id]).collect());
        }
        clusters
    }

    /// The correlation of two members' delays (Pearson); `None` where too little is known or they hardly
    /// move.
    fn correlation(&self, one: MemberId, other: MemberId) -> Option<f64> {
        let (one, other) = (self.delays.get(&one)?, self.delays.get(&other)?);
        // Newest first: the younger one has fewer.
        let pairs = || one.means.iter().rev().zip(other.means.iter().rev()).filter_map(|(a, b)| a.zip(*b));
        let number = pairs().count();
        if number * 2 < self.settings.intervals {
            return None;
        }
        let count = number as f64;
        let (sum_a, sum_b) = pairs().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        let (mean_a, mean_b) = (sum_a / count, sum_b / count);
        let (mut product, mut square_a, mut square_b) = (0.0, 0.0, 0.0);
        for (a, b) in pairs() {
            product += (a - mean_a) * (b - mean_b);
            square_a += (a - mean_a) * (a - mean_a);
            square_b += (b - mean_b) * (b - mean_b);
        }
        let least = self.settings.least_deviation.as_secs_f64();
        let moves = |square: f64| (square / count).sqrt() >= least;
        (moves(square_a) && moves(square_b)).then(|| product / (square_a * square_b).sqrt())
    }
}
