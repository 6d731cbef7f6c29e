//! What rungs need, as their playlists tell it.

use anabranch_units::{Rate, Ratio};

use super::{Playlist, TrackId};

/// A rung above needs at least so many times as much: what differs by less is the same picture with other sound.
const ABOVE: Ratio = Ratio::new(11, 10);

impl Playlist {
    /// What a track that is listed needs, as a playlist tells it. Of several rates the lowest counts, as the others are
    /// of more than this track.
    pub fn needs(&mut self, track: TrackId, rate: Rate) {
        if let Some(track) = self.tracks.get_mut(&track).filter(|_| !rate.is_zero()) {
            track.rate = if track.rate.is_zero() { rate } else { track.rate.min(rate) };
        }
    }

    /// What the rung above a track needs, as a multiple of what the track does; `None`: there is none to which its
    /// player may go, or nobody knows it.
    pub fn next_rung(&self, track: TrackId) -> Option<Ratio> {
        let own = self.tracks.get(&track).filter(|track| !track.rate.is_zero())?;
        let top = self.played.get(&own.group).and_then(|played| played.top).unwrap_or(Rate::MAX);
        let others = self.tracks.values().filter(|other| other.group == own.group).map(|other| other.rate);
        let next = others.filter(|rate| *rate >= own.rate * ABOVE && *rate <= top).min()?;
        Some(Ratio::from_f64(next.ratio_to(own.rate)))
    }
}
