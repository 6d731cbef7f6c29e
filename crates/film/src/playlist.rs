//! A playlist as one session: what is fetched ahead of its player, and what is known from one segment to the
//! next.
//!
//! A player that adapts asks for one segment after the other, of the rung that it has chosen, and chooses by
//! how fast they come. So four things are decided here, by what was asked for and how it came:
//!
//! 1. **Ahead.** When nothing that the player waits for is under way, the segment is fetched that is played
//!    next and is not there: of each kind of media (picture, sound) the rung that was asked for last, up to
//!    [`Parameters::ahead`] of play time behind what was asked for, as far as [`Parameters::memory`] and
//!    [`Parameters::segments`] reach. Where the player says what it asks for next, that and what follows it
//!    comes first. What belongs to another rung, or was passed, is thrown away, and
//!    everything once nobody has asked for [`Parameters::forgotten_after`].
//! 2. **Connections.** A segment begins with as many as the last one had at most, which the rate controller
//!    found that it needs; one fewer when so many fewer would have brought it at
//!    [`Parameters::plenty`] times its rate. Where those that were added did not bring
//!    [`Parameters::least_gain`] of what they should have in proportion, they are given back, and none is
//!    added for a time that doubles each time.
//! 3. **Rung.** The player's, or, for one that does not adapt ([`Playlist::adapts`]), that of a rule, chosen when
//!    a segment is fetched or asked for: once for each segment.
//! 4. **Rate.** What the paths give with these connections, over the last seconds in which something was
//!    under way. Rising is believed at once, as a transfer begins slowly.

mod api;
mod fetched;
mod ladder;

use std::collections::BTreeMap;

use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

use crate::adaptation;
pub use api::{GroupId, Hints, Parameters, SegmentId, TrackId};
use fetched::Fetched;
use ladder::Ladder;
pub use ladder::Rung;

/// A transfer of fewer bytes tells little of the paths: most of it is its first round trip.
const TELLS: Bytes = Bytes::kib(128);
/// A rate that falls is averaged over so long.
const MEMORY: Duration = Duration::from_secs(4);

/// The session of a playlist.
#[derive(Debug)]
pub struct Playlist {
    parameters: Parameters,
    tracks: BTreeMap<TrackId, Track>,
    played: BTreeMap<GroupId, Played>,
    /// What is under way or there, with its size where that is known.
    fetched: BTreeMap<SegmentId, Fetched>,
    connections: usize,
    /// With how many it was before some were added, and what those brought.
    trial: Option<(usize, Rate)>,
    /// Until when none is added, and for how long the next time.
    rests: (Time, Duration),
    rate: Option<Rate>,
    /// The rungs among which is chosen here.
    ladder: Option<Ladder>,
}

#[derive(Debug)]
struct Track {
    group: GroupId,
    /// The number of the first segment.
    first: u64,
    durations: Vec<Duration>,
    /// Of the last segment that came.
    size: Bytes,
}

/// What was asked for last of a kind of media.
#[derive(Clone, Copy, Debug)]
struct Played {
    segment: SegmentId,
    /// What its player says that it asks for next.
    next: Option<SegmentId>,
    at: Time,
    /// When it was heard of last.
    heard: Time,
    /// How much there is to play behind what was played at that time.
    ahead: Duration,
}

