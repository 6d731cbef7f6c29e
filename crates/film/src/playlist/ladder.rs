//! The rungs of a player that does not adapt: one is chosen for each segment, once.

use std::collections::BTreeMap;

use anabranch_units::{Bytes, Duration, Rate, Ratio};

use super::api::TrackId;
use crate::adaptation::{Adaptation, Choice, Parameters};

/// What was chosen is remembered of so many segments.
const REMEMBERED: usize = 64;

/// The rung of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The track that it is.
    pub track: TrackId,
    /// Its place in the ladder, from the lowest, 0.
    pub place: usize,
    /// Why it was chosen.
    pub why: &'static str,
    /// What there was to play before the segment.
    pub buffer: Duration,
    /// What segments came at; `None`: none had come.
    pub estimate: Option<Rate>,
}

/// A ladder, and who chooses.
#[derive(Debug)]
pub(super) struct Ladder {
    tracks: Vec<TrackId>,
    rates: Vec<Rate>,
    adaptation: Adaptation,
    chosen: BTreeMap<u64, Rung>,
}

impl Ladder {
    /// Rungs of rising rates, of which nothing was chosen.
    pub(super) fn new(rungs: Vec<(TrackId, Rate)>, parameters: Parameters) -> Self {
        let (tracks, rates) = rungs.into_iter().unzip();
        Self { tracks, rates, adaptation: Adaptation::new(parameters), chosen: BTreeMap::new() }
    }

    pub(super) fn tracks(&self) -> impl Iterator<Item = TrackId> + '_ {
        self.tracks.iter().copied()
    }

    pub(super) fn has(&self, track: TrackId) -> bool {
        self.tracks.contains(&track)
    }

    /// Of how many segments it is known what was chosen.
    #[cfg(test)]
    pub(super) fn remembers(&self) -> usize {
        self.chosen.len()
    }

    /// The part of its play time in which a segment of a rung comes where the next rung would be chosen by that.
    pub(super) fn part_for_the_next(&self, track: TrackId) -> Option<Ratio> {
        let place = self.tracks.iter().position(|rung| *rung == track)?;
        let (own, next) = (self.rates.get(place)?, self.rates.get(place + 1)?);
        Some(Ratio::from_f64(self.adaptation.safety().as_f64() * own.ratio_to(*next)))
    }

    /// A segment has come.
    pub(super) fn came(&mut self, size: Bytes, took: Duration) {
        self.adaptation.came(size, took);
    }

    /// The rung of a segment: the one that was chosen, where it `stays`, or else the one that the rule says
    /// with so much to play before it.
    pub(super) fn rung(&mut self, number: u64, buffer: Duration, stays: impl Fn(TrackId) -> bool) -> Rung {
        if let Some(rung) = self.chosen.get(&number).copied().filter(|rung| stays(rung.track)) {
            return rung;
        }
        let Choice { rung: place, why } = self.adaptation.choose(&self.rates, buffer);
        let track = self.tracks.get(place).copied().unwrap_or(TrackId(0));
        let rung = Rung { track, place, why, buffer, estimate: self.adaptation.estimate() };
        self.chosen.insert(number, rung);
        if self.chosen.len() > REMEMBERED {
            // Those behind what is played go first, whichever way it went.
            let (first, last) = (self.chosen.keys().next().copied(), self.chosen.keys().next_back().copied());
            let farthest = first.into_iter().chain(last).max_by_key(|known| known.abs_diff(number));
            farthest.map(|known| self.chosen.remove(&known));
        }
        rung
    }
}
