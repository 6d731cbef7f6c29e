//! Stripe groups: connections to one server that itself spreads the bytes over them (MultiTCP section 7.3).
//!
//! To the coordinator a group is one pipe, named by the connection that founded it. Its bytes come over any
//! of its connections, so a segment misses any part of itself and not just its tail. Bytes that went down
//! with a connection, that nobody wants any more or that a slow connection holds up are taken away from the
//! segments again: the next request asks for them if they are needed, with the nearest play time, wherever
//! that is best.

use std::ops::Range;

use anabranch_protocol::ranges::RangeSet;
use anabranch_protocol::stripe::QueueEnd;
use anabranch_units::{Duration, Time};

use super::Coordinator;
use super::pipe::{Hole, Pipe};
use super::reader::Reader;
use super::request::Arrival;
use crate::control::ConnectionId;

/// A group has at most so many requests in flight: far from what a server has room for
/// ([`MAX_QUEUED_RANGES`](anabranch_protocol::stripe::MAX_QUEUED_RANGES)), as what is lost can split each.
pub(super) const MOST_REQUESTS: usize = 128;
/// Holes are asked for again in parts of this size, as most of what is asked for twice comes twice.
const LARGEST_HOLES: u64 = 256 * 1024;
/// A hole that readers wait for is asked for again after so long at the earliest.
const HOLE_PATIENCE: Duration = Duration::from_millis(400);

impl Coordinator {
    /// A pipe is a stripe group of so many connections from now on, at least one.
    pub fn set_members(&mut self, group: ConnectionId, members: u32) {
        if let Some(pipe) = self.pipes.get_mut(&group) {
            // Whoever joins can go on where the last one was to end.
            pipe.draining &= members <= pipe.members;
            pipe.members = members.max(1);
        }
    }

    /// Bytes have come over a connection of a stripe group, asked for or not.
    pub fn block_arrived(&mut self, group: ConnectionId, range: Range<u64>, now: Time) -> Arrival {
        if let Some(pipe) = self.pipes.get_mut(&group) {
            pipe.active = now;
            pipe.newest = range.end;
        }
        let complete = self.take_from_segments(group, &range);
        let fresh = self.have.insert(range.clone());
        self.claimed.insert(range.clone());
        Arrival { fresh, duplicate: (range.end - range.start) - fresh, complete }
    }

    /// `range` will not come from the group: what of it was asked for there is unassigned again.
    pub fn unassign(&mut self, group: ConnectionId, range: &Range<u64>) {
        let Some(pipe) = self.pipes.get(&group) else { return };
        let mut gone = RangeSet::new();
        for segment in pipe.queue.iter().filter_map(|id| self.segments.get(id)) {
            segment.missing.iter_within(range.clone()).for_each(|missing| {
                gone.insert(missing);
            });
        }
        self.take_from_segments(group, range);
        for range in gone.iter() {
            self.unclaim(&range);
        }
    }

    /// Whether it is a stripe group.
    pub(super) fn is_group(&self, pipe: ConnectionId) -> bool {
        self.pipes.get(&pipe).is_some_and(|pipe| pipe.members > 0)
    }

    /// What the group need not bring any more: it came another way, or no reader is before it (after a seek).
    /// It is unassigned then. Without readers nothing is taken back: the next one may want it.
    pub fn take_back(&mut self, group: ConnectionId) -> Vec<Range<u64>> {
        let Some(pipe) = self.pipes.get(&group).filter(|pipe| pipe.members > 0) else { return Vec::new() };
        let mut wanted = RangeSet::new();
        for reader in self.readers.values() {
            wanted.insert(reader.position..reader.end);
        }
        let mut useless = RangeSet::new();
        let segments = pipe.queue.iter().filter_map(|id| self.segments.get(id));
        for missing in segments.flat_map(|segment| segment.missing.iter()) {
            for there in self.have.iter_within(missing.clone()) {
                useless.insert(there);
            }
            if !self.readers.is_empty() {
                for nobodys in wanted.gaps(missing) {
                    useless.insert(nobodys);
                }
            }
        }
        let useless: Vec<_> = useless.iter().collect();
        for range in &useless {
            self.unassign(group, range);
        }
        useless
    }