impl Playlist {
    /// A playlist of which nothing is known.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            tracks: BTreeMap::new(),
            played: BTreeMap::new(),
            fetched: BTreeMap::new(),
            connections: 1,
            trial: None,
            rests: (Time::ZERO, parameters.rest.0),
            rate: None,
            ladder: None,
        }
    }

    /// The player does not adapt: from now on it is chosen here which of these rungs of one kind of media, of
    /// rising rates, its segments are of. They begin and end at the same times, and a number is the same
    /// segment in all of them.
    pub fn adapts(&mut self, rungs: Vec<(TrackId, Rate)>, parameters: adaptation::Parameters) {
        self.ladder = Some(Ladder::new(rungs, parameters));
    }

    /// Whether a player that asks for this number has to wait, so that more is known when its rung is chosen: some
    /// ask for a segment when the one before has only begun to come, and the two would hold each other up.
    pub fn is_too_soon(&mut self, number: u64, now: Time) -> bool {
        let Some(ladder) = &self.ladder else { return false };
        self.played.values_mut().filter(|played| ladder.has(played.segment.track)).for_each(|played| {
            played.heard = now;
        });
        let is_under_way = |(segment, fetched): (&SegmentId, &Fetched)| {
            let is_before = segment.number.checked_add(1) == Some(number) && ladder.has(segment.track);
            is_before && !matches!(fetched, Fetched::There(_))
        };
        self.fetched.iter().any(is_under_way)
    }

    /// Which rung the segment of this number is of, and why: what was chosen when it was fetched, or else what
    /// the rule says now. `goes_on`: it is asked for again from its middle, and stays what it was. `None`: it
    /// is not chosen here.
    pub fn choose(&mut self, number: u64, goes_on: bool, now: Time) -> Option<Rung> {
        self.tidy(now);
        let is_there = |track| self.fetched.contains_key(&SegmentId { track, number });
        let buffer = self.ahead_of(number, now);
        self.ladder.as_mut().map(|ladder| ladder.rung(number, buffer, |track| goes_on || is_there(track)))
    }

    /// How much there is to play before a number is needed.
    fn ahead_of(&self, number: u64, now: Time) -> Duration {
        let is_rung =
            |played: &&Played| self.ladder.as_ref().is_some_and(|ladder| ladder.has(played.segment.track));
        let played = self.played.values().find(is_rung);
        played.map_or(Duration::ZERO, |played| {
            self.ahead(SegmentId { track: played.segment.track, number }, now)
        })
    }

    /// What a track has now: play times, from the segment with the number `first` on.
    pub fn listed(&mut self, track: TrackId, group: GroupId, first: u64, durations: Vec<Duration>) {
        let size = self.tracks.get(&track).map_or(Bytes::ZERO, |track| track.size);
        self.tracks.insert(track, Track { group, first, durations, size });
    }

    /// The player asks for a segment, and says this of itself.
    pub fn asked(&mut self, segment: SegmentId, said: Hints, now: Time) {
        let Some(group) = self.tracks.get(&segment.track).map(|track| track.group) else { return };
        // What was thrown away meanwhile is not there for one who comes back.
        self.tidy(now);
        let before = self.played.get(&group).copied();
        let ahead = match before {
            Some(before) if before.segment.number.checked_add(1) == Some(segment.number) => {
                let asked = self.duration(before.segment).unwrap_or(Duration::ZERO);
                before.ahead + asked - now.since(before.at)
            }
            // Asked for again, or of another rung.
            Some(before) if before.segment.number == segment.number => before.ahead - now.since(before.at),
            _ => Duration::ZERO,
        };
        let ahead = said.buffer.unwrap_or(ahead);
        let is_next = |next: &SegmentId| {
            let its_group = self.tracks.get(&next.track).map(|track| track.group);
            *next != segment && its_group == Some(group) && self.duration(*next).is_some()
        };
        let next = said.next.filter(is_next);
        self.played.insert(group, Played { segment, next, at: now, heard: now, ahead });
        self.fetched.entry(segment).and_modify(|fetched| {
            if *fetched == Fetched::Ahead {
                *fetched = Fetched::Asked;
            }
        });
        self.fetched.entry(segment).or_insert(Fetched::Asked);
        self.tidy(now);
    }

    /// How much the player has to play, as far as its requests tell, before it needs this segment.
    pub fn ahead(&self, segment: SegmentId, now: Time) -> Duration {
        let Some(track) = self.tracks.get(&segment.track) else { return Duration::ZERO };
        let Some(played) = self.played.get(&track.group) else { return Duration::ZERO };
        let between = self.between(played.segment, segment).unwrap_or(Duration::ZERO);
        played.ahead + between - now.since(played.at)
    }

    /// With how many connections a segment begins, and how many it may have at most. One of which little is
    /// to come begins with one.
    pub fn connections(&self, segment: SegmentId, now: Time) -> (usize, usize) {
        let size = self.tracks.get(&segment.track).map_or(Bytes::ZERO, |track| track.size);
        let begins = if !size.is_zero() && size < TELLS { 1 } else { self.connections };
        (begins, if now < self.rests.0 { self.connections } else { self.parameters.most })
    }

    /// How long a segment plays; `None`: it is not listed.
    pub fn duration(&self, segment: SegmentId) -> Option<Duration> {
        let track = self.tracks.get(&segment.track)?;
        let index = Bytes::new(segment.number.checked_sub(track.first)?).as_usize();
        track.durations.get(index).copied()
    }

    /// In how long a segment is to come: as long as it plays; of a rung that is chosen here in less, so that what
    /// comes tells whether the next one would be held.
    pub fn comes_within(&self, segment: SegmentId) -> Option<Duration> {
        let part = self.ladder.as_ref().and_then(|ladder| ladder.part_for_the_next(segment.track));
        Some(self.duration(segment)? * part.unwrap_or(Ratio::ONE))
    }

    /// What is to be fetched ahead now. It counts as under way from then on.
    pub fn next(&mut self, now: Time) -> Option<SegmentId> {
        self.tidy(now);
        if self.fetched.len() >= self.parameters.segments {
            return None;
        }
        if self.fetched.values().any(|fetched| !matches!(fetched, Fetched::There(_))) {
            return None;
        }
        let kept: Bytes = self.fetched.values().map(|fetched| fetched.size()).sum();
        let candidates = self.played.values().filter_map(|played| match played.next {
            Some(next) if !self.fetched.contains_key(&next) => Some((self.duration(played.segment)?, next)),
            Some(next) => self.next_of(next),
            None => self.next_of(played.segment),
        });
        let (_, mut next) = candidates.min()?;
        let buffer = self.ahead_of(next.number, now);
        if let Some(ladder) = self.ladder.as_mut().filter(|ladder| ladder.has(next.track)) {
            next.track = ladder.rung(next.number, buffer, |_| false).track;
        }
        let expected = self.tracks.get(&next.track).map_or(Bytes::ZERO, |track| track.size);
        if kept + expected > self.parameters.memory {
            return None;
        }
        self.fetched.insert(next, Fetched::Ahead);
        Some(next)
    }

    /// The first segment behind this one that is not there, and how much is played before it.
    fn next_of(&self, played: SegmentId) -> Option<(Duration, SegmentId)> {
        let mut before = Duration::ZERO;
        let mut number = played.number;
        loop {
            before += self.duration(SegmentId { number, ..played })?;
            number = number.checked_add(1)?;
            let segment = SegmentId { number, ..played };
            if before > self.parameters.ahead {
                return None;
            }
            if !self.is_fetched(segment) {
                return self.duration(segment).map(|_| (before, segment));
            }
        }
    }

    /// Whether a segment is under way or there, of whichever rung where it is chosen here.
    fn is_fetched(&self, segment: SegmentId) -> bool {
        let ladder = self.ladder.as_ref().filter(|ladder| ladder.has(segment.track));
        let mut others = ladder.into_iter().flat_map(Ladder::tracks);
        self.fetched.contains_key(&segment)
            || others.any(|track| self.fetched.contains_key(&SegmentId { track, ..segment }))
    }

    /// A segment has come as a whole, over so many connections at most, and so fast since it was begun.
    pub fn came(&mut self, segment: SegmentId, size: Bytes, took: Duration, connections: usize, now: Time) {
        if let Some(fetched) = self.fetched.get_mut(&segment) {
            *fetched = Fetched::There(size);
        }
        if let Some(track) = self.tracks.get_mut(&segment.track) {
            track.size = size;
        }
        // A rule looks at small ones as well: of slow rungs all are.
        if let Some(ladder) = self.ladder.as_mut().filter(|ladder| ladder.has(segment.track)) {
            ladder.came(size, took);
        }
        if size < TELLS {
            return;
        }
        let rate = Rate::of(size, took);
        self.judge(rate, connections.clamp(1, self.parameters.most.max(1)), now);
        self.measured(rate, took);
        let needed = self.comes_within(segment).map(|time| Rate::of(size, time) * self.parameters.plenty);
        let fewer = self.connections - 1;
        let with_fewer = rate.as_f64() * as_f64(fewer) / as_f64(self.connections);
        if fewer > 0 && needed.is_some_and(|needed| with_fewer >= needed.as_f64()) {
            self.connections = fewer;
        }
    }

    /// With how many connections to go on, when one segment came at this rate and had so many at most. What
    /// was added is judged by the next segment, which has them from its begin.
    fn judge(&mut self, rate: Rate, connections: usize, now: Time) {
        let began = self.connections;
        if let Some((fewer, before)) = self.trial.take() {
            let in_proportion = (as_f64(began) / as_f64(fewer) - 1.0).max(0.0);
            let expected =
                before * Ratio::from_f64(1.0 + self.parameters.least_gain.as_f64() * in_proportion);
            if rate < expected {
                let (_, rest) = self.rests;
                self.rests = (now + rest, (rest * 2).min(self.parameters.rest.1));
                self.connections = fewer;
                return;
            }
            self.rests.1 = self.parameters.rest.0;
        }
        self.trial = self.rate.filter(|_| connections > began).map(|before| (began, before));
        self.connections = connections;
    }

    /// A segment does not come, or was given up: it is asked for anew when it is wanted.
    pub fn failed(&mut self, segment: SegmentId) {
        self.fetched.remove(&segment);
    }

    /// The paths gave this for so long.
    pub fn measured(&mut self, rate: Rate, over: Duration) {
        let known = match self.rate {
            Some(known) if known > rate => {
                let weight = Ratio::from_f64(over.ratio_to(over + MEMORY));
                known * weight.complement() + rate * weight
            }
            Some(known) => known * Ratio::new(1, 2) + rate * Ratio::new(1, 2),
            None => rate,
        };
        self.rate = Some(known);
    }

    /// What the paths give; `None`: nobody knows yet.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// How fast the player gets what is there, so that it takes the paths for what they are, within a
    /// quarter;
    /// `None`: as fast as it likes.
    pub fn delivery(&self) -> Option<Rate> {
        self.rate.map(|rate| rate * self.parameters.headroom)
    }

    /// Whether a segment is still of use: it is what the player asked for last, or comes behind it.
    pub fn keeps(&self, segment: SegmentId) -> bool {
        self.fetched.contains_key(&segment)
    }

    /// Whether nobody has asked for anything for long.
    pub fn is_forgotten(&self, now: Time) -> bool {
        self.played.values().all(|played| now.since(played.heard) > self.parameters.forgotten_after)
    }

    /// Throws away what was passed, what is of another rung, and all when the player is gone.
    fn tidy(&mut self, now: Time) {
        let forgotten_after = self.parameters.forgotten_after;
        self.played.retain(|_, played| now.since(played.heard) <= forgotten_after);
        let (tracks, played, ladder) = (&self.tracks, &self.played, self.ladder.as_ref());
        self.fetched.retain(|segment, _| {
            let group = tracks.get(&segment.track).map(|track| track.group);
            let played = group.and_then(|group| played.get(&group));
            let is_rung = ladder.is_some_and(|ladder| ladder.has(segment.track));
            played.is_some_and(|played| match is_rung {
                true => played.segment.number <= segment.number,
                false => played.keeps(*segment),
            })
        });
    }

    /// Play time from the start of one segment to the start of a later one of its track.
    fn between(&self, from: SegmentId, to: SegmentId) -> Option<Duration> {
        let numbers = (from.track == to.track).then_some(from.number..to.number)?;
        // No further than is looked ahead.
        let numbers = numbers.take(MOST_LOOKED_AT);
        Some(numbers.filter_map(|number| self.duration(SegmentId { number, ..from })).sum())
    }
}

impl Played {
    /// Whether a segment is what was asked for, or comes behind it.
    fn keeps(&self, segment: SegmentId) -> bool {
        let next = self.next.unwrap_or(self.segment);
        segment == self.segment || next.track == segment.track && next.number <= segment.number
    }
}

/// So many segments are looked at to count play time.
const MOST_LOOKED_AT: usize = 64;

fn as_f64(count: usize) -> f64 {
    Bytes::of(count).as_f64()
}

#[cfg(test)]
mod tests;
