//! Who reads, and how far.

use std::ops::Range;

use anabranch_units::{Bytes, Time};

use super::Session;
use super::api::Pace;
use super::connection::Connection;
use crate::content::ReaderId;
use crate::control::ConnectionId;

/// A reader that has taken so much is where the player plays, and not one that looked at an index.
const READS_ON: u64 = 512 * 1024;

impl Session {
    /// Somebody begins to read `range`. The first reader, and later each that reads on, is the one whose play
    /// is modelled.
    pub fn add_reader(&mut self, id: ReaderId, range: Range<u64>, now: Time) {
        self.now = now;
        let start = range.start;
        self.coordinator.add_reader(id, range);
        if self.viewer.as_ref().is_none_or(|viewer| self.coordinator.reader(viewer.reader).is_none()) {
            self.follow(id, start, now);
        }
        let put_off = std::mem::take(&mut self.put_off);
        self.obey(put_off);
        self.take_back(now);
        self.make_way(now);
        self.fill(now);
    }

    /// A reader has taken everything before `position`.
    pub fn move_reader(&mut self, id: ReaderId, position: u64, now: Time) {
        self.now = now;
        let began = self.coordinator.reader(id).map_or(position, |reader| reader.began);
        if !self.is_viewed(id) && position.saturating_sub(began) >= READS_ON {
            self.follow(id, began, now);
        }
        let play_position = if self.is_viewed(id) { self.playback.play_position().get() } else { position };
        self.coordinator.move_reader(id, position, play_position);
        if self.is_viewed(id) {
            self.taken(position, now);
        }
        self.fill(now);
    }

    /// A reader is gone.
    pub fn remove_reader(&mut self, id: ReaderId, now: Time) {
        self.now = now;
        self.coordinator.remove_reader(id);
        self.take_back(now);
        self.make_way(now);
    }

    /// End of what a reader can take.
    pub fn available(&self, id: ReaderId) -> u64 {
        self.coordinator.available(id)
    }

    /// Whether some reader waits for bytes within its look-ahead.
    pub fn wants_something(&self) -> bool {
        self.coordinator.is_wanting()
    }

    /// The driver no longer holds these bytes.
    pub fn forget(&mut self, range: Range<u64>) {
        self.coordinator.forget(range);
    }

    /// How far ahead of a reader bytes are asked for from now on.
    pub fn set_look_ahead(&mut self, look_ahead: Bytes) {
        self.coordinator.set_look_ahead(look_ahead);
    }

    /// Whether a connection was asked for the first bytes that a player waits for: to be read at once,
    /// whatever the pace.
    pub fn brings_first_bytes(&self, connection: ConnectionId) -> bool {
        let pipe = self.connections.get(&connection).map(Connection::pipe);
        matches!(self.pace, Pace::Media(_))
            && pipe.is_some_and(|pipe| self.coordinator.brings_first_bytes(pipe))
    }
}
