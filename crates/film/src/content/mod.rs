//! The content coordinator of TCP-ROME (section III.A to III.C): which bytes are asked for on which
//! connection.
//!
//! Every byte of the media is in one of three states: received, assigned to a connection, or neither. The
//! *partition rule* (III.B) is the table of what is assigned; it is bounded by the smallest missing segment
//! below and the last assigned one above. A connection that can take a request gets the unassigned bytes with
//! the nearest play time (equation (1)), as many as it delivers in [`Policy::segment_time`], so that
//! connections carry segments in proportion to what they deliver. Segments that would miss their play time
//! are asked for again on a connection that makes it ([`Coordinator::reassign_late`]).
//!
//! Cost: a decision is O(log n) in the number of outstanding segments and linear in the number of connections
//! and readers, which are few; nothing scans the table. (libtorrent's time-critical picker, the strongest of
//! its kind, sorts all pieces and peers at every decision.)

mod gap;
mod group;
mod late;
mod length;
mod pipe;
mod policy;
mod reader;
mod readers;
mod request;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use anabranch_protocol::ranges::RangeSet;
use anabranch_protocol::stripe::QueueEnd;
use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::control::ConnectionId;

use gap::Gap;
use pipe::{Pipe, Segment};
pub use policy::{InFlight, MissingRule, Policy};
pub use reader::{Reader, ReaderId};
pub use request::{Arrival, Reassignment, Request, RequestId};

/// Sizes, readers, what is there and what is assigned.
#[derive(Debug)]
pub struct Coordinator {
    policy: Policy,
    /// End of the media, once known.
    size: Option<u64>,
    /// Received.
    have: RangeSet,
    /// Received or assigned.
    claimed: RangeSet,
    segments: BTreeMap<RequestId, Segment>,
    /// The segments by the position at which they begin.
    by_start: BTreeSet<(u64, RequestId)>,
    /// Segments that share bytes with another one, because one of them was late.
    shared: BTreeSet<RequestId>,
    pipes: BTreeMap<ConnectionId, Pipe>,
    readers: BTreeMap<ReaderId, Reader>,
    /// What the media needs, for play times; unknown at first.
    media_rate: Option<Rate>,
    /// The segment that is got, where what lies around it is other ones.
    segment: Option<Range<u64>>,
    next_request: u64,
    last_assigned: u64,
}

impl Coordinator {
    /// A coordinator for media of `size` bytes (`None`: not known), of which `have` is there already.
    pub fn new(policy: Policy, size: Option<u64>, have: RangeSet) -> Self {
        Self {
            policy,
            size,
            claimed: have.clone(),
            have,
            segments: BTreeMap::new(),
            by_start: BTreeSet::new(),
            shared: BTreeSet::new(),
            pipes: BTreeMap::new(),
            readers: BTreeMap::new(),
            media_rate: None,
            segment: None,
            next_request: 0,
            last_assigned: 0,
        }
    }

    /// The media needs this rate (R_v): the scale of play times.
    pub fn set_media_rate(&mut self, rate: Rate) {
        self.media_rate = Some(rate);
    }

    /// Bytes are asked for so far ahead of a reader from now on.
    pub fn set_look_ahead(&mut self, look_ahead: Bytes) {
        self.policy.look_ahead = look_ahead;
    }

    /// The media ends here (it was not known, or a server without ranges said so by ending).
    pub fn set_size(&mut self, size: u64) {
        self.size = Some(size);
    }

    /// What is got now is the segment up to this byte, from where the one before ended: nothing behind it is left to
    /// get yet.
    pub fn begin_segment(&mut self, end: u64) {
        let start = self.segment.as_ref().map_or(0, |before| before.end);
        self.segment = Some(start..end);
    }

    /// Size of the segment that is got, or of all of the media where that is one; `None`: it is not known.
    pub fn segment_size(&self) -> Option<Bytes> {
        let segment = self.segment.as_ref().map(|segment| segment.end.saturating_sub(segment.start));
        segment.or(self.size).map(Bytes::new)
    }

    /// End of the media, if known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// What has been received.
    pub fn have(&self) -> &RangeSet {
        &self.have
    }

    /// Forgets received bytes that the driver no longer holds, so that they can be asked for again.
    pub fn forget(&mut self, range: Range<u64>) {
        self.have.remove(range.clone());
        self.claimed.remove(range);
        self.reclaim_outstanding();
    }

    /// Whether all of the media has been received.
    pub fn is_complete(&self) -> bool {
        self.size.is_some_and(|size| self.have.contains(&(0..size)))
    }

    /// SMS of the partition rule: everything below has been received (as a byte position).
    pub fn smallest_missing(&self) -> u64 {
        self.have.run_end(0)
    }

    /// LAS of the partition rule: nothing at or above was ever assigned (as a byte position).
    pub fn last_assigned(&self) -> u64 {
        self.last_assigned
    }

