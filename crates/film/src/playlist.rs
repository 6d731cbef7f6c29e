//! A playlist as one session: what is fetched ahead of its player, and what is known from one segment to the
//! next.
//!
//! A player that adapts asks for one segment after the other, of the rung that it has chosen, and chooses by
//! how fast they come. So three things are decided here, by what was asked for and how it came:
//!
//! 1. **Ahead.** When nothing that the player waits for is under way, or all of it has been asked for and connections
//!    have nothing to do, the segment is fetched that is played
//!    next and is not there: of each kind of media (picture, sound) the rung that was asked for last, up to
//!    [`Parameters::ahead`] of play time behind what was asked for, as far as [`Parameters::memory`] and
//!    [`Parameters::segments`] reach. Where the player says what it asks for next, that and what follows it
//!    comes first. What belongs to another rung, or was passed, is thrown away, and
//!    everything once nobody has asked for [`Parameters::forgotten_after`]. Nothing is fetched ahead where the
//!    paths give [`Parameters::near`] times what is played and the player can go to another rung: it gets the next
//!    segment in time by itself, unless the last one took longer than that, and what it does not play would be got for
//!    nothing.
//! 2. **Rung.** The player's, or, for one that does not adapt ([`Playlist::adapts`]), that of a rule, chosen when
//!    a segment is fetched or asked for: once for each segment.
//! 3. **Rate.** What the paths give, over the last seconds in which something was
//!    under way. Rising is believed at once, as a transfer begins slowly.
//!
//! How many connections there are is decided by [`Lasting`](crate::auto::Lasting).

mod api;
mod fetched;
mod ladder;
mod rates;

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
    /// When a segment of each kind of media came last.
    came: BTreeMap<GroupId, Time>,
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
    /// What it needs, as its playlist tells it; zero where it does not.
    rate: Rate,
}

/// What was asked for last of a kind of media.
#[derive(Clone, Copy, Debug)]
struct Played {
    segment: SegmentId,
    /// What its player says that it asks for next.
    next: Option<SegmentId>,
    at: Time,
    /// When it was there.
    came: Option<Time>,
    /// When it was heard of last.
    heard: Time,
    /// How much there is to play behind what was played at that time.
    ahead: Duration,
    /// What the highest rung needs to which its player may go.
    top: Option<Rate>,
}

