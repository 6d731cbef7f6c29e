//! Readers: who needs which bytes, and when.

use std::ops::Range;

use anabranch_units::{Bytes, Duration, Rate, Time};

use super::Coordinator;
use super::gap::Gap;
use super::pipe::Pipe;
use super::reader::{Reader, ReaderId};
use crate::control::ConnectionId;

/// What a reader gets before anything else: an index, or what a player shows first.
const FIRST_BYTES: u64 = 256 * 1024;
/// Assumed where the media's rate is not known: play times then only order the readers.
const ASSUMED_MEDIA_RATE: Rate = Rate::from_mbps(4);
/// Why most bytes are asked for.
const NEAREST: &str = "the nearest play time";

impl Coordinator {
    /// Somebody begins to read.
    pub fn add_reader(&mut self, id: ReaderId, range: Range<u64>) {
        let Range { start, end } = range;
        let reader = Reader { position: start, play_position: start, began: start, end };
        self.readers.insert(id, reader);
    }

    /// A reader has taken what is before `position`, and plays `play_position`.
    pub fn move_reader(&mut self, id: ReaderId, position: u64, play_position: u64) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.position = position;
            reader.play_position = play_position.min(position);
        }
    }

    /// A reader is gone; what was asked for on its behalf and is on its way is kept.
    pub fn remove_reader(&mut self, id: ReaderId) {
        self.readers.remove(&id);
    }

    /// Where a reader is.
    pub fn reader(&self, id: ReaderId) -> Option<&Reader> {
        self.readers.get(&id)
    }

    /// End of what the reader can take without waiting.
    pub fn available(&self, id: ReaderId) -> u64 {
        self.readers.get(&id).map_or(0, |reader| self.have.run_end(reader.position).min(reader.end))
    }

    /// Whether there is anything left to ask for within some reader's look-ahead.
    pub fn has_work(&self) -> bool {
        self.readers.values().any(|reader| self.gap_of(reader).is_some())
    }

    /// Whether some reader's look-ahead is not all there yet, asked for or not.
    pub fn is_wanting(&self) -> bool {
        self.readers
            .values()
            .any(|reader| self.have.first_gap(reader.position, self.limit_of(reader)).is_some())
    }

    /// The first byte that some reader waits for within its look-ahead.
    pub fn first_wanted(&self) -> Option<u64> {
        let gap = |reader: &Reader| self.have.first_gap(reader.position, self.limit_of(reader));
        self.readers.values().filter_map(gap).map(|gap| gap.start).min()
    }

    /// Whether some reader can take nothing, and what it needs is not even asked for.
    pub fn starves(&self) -> bool {
        self.readers
            .values()
            .any(|reader| self.gap_of(reader).is_some_and(|gap| gap.start == reader.position))
    }

    /// Where a reader begins that has got nothing yet, and nobody was asked.
    pub(super) fn first_bytes_wanted(&self) -> Option<u64> {
        let fresh = self.readers.values().filter(|reader| reader.position == reader.began);
        fresh
            .filter_map(|reader| Some((reader.began, self.gap_of(reader)?.start)))
            .find_map(|(began, gap)| (began == gap).then_some(gap))
    }

    /// Whether a connection or group was asked for what a reader waits for that has not got its first bytes
    /// yet.
    pub fn brings_first_bytes(&self, pipe: ConnectionId) -> bool {
        let Some(pipe) = self.pipes.get(&pipe) else { return false };
        let mut next = self.readers.values().filter_map(|reader| {
            let next = self.have.run_end(reader.position);
            (next < reader.end && next.saturating_sub(reader.began) < FIRST_BYTES).then_some(next)
        });
        let brings = |next: u64| {
            let mut asked = pipe.queue.iter().filter_map(|id| self.segments.get(id));
            asked.any(|segment| segment.missing.run_end(next) > next)
        };
        next.any(brings)
    }

    /// Equation (1) of TCP-ROME: how long until the byte at `position` is played.
    pub(super) fn play_time(&self, reader: &Reader, position: u64) -> Duration {
        let rate = self.media_rate.unwrap_or(ASSUMED_MEDIA_RATE);
        rate.time_for(Bytes::new(position.saturating_sub(reader.play_position)))
    }

    /// How far ahead a reader's bytes are asked for.
    pub(super) fn limit_of(&self, reader: &Reader) -> u64 {
        let end = self.in_whole_requests(reader.position.saturating_add(self.policy.look_ahead.get()));
        let end = end.max(reader.position).min(reader.end);
        self.size.map_or(end, |size| end.min(size))
    }

    fn gap_of(&self, reader: &Reader) -> Option<Range<u64>> {
        self.claimed.first_gap(reader.position, self.limit_of(reader))
    }

    /// The unassigned bytes that are best asked for on this connection: those with the nearest play time, or,
    /// if this connection would be late with them and another one brings them in time or in half the time,
    /// the first that this one brings in time. The segment that is needed now is so never held up by a slow
    /// connection that later ones could use as well.
    pub(super) fn best_gap(&self, connection: ConnectionId, now: Time) -> Option<Gap<'_>> {
        let nearest = self
            .readers
            .values()
            .filter_map(|reader| {
                self.gap_of(reader).map(|gap| (self.play_time(reader, gap.start), gap, reader))
            })
            .min_by_key(|(play_time, gap, _)| (*play_time, gap.start));
        let (play_time, gap, reader) = nearest?;
        if self.pipes.len() < 2 || self.media_rate.is_none() {
            return Some(Gap { range: gap, reader, why: NEAREST });
        }
        let own = self.pipes.get(&connection)?;
        let length = self.segment_length(own);
        let finish = |pipe: &Pipe| self.time_to_bring(pipe, length, now);
        let own = finish(own);
        let others = self.pipes.iter().filter(|(id, pipe)| **id != connection && !pipe.draining);
        let soon = play_time.max(own / 2);
        let another_makes_it = others.map(|(_, pipe)| finish(pipe)).any(|finish| finish <= soon);
        if own <= play_time || !another_makes_it {
            return Some(Gap { range: gap, reader, why: NEAREST });
        }
        let rate = self.media_rate.unwrap_or(ASSUMED_MEDIA_RATE);
        let in_time = reader.play_position.saturating_add(rate.amount_in(own).get()).max(gap.start);
        Some(match self.claimed.first_gap(in_time, self.limit_of(reader)) {
            Some(range) => Gap { range, reader, why: "the first that this connection brings in time" },
            None => Gap { range: gap, reader, why: NEAREST },
        })
    }
}