    /// How many segments are outstanding.
    pub fn outstanding(&self) -> usize {
        self.segments.len()
    }

    /// A connection can take requests from now on.
    pub fn add_connection(&mut self, connection: ConnectionId, rtt: Duration, now: Time) {
        let pipe = Pipe {
            members: 0,
            newest: 0,
            hole: None,
            queue: VecDeque::new(),
            asked: 0,
            arrived: 0,
            rate: Rate::ZERO,
            rtt,
            active: now,
            misses: 0,
            draining: false,
            spacing: Duration::ZERO,
            rests: false,
        };
        self.pipes.insert(connection, pipe);
    }

    /// A connection is gone: what it was asked for and has not delivered is unassigned again.
    pub fn remove_connection(&mut self, connection: ConnectionId) {
        let Some(pipe) = self.pipes.remove(&connection) else { return };
        for id in pipe.queue {
            self.release(id);
        }
    }

    /// The connection gets no new requests, except to repair what another one misses.
    pub fn drain(&mut self, connection: ConnectionId) {
        if let Some(pipe) = self.pipes.get_mut(&connection) {
            pipe.draining = true;
        }
    }

    /// The connection gets requests again.
    pub fn resume(&mut self, connection: ConnectionId) {
        if let Some(pipe) = self.pipes.get_mut(&connection) {
            pipe.draining = false;
        }
    }

    /// What the connection delivers, and its smoothed round-trip time.
    pub fn estimate(&mut self, connection: ConnectionId, rate: Rate, rtt: Duration) {
        if let Some(pipe) = self.pipes.get_mut(&connection) {
            pipe.rate = rate;
            pipe.rtt = rtt;
        }
    }

    /// Requests outstanding on a connection.
    pub fn queue_length(&self, connection: ConnectionId) -> usize {
        self.pipes.get(&connection).map_or(0, |pipe| pipe.queue.len())
    }

    /// The request that the connection is answering, and the first byte of it that has not arrived.
    pub fn answering(&self, connection: ConnectionId) -> Option<(RequestId, u64)> {
        let id = *self.pipes.get(&connection)?.queue.front()?;
        Some((id, self.segments.get(&id)?.next()))
    }

    /// Whether this connection kept missing and should be given up (section III.C, end).
    pub fn keeps_missing(&self, connection: ConnectionId) -> bool {
        let limit = self.policy.abandon_after;
        limit > 0 && self.pipes.get(&connection).is_some_and(|pipe| pipe.misses >= limit)
    }

    /// What the connection still carries, and how much of it is needed. Zero needed and much to carry: close
    /// it.
    pub fn carries(&self, connection: ConnectionId) -> (Bytes, Bytes) {
        let Some(pipe) = self.pipes.get(&connection) else { return (Bytes::ZERO, Bytes::ZERO) };
        let needed = pipe.queue.iter().filter_map(|id| self.segments.get(id)).map(|segment| {
            let missing = segment.missing.iter_within(segment.range.start..segment.needed_until);
            missing.flat_map(|missing| self.have.gaps(missing)).map(|gap| gap.end - gap.start).sum::<u64>()
        });
        (Bytes::new(pipe.asked.saturating_sub(pipe.arrived)), Bytes::new(needed.sum()))
    }

    /// The next request for a connection, if it can take one and there is something to ask for.
    pub fn next_request(&mut self, connection: ConnectionId, now: Time) -> Option<Request> {
        let pipe = self.pipes.get(&connection)?;
        // A reader that has got nothing yet does not wait until a request of another one is answered.
        let first = self.first_bytes_wanted().filter(|_| self.has_room_for_repair(pipe));
        if pipe.draining || !(first.is_some() || self.has_room(pipe, QueueEnd::Front)) {
            return None;
        }
        let Gap { range: gap, reader, why } = self.best_gap(connection, now)?;
        let priority = self.priority(pipe, gap.start);
        if !(first == Some(gap.start) || self.has_room(pipe, priority)) {
            return None;
        }
        let length = self.length_for(pipe, &gap, reader);
        Some(self.assign(connection, gap.start..gap.start + length, priority, why, now))
    }

    /// Asks the connection for everything, from a server that knows no ranges.
    pub fn request_whole(&mut self, connection: ConnectionId, now: Time) -> Option<Request> {
        self.pipes.get(&connection)?;
        let end = self.size.unwrap_or(u64::MAX);
        Some(self.assign(connection, 0..end, QueueEnd::Back, "the server knows no ranges", now))
    }