impl Playlist {
    /// A playlist of which nothing is known.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            tracks: BTreeMap::new(),
            played: BTreeMap::new(),
            fetched: BTreeMap::new(),
            came: BTreeMap::new(),
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
        let (size, rate) =
            self.tracks.get(&track).map_or((Bytes::ZERO, Rate::ZERO), |track| (track.size, track.rate));
        self.tracks.insert(track, Track { group, first, durations, size, rate });
    }

    /// The player asks for a segment, and says this of itself. Answers whether it was fetched ahead.
    pub fn asked(&mut self, segment: SegmentId, said: Hints, now: Time) -> bool {
        let Some(group) = self.tracks.get(&segment.track).map(|track| track.group) else { return false };
        // What was thrown away meanwhile is not there for one who comes back.
        self.tidy(now);
        let before = self.played.get(&group).copied();
        let ahead = match before {
            Some(before) if before.segment.number.checked_add(1) == Some(segment.number) => {
                self.left_after(before, now)
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
        let fetched = self.fetched.entry(segment).or_insert(Fetched::Asked);
        let came = matches!(fetched, Fetched::There(_)).then_some(now);
        let top = said.top;
        self.played.insert(group, Played { segment, next, at: now, came, heard: now, ahead, top });
        let is_ahead = *fetched != Fetched::Asked;
        if *fetched == Fetched::Ahead {
            *fetched = Fetched::Asked;
        }
        self.tidy(now);
        is_ahead
    }

    /// How much the player has to play, as far as its requests tell, before it needs this segment.
    pub fn ahead(&self, segment: SegmentId, now: Time) -> Duration {
        let Some(track) = self.tracks.get(&segment.track) else { return Duration::ZERO };
        let Some(played) = self.played.get(&track.group) else { return Duration::ZERO };
        match self.between(played.segment, segment) {
            // What was asked for plays as well.
            Some(between) if segment.number > played.segment.number => {
                let asked = self.duration(played.segment).unwrap_or(Duration::ZERO);
                self.left_after(*played, now) + (between - asked)
            }
            _ => played.ahead - now.since(played.at),
        }
    }

    /// How much there is to play with what was asked for last. While a player waits for it, it plays what it has, and
    /// stands still then.
    fn left_after(&self, played: Played, now: Time) -> Duration {
        let asked = self.duration(played.segment).unwrap_or(Duration::ZERO);
        let came = played.came.unwrap_or(now);
        played.ahead - came.since(played.at) + asked - now.since(came)
    }

    /// How long a segment plays; `None`: it is not listed.
    pub fn duration(&self, segment: SegmentId) -> Option<Duration> {
        let track = self.tracks.get(&segment.track)?;
        let index = Bytes::new(segment.number.checked_sub(track.first)?).as_usize();
        track.durations.get(index).copied()
    }

    /// How large the last segment of a track was that came; `None`: none has.
    pub fn last_size(&self, track: TrackId) -> Option<Bytes> {
        self.tracks.get(&track).map(|track| track.size).filter(|size| !size.is_zero())
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
        let is_ending = |fetched: &&Fetched| **fetched == Fetched::Ending;
        if self.fetched.values().any(Fetched::needs_connections)
            || self.fetched.values().filter(is_ending).count() > 1
        {
            return None;
        }
        let kept: Bytes = self.fetched.values().map(|fetched| fetched.size()).sum();
        let candidates = self.played.values().filter_map(|played| match played.next {
            Some(next) if !self.fetched.contains_key(&next) => Some((self.duration(played.segment)?, next)),
            _ if self.comes_by_itself(played.segment.track, now) => None,
            Some(next) => self.next_of(next),
            None => self.next_of(played.segment),
        });
        let (_, mut next) = candidates.min()?;
        let buffer = self.ahead_of(next.number, now);
        if let Some(ladder) = self.ladder.as_mut().filter(|ladder| ladder.has(next.track)) {
            next.track = ladder.rung(next.number, buffer, |_| false).track;
        }
        if kept + self.last_size(next.track).unwrap_or(Bytes::ZERO) > self.parameters.memory {
            return None;
        }
        self.fetched.insert(next, Fetched::Ahead);
        Some(next)
    }

    /// Whether the player of this track gets the next segment in time when it asks for it, and may want another one
    /// than what would be fetched.
    fn comes_by_itself(&self, track: TrackId, now: Time) -> bool {
        let Some(group) = self.tracks.get(&track).map(|track| track.group) else { return false };
        let chooses = self.has_others(group) && !self.ladder.as_ref().is_some_and(|ladder| ladder.has(track));
        let rate = |played: &Played| {
            let size = self.tracks.get(&played.segment.track)?.size;
            Some(Rate::of(size, self.duration(played.segment)?))
        };
        let played: Rate = self.played.values().filter_map(rate).sum();
        // A rate that falls is believed when a segment has come; one that is slow tells it before.
        let took = |played: &Played| played.took(now) * self.parameters.near;
        let is_slow =
            self.played.get(&group).is_some_and(|played| self.duration(played.segment) < Some(took(played)));
        chooses && !is_slow && self.rate.is_some_and(|rate| rate >= played * self.parameters.near)
    }

    /// All of a segment has been asked for, and some of its connections have nothing to do: what is next may begin.
    pub fn ends(&mut self, segment: SegmentId) {
        // Which rung is next is to be known first, where it is chosen here.
        if self.ladder.as_ref().is_none_or(|ladder| !ladder.has(segment.track))
            && let Some(fetched) =
                self.fetched.get_mut(&segment).filter(|fetched| fetched.needs_connections())
        {
            *fetched = Fetched::Ending;
        }
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

    /// A segment has come as a whole, and so fast since it was begun.
    pub fn came(&mut self, segment: SegmentId, size: Bytes, took: Duration, now: Time) {
        if let Some(fetched) = self.fetched.get_mut(&segment) {
            *fetched = Fetched::There(size);
        }
        let waits = |played: &&mut Played| played.segment == segment && played.came.is_none();
        self.played.values_mut().filter(waits).for_each(|played| played.came = Some(now));
        let Some(track) = self.tracks.get_mut(&segment.track) else { return };
        track.size = size;
        let before = self.came.insert(track.group, now);
        // A rule looks at small ones as well: of slow rungs all are.
        if let Some(ladder) = self.ladder.as_mut().filter(|ladder| ladder.has(segment.track)) {
            ladder.came(size, took);
        }
        if size >= TELLS {
            // While the end of the one before came as well, the paths brought both.
            let alone = before.map_or(took, |before| took.min(now.since(before)));
            if !alone.is_zero() {
                self.measured(Rate::of(size, alone), alone);
            }
        }
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

    /// How fast the player gets what is there, so that it takes the paths for what they are, within a quarter; `None`:
    /// as it likes, as nothing is known or it has no other rung to go to.
    pub fn delivery(&self) -> Option<Rate> {
        let chooses = self.tracks.values().any(|track| self.has_others(track.group));
        self.rate.filter(|_| chooses).map(|rate| rate * self.parameters.headroom)
    }

    fn has_others(&self, group: GroupId) -> bool {
        self.tracks.values().filter(|track| track.group == group).count() > 1
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
    /// How long its player has waited for it.
    fn took(&self, now: Time) -> Duration {
        self.came.unwrap_or(now).since(self.at)
    }

    /// Whether a segment is what was asked for, or comes behind it.
    fn keeps(&self, segment: SegmentId) -> bool {
        let next = self.next.unwrap_or(self.segment);
        segment == self.segment || next.track == segment.track && next.number <= segment.number
    }
}

/// So many segments are looked at to count play time.
const MOST_LOOKED_AT: usize = 64;

#[cfg(test)]
mod tests;
