//! What is left of a ladder for a player that does not adapt: either one rung for each segment, chosen when it is
//! fetched, or one for all of them, where a player could not go from one to another.

use anabranch_film::playlist::{Rung, SegmentId, TrackId};
use anabranch_media::playlist::Place;
use anabranch_units::Rate;
use url::Url;

use crate::report::RungTold;

/// What a player is shown of a ladder.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// The variant of a multivariant playlist at this URL.
    Variant(Url),
    /// Of each set of a description the representation at this place.
    Rungs(Vec<usize>),
}

/// A rung that is chosen here.
#[derive(Clone, Debug)]
pub(super) struct RungOf {
    pub(super) track: TrackId,
    /// Where its playlist is.
    pub(super) url: Url,
    pub(super) rate: Rate,
    pub(super) height: Option<u64>,
}

/// What a player gets that asks for a segment.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) segment: SegmentId,
    pub(super) place: Place,
    /// What is to be told, where the rung is another one than before.
    pub(super) told: Option<RungTold>,
}

/// The ladder of a player for which rungs are chosen.
#[derive(Debug)]
pub(super) struct Adapting {
    /// Of rising rates.
    rungs: Vec<RungOf>,
    /// What was told last.
    last: Option<TrackId>,
}

impl Adapting {
    pub(super) fn new(rungs: Vec<RungOf>) -> Self {
        Self { rungs, last: None }
    }

    pub(super) fn has(&self, track: TrackId) -> bool {
        self.rungs.iter().any(|rung| rung.track == track)
    }

    /// The playlists of the other rungs, if this is one.
    pub(super) fn beside(&self, track: TrackId) -> Vec<Url> {
        let others = self.rungs.iter().filter(|rung| rung.track != track);
        if self.has(track) { others.map(|rung| rung.url.clone()).collect() } else { Vec::new() }
    }

    /// What is to be told of the rung of a segment; nothing where it is the same as before.
    pub(super) fn told(&mut self, rung: Rung, number: u64) -> Option<RungTold> {
        if self.last.replace(rung.track) == Some(rung.track) {
            return None;
        }
        let of = self.rungs.iter().find(|of| of.track == rung.track)?;
        Some(RungTold {
            place: rung.place,
            count: self.rungs.len(),
            rate: of.rate,
            height: of.height,
            segment: Some(number),
            buffer: Some(rung.buffer),
            estimate: rung.estimate,
            why: rung.why,
        })
    }
}
