//! Which members share a bottleneck, from how their queueing delays move.
//!
//! A queue is felt by all who stand in it. RFC 8382 has receivers group flows by summary statistics of
//! one-way delays over 350 ms, because they do not know each other's packets. A sender knows more: when each
//! packet left (`delays`). So members are compared interval by interval, and have to move not
//! only together but by as much. Delay is what all senders know, so losses, which are few, are not needed
//! (Younis and Fahmy, "On efficient on-line grouping of flows with shared bottlenecks at loaded servers",
//! ICNP 2002, group by delay as well).
//!
//! - *Joining.* Companies are joined whose delays have gone together for [`Settings::convinced_after`] on one
//!   of two time scales (`look`): they differ by little beside how they move, or by no more than what is no
//!   queue in either, and two queues that have nothing to do with each other would hardly ever look so alike.
//!   How alike these look by chance depends on how long each of their movements lasts (`likeness`): two slow
//!   rises are often alike, a hundred falls are not. Compared are neighbours when all are put in order by a
//!   random projection of what they saw, another one each time, and those that agreed before. Those that were
//!   heard of for [`Settings::join_intervals`] before they agreed have to for
//!   [`Settings::convinced_late_after`]: two queues of their own with nearly the same period drift into step
//!   now and then, and those who share one could have been seen to before.
//! - *Parting.* A member whose delays have not moved as those of the rest of its company for
//!   [`Settings::part_intervals`] stands alone from then on: also where one moves and the other does not.
//!   Where somebody has said that they share a bottleneck, they are looked at for three times as long.
//!
//! What is no queue must neither join nor part. Least round trips also move by what receivers wait before they
//! acknowledge, a browser up to 25 ms, and by how often a member sends: who sends seldom misses the moments at
//! which the queue was shortest. So differences no larger than [`Settings::waits`] part only who surely does not
//! follow a queue that the rest sees.
//!
//! The cost of a judgement is linear in the members, but for the sorting. Nothing is judged where queues hardly
//! move: below [`Settings::least_deviation`] delays are noise.

use std::collections::BTreeMap;

use anabranch_units::{Duration, Time};

use super::company::{Company, Move, Sum, median, moves_of};
use super::delays::{Comparison, Delays, noise, steps, without_mean, without_singles};
use super::look::{Look, SCALES, WIDE, interval};
use super::names::MemberId;
use super::seats::Seats;
use super::settings::{Begins, Settings};

/// Who differs from its company by more than so many times what is no queue in both is elsewhere. Delays that
/// are nothing but noise differ by once as much.
const UNEXPLAINED: f64 = 2.0;
/// How long a packet is waited for: one that is back later is not counted where it is judged for the first
/// time.
const HEARD_WITHIN: Duration = Duration::from_millis(600);
/// Each company is compared with so many of its neighbours on one side.
const NEIGHBOURS: usize = 4;
/// What a larger company sees is told by so many of its members, others at each judgement. The mean of more
/// says hardly more of a queue, and takes longer.
const SPOKESMEN: usize = 32;
/// At most so many pairs for each company are kept in mind.
const PAIRS_EACH: usize = 8;

/// What is known of the delays of members.
#[derive(Debug)]
pub(super) struct Watch {
    settings: Settings,
    judged: Option<Time>,
    /// How often it was judged: which projection is next.
    round: u64,
    /// On each scale.
    delays: Seats<MemberId, [Delays; SCALES]>,
    /// When companies that agree have done so for long enough, the one with the smaller number first.
    convinced_at: BTreeMap<(u64, u64), Time>,
    /// Members that did not move with their company when that was judged last.
    suspects: BTreeMap<MemberId, u64>,
}