    /// Holes that keep a reader waiting although what is behind them has come: a slow connection of the group
    /// holds them up. They are unassigned, so that the next requests ask for them again, over whichever
    /// connection is free. So are the last ones when nothing is left to ask for: no slow connection sets the
    /// time.
    pub fn take_back_holes(&mut self, group: ConnectionId, now: Time) -> Vec<Range<u64>> {
        let Some((patience, first)) = self.first_hole(group) else { return Vec::new() };
        let Some(pipe) = self.pipes.get_mut(&group) else { return Vec::new() };
        let known = pipe.hole.filter(|known| known.start == first.start);
        if known.is_some_and(|known| now.since(known.since) < patience) {
            return Vec::new();
        }
        pipe.hole = Some(Hole { start: first.start, since: now, newest: pipe.newest });
        let Some(Hole { start, newest, .. }) = known else { return Vec::new() };
        let end = newest.max(first.end).min(start.saturating_add(LARGEST_HOLES));
        let segments = pipe.queue.iter().filter_map(|id| self.segments.get(id));
        let holes: Vec<_> = segments.flat_map(|segment| segment.missing.iter_within(start..end)).collect();
        for hole in &holes {
            self.unassign(group, hole);
        }
        holes
    }

    /// The first hole of a group that a reader waits for, and for how long it may.
    fn first_hole(&self, group: ConnectionId) -> Option<(Duration, Range<u64>)> {
        let pipe = self.pipes.get(&group).filter(|pipe| pipe.members > 1 && !pipe.draining)?;
        let patience = HOLE_PATIENCE.max(pipe.rtt * 3);
        let at_the_end = !self.has_work() && self.reaches_the_end();
        if self.media_rate.is_none() && !at_the_end {
            return None;
        }
        let next = self.readers.values().filter_map(|reader| {
            let next = self.have.run_end(reader.position);
            (at_the_end || self.play_time(reader, next) <= patience * 3).then_some(next)
        });
        let hole =
            next.flat_map(|start| pipe.queue.iter().map(move |id| (start, id))).find_map(|(start, id)| {
                let end = self.segments.get(id)?.missing.run_end(start);
                let overtaken = self.have.run_end(end) > end || Some(end) == self.size;
                (end > start && overtaken).then_some(start..end)
            })?;
        Some((patience, hole))
    }

    /// Where a request goes in a group's queue: before everything if it is needed before everything.
    pub(super) fn priority(&self, pipe: &Pipe, start: u64) -> QueueEnd {
        if pipe.members == 0 {
            return QueueEnd::Back;
        }
        let own = self.soonest(start);
        let outstanding = pipe.queue.iter().filter_map(|id| self.segments.get(id));
        let first = outstanding.map(|segment| self.soonest(segment.next())).min();
        if first.is_some_and(|first| own < first) { QueueEnd::Front } else { QueueEnd::Back }
    }

    /// Whether a pipe can take a request. A group is given what its connections bring together in a segment's
    /// time, whatever of it has come: a slow connection must not keep the others waiting. What is urgent
    /// finds room before.
    pub(super) fn has_room(&self, pipe: &Pipe, priority: QueueEnd) -> bool {
        let in_flight = self.policy.in_flight.least();
        if pipe.members == 0 {
            return self.has_room_behind(pipe);
        }
        let segments = match priority {
            QueueEnd::Front => in_flight,
            QueueEnd::Back => in_flight.saturating_sub(1),
        };
        let room = self.segment_length(pipe).saturating_mul(u64::try_from(segments).unwrap_or(u64::MAX));
        pipe.queue.len() < MOST_REQUESTS && pipe.asked - pipe.arrived <= room
    }

    /// Whether a pipe can take what another one misses: one request more than usual.
    pub(super) fn has_room_for_repair(&self, pipe: &Pipe) -> bool {
        if pipe.members == 0 {
            let in_flight = self.policy.in_flight;
            !pipe.rests && (pipe.queue.len() <= in_flight.least() || self.is_below(pipe, in_flight))
        } else {
            self.has_room(pipe, QueueEnd::Front)
        }
    }

    /// How soon the byte at `position` is played by any reader.
    pub(super) fn soonest(&self, position: u64) -> Duration {
        let before = |reader: &&Reader| (reader.position..reader.end).contains(&position);
        let times = self.readers.values().filter(before).map(|reader| self.play_time(reader, position));
        times.min().unwrap_or(Duration::MAX)
    }

    /// Takes `range` off what is missing of the group's segments; answers whether one of them is complete by
    /// that.
    fn take_from_segments(&mut self, group: ConnectionId, range: &Range<u64>) -> bool {
        let Some(pipe) = self.pipes.get_mut(&group) else { return false };
        let mut complete = Vec::new();
        for id in &pipe.queue {
            let Some(segment) = self.segments.get_mut(id) else { continue };
            pipe.arrived += segment.missing.remove(range.clone());
            if segment.missing.is_empty() {
                complete.push(*id);
            }
        }
        for id in &complete {
            self.retire(*id);
        }
        !complete.is_empty()
    }
}