    /// Bytes have arrived as the answer to a request, in order from [`Coordinator::answering`]'s position.
    /// Bytes beyond the request are ignored.
    pub fn arrived(&mut self, request: RequestId, length: u64, now: Time) -> Arrival {
        let Some(segment) = self.segments.get_mut(&request) else { return Arrival::default() };
        let next = segment.next();
        let end = segment.range.end.min(next.saturating_add(length));
        let range = next..end;
        segment.missing.remove(range.clone());
        let complete = end == segment.range.end;
        let connection = segment.connection;
        if let Some(pipe) = self.pipes.get_mut(&connection) {
            pipe.arrived = pipe.arrived.saturating_add(range.end - range.start);
            pipe.active = now;
        }
        let fresh = self.have.insert(range.clone());
        // The bytes may have been forgotten, and so unclaimed, while they were on their way.
        self.claimed.insert(range.clone());
        if complete {
            self.retire(request);
        }
        Arrival { fresh, duplicate: (range.end - range.start) - fresh, complete }
    }

    /// The answer to a request ended before its last byte: the rest is unassigned again.
    pub fn cut_short(&mut self, request: RequestId) {
        let Some(segment) = self.segments.get(&request) else { return };
        let missing = segment.missing.total();
        if let Some(pipe) = self.pipes.get_mut(&segment.connection) {
            pipe.forget(request);
            pipe.arrived = pipe.arrived.saturating_add(missing);
        }
        self.release(request);
    }

    fn assign(
        &mut self,
        connection: ConnectionId,
        range: Range<u64>,
        priority: QueueEnd,
        why: &'static str,
        now: Time,
    ) -> Request {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let mut mark = 0;
        if let Some(pipe) = self.pipes.get_mut(&connection) {
            if pipe.queue.is_empty() {
                pipe.active = now;
            }
            pipe.asked = pipe.asked.saturating_add(range.end - range.start);
            mark = pipe.asked;
            pipe.queue.push_back(id);
        }
        self.claimed.insert(range.clone());
        self.last_assigned = self.last_assigned.max(range.end);
        self.by_start.insert((range.start, id));
        let mut missing = RangeSet::new();
        missing.insert(range.clone());
        let needed_until = range.end;
        self.segments.insert(id, Segment { connection, range: range.clone(), missing, needed_until, mark });
        Request { id, range, priority, why }
    }

    /// A segment that is complete leaves the table.
    fn retire(&mut self, request: RequestId) {
        let Some(segment) = self.segments.remove(&request) else { return };
        self.by_start.remove(&(segment.range.start, request));
        self.shared.remove(&request);
        if let Some(pipe) = self.pipes.get_mut(&segment.connection) {
            pipe.forget(request);
            if segment.needed_until == segment.range.end {
                // Nobody else had to bring any of it.
                pipe.misses = 0;
            }
        }
    }

    /// A segment that will not be completed leaves the table, and its missing bytes are unassigned again,
    /// except those that another connection was asked for too.
    fn release(&mut self, request: RequestId) {
        let Some(segment) = self.segments.remove(&request) else { return };
        self.by_start.remove(&(segment.range.start, request));
        self.shared.remove(&request);
        for rest in segment.missing.iter() {
            self.unclaim(&rest);
        }
    }

    /// `gone` is no longer assigned where it was: unassigned again are the bytes of it that are not there and
    /// that no other connection was asked for too.
    fn unclaim(&mut self, gone: &Range<u64>) {
        self.claimed.remove(gone.clone());
        for there in self.have.iter_within(gone.clone()) {
            self.claimed.insert(there);
        }
        // Those that share bytes with it still bring them, and are needed to their end again.
        for id in &self.shared {
            if let Some(other) = self.segments.get_mut(id)
                && other.range.end > gone.start
                && other.range.start < gone.end
            {
                other.missing.iter().for_each(|missing| {
                    self.claimed.insert(missing);
                });
                other.needed_until = other.range.end;
            }
        }
    }

    fn reclaim_outstanding(&mut self) {
        for segment in self.segments.values() {
            segment.missing.iter().for_each(|missing| {
                self.claimed.insert(missing);
            });
        }
    }

    /// When a connection will have delivered up to `mark`: the queue before it at the connection's rate, and
    /// if it has been silent for long, as long again.
    fn expected(&self, pipe: &Pipe, mark: u64, now: Time) -> Duration {
        let ahead = Bytes::new(mark.saturating_sub(pipe.arrived));
        let silent = now.since(pipe.active);
        let patience = pipe.rtt * 2 + Duration::from_millis(200);
        let stalled = if pipe.queue.is_empty() || silent < patience { Duration::ZERO } else { silent };
        stalled + self.rate_or_guess(pipe).time_for(ahead)
    }

    /// What a pipe delivers, or for a new one what the others do on average.
    fn rate_or_guess(&self, pipe: &Pipe) -> Rate {
        if !pipe.rate.is_zero() {
            return pipe.rate;
        }
        let known = self.pipes.values().filter(|other| !other.rate.is_zero());
        let (sum, count) =
            known.fold((0.0, 0.0), |(sum, count), other| (sum + other.rate.as_f64(), count + 1.0));
        if count > 0.0 { Rate::from_bps_f64(sum / count) } else { Rate::from_kbps(1000) }
    }
}

#[cfg(test)]
mod tests;