impl Watch {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            judged: None,
            round: 0,
            delays: Seats::default(),
            convinced_at: BTreeMap::new(),
            suspects: BTreeMap::new(),
        }
    }

    pub(super) fn begins(&self) -> Begins {
        self.settings.begins
    }

    pub(super) fn forget(&mut self, member: MemberId) {
        self.delays.remove(member);
        self.suspects.remove(&member);
    }

    /// A round trip was measured.
    pub(super) fn sample(&mut self, member: MemberId, now: Time, rtt: Duration) {
        let sent = Time::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos()));
        if self.delays.get(member).is_none() {
            let compared = self.settings.join_intervals.max(self.settings.part_intervals);
            let ring = |scale| Delays::new(compared + self.lag(scale) as usize + 2);
            self.delays.insert(member, std::array::from_fn(ring));
        }
        for (scale, delays) in self.delays.get_mut(member).into_iter().flatten().enumerate() {
            delays.sample(Delays::interval(sent, interval(scale, &self.settings)), rtt);
        }
    }

    /// So many of the newest intervals are not heard of in full.
    fn lag(&self, scale: usize) -> u64 {
        HEARD_WITHIN.as_nanos().div_ceil(interval(scale, &self.settings).as_nanos().max(1))
    }

    /// The interval before which all is heard of.
    fn end(&self, scale: usize, now: Time) -> u64 {
        Delays::interval(now, interval(scale, &self.settings)).saturating_sub(self.lag(scale))
    }

    /// What a member saw in the newest intervals, without the mean.
    /// In wide ones, what is above both neighbours is taken away: what such a queue does lasts longer, what a
    /// receiver's timer does is that.
    fn signal(&self, id: MemberId, scale: usize, now: Time, count: usize, least: usize) -> Option<Vec<f64>> {
        let mut signal = self.delays.get(id)?[scale].signal(self.end(scale, now), count, least)?;
        if scale == WIDE {
            without_singles(&mut signal);
        }
        without_mean(&mut signal);
        Some(signal)
    }

    /// Whether it is time to judge.
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let judged = *self.judged.get_or_insert(now);
        now.since(judged) >= self.settings.judged_every
    }

    /// Who belongs elsewhere: `places` says where everybody is, those of a company side by side.
    pub(super) fn judge(&mut self, places: &[(u64, MemberId)], now: Time) -> Vec<Move> {
        self.judged = Some(now);
        self.round += 1;
        let oldest = self.end(WIDE, now).saturating_sub(self.settings.part_intervals as u64);
        let mut moves = Vec::new();
        let mut suspects = BTreeMap::new();
        let (mut seeing, mut awake) = (Vec::new(), Vec::new());
        for members in places.chunk_by(|one, other| one.0 == other.0) {
            let number = members[0].0;
            // Who has sent nothing lately has nothing to say.
            let is_awake =
                |id: &MemberId| self.delays.get(*id).is_some_and(|delays| delays[WIDE].is_newer_than(oldest));
            awake.clear();
            awake.extend(members.iter().map(|(_, id)| *id).filter(is_awake));
            let parted = self.disagreeing(number, &awake, now, &mut suspects);
            if parted.is_empty() {
                seeing.extend(self.seen(members, &awake, now));
            }
            moves.extend(parted);
        }
        // What a member saw with those that it has left is of no use beside others.
        moves.iter().flat_map(|parted| &parted.members).for_each(|id| self.forget(*id));
        self.suspects = suspects;
        moves.extend(self.agreeing(&seeing, now));
        moves
    }

    /// Members, or their signals, from another one on at each judgement.
    fn in_turn<T: Copy>(&self, all: &[T]) -> impl Iterator<Item = T> {
        let first = (self.round as usize).wrapping_mul(SPOKESMEN) % all.len().max(1);
        all.iter().cycle().skip(first).take(all.len()).copied()
    }

    /// As many of them as stand for a company.
    fn some_of<T: Copy>(&self, all: &[T]) -> Vec<T> {
        self.in_turn(all).take(SPOKESMEN).collect()
    }

    /// Members that do not move as the rest of their company does, at the second judgement in a row.
    fn disagreeing(
        &self,
        number: u64,
        awake: &[MemberId],
        now: Time,
        suspects: &mut BTreeMap<MemberId, u64>,
    ) -> Vec<Move> {
        // One alone has nobody to differ from.
        if awake.len() < 2 {
            return Vec::new();
        }
        let length = self.settings.part_intervals;
        let signals: Vec<(MemberId, Vec<f64>)> = awake
            .iter()
            .filter_map(|id| Some((*id, self.signal(*id, WIDE, now, length, 3 * length / 5)?)))
            .collect();
        if signals.len() < 2 {
            return Vec::new();
        }
        let all: Vec<&[f64]> = signals.iter().map(|(_, signal)| signal.as_slice()).collect();
        let common = median(&self.some_of(&all));
        let common_steps = steps(&common);
        let mut parted = Vec::new();
        for (place, (id, signal)) in signals.iter().enumerate() {
            // Of two, each is all that the other one can be compared with.
            let theirs = (all.len() == 2).then(|| (all[1 - place], steps(all[1 - place])));
            let (rest, sudden) =
                theirs.as_ref().map_or((&*common, &common_steps), |(rest, steps)| (*rest, steps));
            let Some(concordance) = self.disagreement(signal, rest, sudden) else { continue };
            if self.suspects.get(id) == Some(&number) {
                parted.push(Move { members: vec![*id], to: None, concordance });
            } else {
                suspects.insert(*id, number);
            }
        }
        // The last one stands alone by the others' going.
        parted.truncate(signals.len() - 1);
        parted
    }

    /// The concordance of a member with the rest of its company; `None` where it agrees, in how its delays
    /// stand and in how they change.
    fn disagreement(&self, signal: &[f64], rest: &[f64], rest_steps: &[f64]) -> Option<f64> {
        let known = self.settings.part_intervals / 2;
        let levels = Comparison::of(signal, rest, known)?;
        let sudden = Comparison::of(&steps(signal), rest_steps, known)?;
        let least = self.settings.least_deviation.as_secs_f64().powi(2);
        // One that moves while the others do not is evidence as well.
        let seems_to = |compared: &Comparison| {
            compared.ours.max(compared.theirs) >= least && compared.concordance() < self.settings.part_below
        };
        // Nearly all agree, and their noise need not be known.
        let explained = |compared: &Comparison, times: f64| {
            compared.difference <= UNEXPLAINED * times * (noise(signal) + noise(rest))
        };
        let waits = self.settings.waits.as_secs_f64().powi(2);
        let is_evidence = |compared: &Comparison, times: f64| {
            compared.difference > times * waits || compared.surely_parts()
        };
        let disagrees = |compared: &Comparison, times: f64| {
            seems_to(compared) && !explained(compared, times) && is_evidence(compared, times)
        };
        (disagrees(&levels, 1.0) || disagrees(&sudden, 2.0))
            .then(|| levels.concordance().min(sudden.concordance()))
    }

    /// What a company sees of its queue; `None` where that is too little, or does not move.
    fn seen(&self, members: &[(u64, MemberId)], awake: &[MemberId], now: Time) -> Option<Company> {
        let looks: [_; SCALES] = std::array::from_fn(|scale| self.look(scale, awake, now));
        if looks.iter().all(Option::is_none) {
            return None;
        }
        let number = members.first()?.0;
        let members = members.iter().map(|(_, id)| *id).collect();
        let heard = |id: &MemberId| Some(self.delays.get(*id)?[WIDE].heard());
        Some(Company { number, members, heard: awake.iter().filter_map(heard).max().unwrap_or(0), looks })
    }

    fn look(&self, scale: usize, awake: &[MemberId], now: Time) -> Option<Look> {
        let Settings { join_intervals: length, join_known: least, .. } = self.settings;
        let known = |id: &MemberId| self.signal(*id, scale, now, length, least);
        let signal = if let [only] = awake {
            known(only)?
        } else {
            // A member of which too little is known is made up for by the next one.
            let mut sum = Sum::new(length);
            let told = self.in_turn(awake).filter_map(|id| known(&id));
            told.take(SPOKESMEN).for_each(|signal| sum.add(&signal));
            sum.mean()
        };
        Look::of(signal, &self.settings)
    }

    /// Companies that have agreed for long enough, as the moves that join them.
    fn agreeing(&mut self, companies: &[Company], now: Time) -> Vec<Move> {
        let places: BTreeMap<u64, usize> =
            companies.iter().enumerate().map(|(place, company)| (company.number, place)).collect();
        let before = self
            .convinced_at
            .keys()
            .filter_map(|(one, other)| Some((*places.get(one)?, *places.get(other)?)));
        let beside = (0..SCALES).flat_map(|scale| self.beside(companies, scale));
        let mut agree = BTreeMap::new();
        let mut joined = Vec::new();
        for (one, other) in before.chain(beside) {
            let (one, other) = (one.min(other), one.max(other));
            let pair = (companies[one].number, companies[other].number);
            if agree.contains_key(&pair) || agree.len() >= PAIRS_EACH * companies.len() {
                continue;
            }
            let Some(concordance) = self.agreement(&companies[one], &companies[other]) else { continue };
            let convincing = || now + self.convincing(&companies[one], &companies[other]);
            let convinced_at = self.convinced_at.get(&pair).copied().unwrap_or_else(convincing);
            agree.insert(pair, convinced_at);
            if now >= convinced_at {
                joined.push((one, other, concordance));
            }
        }
        self.convinced_at = agree;
        moves_of(companies, &joined)
    }

    /// The pairs that see nearly the same on a scale.
    fn beside(&self, companies: &[Company], scale: usize) -> Vec<(usize, usize)> {
        let projected = |(place, one): (usize, &Company)| {
            Some((one.looks[scale].as_ref()?.projection(self.round), place))
        };
        let mut order: Vec<(f64, usize)> = companies.iter().enumerate().filter_map(projected).collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        (1..=NEIGHBOURS)
            .flat_map(|distance| order.iter().zip(order.iter().skip(distance)))
            .map(|(one, other)| (one.1, other.1))
            .collect()
    }

    /// The concordance of two companies that see the same queue, on one scale or the other.
    fn agreement(&self, one: &Company, other: &Company) -> Option<f64> {
        one.looks
            .iter()
            .zip(&other.looks)
            .find_map(|(one, other)| one.as_ref()?.agreement(other.as_ref()?, &self.settings))
    }

    /// For how long two companies have to agree that begin to now.
    fn convincing(&self, one: &Company, other: &Company) -> Duration {
        let is_late = one.heard.min(other.heard) as usize > self.settings.join_intervals;
        if is_late { self.settings.convinced_late_after } else { self.settings.convinced_after }
    }
}
