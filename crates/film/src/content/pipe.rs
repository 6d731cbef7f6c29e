//! What is outstanding: segments, and the pipes that bring them.

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Duration, Rate, Time};

use super::request::RequestId;
use crate::control::ConnectionId;

/// An outstanding segment.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) connection: ConnectionId,
    pub(super) range: Range<u64>,
    /// What has not arrived: from a connection the tail, from a stripe group any part.
    pub(super) missing: RangeSet,
    /// From here on another connection was asked as well.
    pub(super) needed_until: u64,
    /// What the connection will have delivered in all when the segment is complete.
    pub(super) mark: u64,
}

impl Segment {
    /// The first byte that has not arrived.
    pub(super) fn next(&self) -> u64 {
        self.missing.iter().next().map_or(self.range.end, |first| first.start)
    }

    /// The first run of bytes at or after `from` and below `limit` that it is still needed for.
    pub(super) fn needed(&self, have: &RangeSet, from: u64, limit: u64) -> Option<Range<u64>> {
        let limit = limit.min(self.needed_until);
        self.missing
            .iter_within(from.min(limit)..limit)
            .find_map(|missing| have.first_gap(missing.start, missing.end))
    }

    /// What another connection can be asked for from `start` on: what is missing there in one piece.
    pub(super) fn rest(&self, start: u64) -> Range<u64> {
        start..self.missing.run_end(start).min(self.needed_until)
    }
}

/// A connection as the coordinator sees it: a queue of requests that is answered in order. Or a stripe group:
/// a queue whose bytes come over any of its connections, nearly in order.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    /// Connections of a stripe group; 0: a connection that is asked for ranges.
    pub(super) members: u32,
    /// End of the block that a stripe group brought last.
    pub(super) newest: u64,
    pub(super) hole: Option<Hole>,
    pub(super) queue: VecDeque<RequestId>,
    pub(super) asked: u64,
    pub(super) arrived: u64,
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    /// Last arrival, or when the first request of an empty queue was made.
    pub(super) active: Time,
    pub(super) misses: u32,
    /// Gets no new requests: it is to be closed when its queue is empty.
    pub(super) draining: bool,
    /// A request is to last so long at least, as its server takes them no more often.
    pub(super) spacing: Duration,
    /// Its server takes no request yet.
    pub(super) rests: bool,
}

impl Pipe {
    /// Takes a request out of the queue: nearly always the first, since answers come in order.
    pub(super) fn forget(&mut self, request: RequestId) {
        if self.queue.front() == Some(&request) {
            self.queue.pop_front();
        } else {
            self.queue.retain(|id| *id != request);
        }
    }
}

/// The first hole of a group that a reader waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    pub(super) start: u64,
    /// Since when it is the first.
    pub(super) since: Time,
    /// Where the group was at that time: every hole before is as old.
    pub(super) newest: u64,
}
