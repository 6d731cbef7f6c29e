//! What the player does, by what its reader takes.
//!
//! Of a player a session sees how far a reader has come, and whether bytes lie ready that it does not take.
//! Two states follow from that:
//!
//! - **By the clock.** The reader takes whatever comes. How much the player holds is not known, so play goes
//!   on with the time, at the media's rate. When it comes to the end of what has arrived, the player stalls.
//! - **Full.** Bytes have lain ready for [`FULL_AFTER`] and the reader did not take all of them: the player's
//!   own buffer is full. From then on it holds so much, and plays what its reader takes: fast, slowly, or,
//!   while it is paused, nothing. It does not stall, as it could take more. When the reader has to wait
//!   again, the clock counts on from there.
//!
//! So a pause is a pause, and a stall is one that the player saw. A player without a bound on its own buffer
//! is never full, and shows nothing: it counts as playing at the media's rate. As it may play faster, the
//! controller is told of it (`hungry`).
//!
//! **Rate.** What a full player takes is what it plays. Over every
//! [`MEASURED_OVER`](super::viewer::MEASURED_OVER) of it, where the media's rate is not known, the rate
//! becomes what was taken, up or down; where it is known, it is more when the player plays faster by more
//! than a tenth, and no less. A player that was full once, and since then has waited all that time although
//! it got more than its rate, is thought to play what it takes: it holds no more than when it was full.

use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

use super::Session;
use super::api::Pace;
use super::viewer::Viewer;
use crate::content::ReaderId;

/// Bytes that lie ready for so long are left by a player that could take them.
const FULL_AFTER: Duration = Duration::from_secs(1);
/// A player that takes so much more than the media's rate plays faster.
const FASTER: Ratio = Ratio::new(11, 10);

impl Session {
    /// Whoever reads is a real player, of which nobody knows how fast it plays. Where the path has room, one
    /// that takes all that comes gets more than the media's rate.
    #[must_use]
    pub fn expecting_any_speed(self) -> Self {
        Self { expects_any_speed: true, ..self }
    }

    /// Others have its connections when it has nothing more to ask for: see [`Session::lend`].
    #[must_use]
    pub fn lending(self) -> Self {
        Self { lends: true, ..self }
    }

    /// A connection is expected to bring so much, until it is known what it brings.
    #[must_use]
    pub fn expecting(self, share: Rate) -> Self {
        Self { share, ..self }
    }

    /// Whether the player takes all that comes, and was never full.
    pub(super) fn viewer_is_hungry(&self) -> bool {
        let is_played = matches!(self.pace, Pace::Media(_));
        is_played
            && self.viewer.as_ref().is_some_and(|viewer| {
                !viewer.is_full && viewer.holds.is_none() && self.coordinator.reader(viewer.reader).is_some()
            })
    }

    /// Whether it is the reader whose play is modelled.
    pub(super) fn is_viewed(&self, id: ReaderId) -> bool {
        self.viewer.as_ref().is_some_and(|viewer| viewer.reader == id)
    }

    /// Models the play of this reader from now on: from `start`, unless it only takes again what the player
    /// has not played, or goes on where the last one ended.
    pub(super) fn follow(&mut self, id: ReaderId, start: u64, now: Time) {
        let playing = self.playback.play_position().get();
        let goes_on = |viewer: &&mut Viewer| (playing..=viewer.position).contains(&start);
        if let Some(viewer) = self.viewer.as_mut().filter(goes_on) {
            (viewer.reader, viewer.position) = (id, start);
            viewer.measure_anew(now);
            return;
        }
        let holds = self.viewer.take().and_then(|viewer| viewer.holds);
        self.viewer = Some(Viewer { holds, ..Viewer::new(id, start, now) });
        self.playback.reset(now, Bytes::new(start));
    }

    /// The player's reader has taken everything before `position`.
    pub(super) fn taken(&mut self, position: u64, now: Time) {
        let Some(viewer) = &mut self.viewer else { return };
        let took = viewer.takes(position, now);
        let there = self.coordinator.have().run_end(position);
        if there <= position {
            viewer.ready = None;
        }
        if let Some(took) = took {
            self.took(took, now);
        }
    }

    /// The player played at this rate, or took so much while it waited.
    fn took(&mut self, took: Rate, now: Time) {
        let Some(viewer) = self.viewer.as_ref().filter(|_| matches!(self.pace, Pace::Media(_))) else {
            return;
        };
        let waits_for_more =
            viewer.holds.is_some() && self.media_rate.is_some_and(|rate| took > rate * FASTER);
        if took.is_zero() || !(viewer.is_full || waits_for_more) {
            return;
        }
        let rate = match self.known_rate {
            Some(known) if took <= known * FASTER => known,
            _ => took,
        };
        if self.media_rate != Some(rate) {
            self.set_play_rate(rate, now);
        }
    }

    /// The media is played at this rate from now on.
    pub(super) fn set_play_rate(&mut self, rate: Rate, now: Time) {
        self.media_rate = Some(rate);
        self.coordinator.set_media_rate(rate);
        self.playback.set_rate(now, rate);
    }

    /// The player plays on until `now`.
    pub(super) fn play(&mut self, now: Time) {
        let Some(viewer) = &mut self.viewer else { return };
        let there = self.coordinator.have().run_end(viewer.position);
        let ended = self.coordinator.size().is_some_and(|size| there >= size);
        // Whoever has gone waits for nothing, but plays what it has of the film's end.
        let waits = there <= viewer.position && (ended || self.coordinator.reader(viewer.reader).is_some());
        let contiguous = Bytes::new(there - viewer.start);
        let was_full = viewer.is_full;
        viewer.ready = if waits { None } else { Some(viewer.ready.unwrap_or(now)) };
        viewer.is_full = viewer.ready.is_some_and(|ready| now.since(ready) >= FULL_AFTER);
        if viewer.is_full && !was_full {
            let played = self.playback.play_position().get();
            viewer.holds = Some(viewer.position.saturating_sub(played));
        }
        if viewer.is_full != was_full {
            viewer.measure_anew(now);
        }
        match viewer.at_least_played() {
            Some(played) if viewer.is_full => self.playback.follow(now, contiguous, ended, played),
            played => {
                self.playback.advance(now, contiguous, ended);
                if let Some(played) = played {
                    self.playback.has_played(played);
                }
            }
        }
        if let Some(state) = self.coordinator.reader(viewer.reader) {
            let position = state.position;
            self.coordinator.move_reader(viewer.reader, position, self.playback.play_position().get());
        }
    }
}

#[cfg(test)]
mod tests;
