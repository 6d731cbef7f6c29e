//! How much a connection is asked for at once, and when it is asked again.
//!
//! Each request costs the server a look-up, a line in its log and one of those that it allows, and wakes
//! both ends. While a reader waits, that is cheap: short requests divide the work in proportion to what
//! connections deliver, without any planning. While nobody waits, what a long one costs is bounded:
//!
//! - *The connection slows or fails.* What it has not brought comes from elsewhere (`late.rs`). A request
//!   takes at most a quarter of the play time before its first byte, so that it may become four times as slow
//!   before anybody notices, and another one of the same length still comes in time.
//! - *It is not wanted any more*, after a seek or as the connection is given back. Its connection is closed
//!   where the rest would take long ([`Coordinator::is_in_the_way`], [`Coordinator::outlasts`]). What was on
//!   its way is lost: no more than a receive window.
//!
//! The next request is sent when the rest of the last one is as short as a request of one who waits: no
//! round trip is idle between them, and nothing is tied up behind a long one.

use std::ops::Range;

use anabranch_units::{Bytes, Duration, Ratio, Time};

use super::Coordinator;
use super::group::MOST_REQUESTS;
use super::pipe::Pipe;
use super::policy::InFlight;
use super::reader::Reader;
use crate::control::ConnectionId;

/// Long requests begin at multiples of this: caches keep files in such pieces.
const ALIGNMENT: u64 = 1 << 20;
/// All connections together ask once in so long while nobody waits.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(2);

/// The only connection is asked for this part of what is left at once, or for so much where that is less.
const LEFT_TO_OTHERS: Ratio = Ratio::new(1, 8);
const ALONE_AT_FIRST: Bytes = Bytes::kib(128);

impl Coordinator {
    /// How many bytes a connection is asked for at once while a reader waits for them.
    pub(super) fn segment_length(&self, pipe: &Pipe) -> u64 {
        let (smallest, largest) = self.policy.segment_size;
        if pipe.rate.is_zero() {
            let others_bring = self.pipes.values().any(|other| !other.draining && !other.rate.is_zero());
            let first = if others_bring { self.policy.further_segment } else { self.policy.first_segment };
            let first = first * u64::from(pipe.members.max(1));
            return first.max(smallest).min(largest).get().max(1);
        }
        // A segment shorter than a round trip would leave the connection idle behind it.
        let time = self.policy.segment_time.max(pipe.rtt + pipe.rtt / 2).max(pipe.spacing);
        pipe.rate.amount_in(time).max(self.alone_length(pipe)).max(smallest).min(largest).get().max(1)
    }

    /// How much the only connection is asked for. Its rate may rise faster than it is measured; but should it fall,
    /// others are to find something that they can bring.
    fn alone_length(&self, pipe: &Pipe) -> Bytes {
        if !self.is_alone() {
            return Bytes::ZERO;
        }
        let rest = self.unassigned().unwrap_or(Bytes::ZERO);
        let most = (rest * LEFT_TO_OTHERS).max(ALONE_AT_FIRST);
        pipe.rate.amount_in(self.policy.alone_time).min(most)
    }

    fn is_alone(&self) -> bool {
        self.pipes.values().filter(|pipe| !pipe.draining).count() == 1
    }

    /// How many bytes from the start of `gap` a connection is asked for, for this reader.
    pub(super) fn length_for(&self, pipe: &Pipe, gap: &Range<u64>, reader: &Reader) -> u64 {
        let short = self.segment_length(pipe);
        let length = self.long_length(pipe, gap.start, reader).map_or(short, |long| long.max(short));
        let all = gap.end - gap.start;
        // What little is left would leave a round trip later, and nobody else is there to bring it.
        let is_rest = self.is_alone() && !self.policy.alone_time.is_zero() && all <= length + length / 2;
        if is_rest { all } else { length.min(all) }
    }

    /// The longest request while nobody waits.
    fn longest(&self) -> u64 {
        self.policy.segment_size.1.get().min(self.policy.look_ahead.get() / 4)
    }

    /// How far a reader's bytes may be asked for: `end`, or for long requests a little less, so that there
    /// is room for a whole one whenever there is any.
    pub(super) fn in_whole_requests(&self, end: u64) -> u64 {
        if self.policy.unhurried_from.is_none() {
            return end;
        }
        let longest = self.longest();
        let step = if longest > ALIGNMENT { longest - longest % ALIGNMENT } else { longest.max(1) };
        end - end % step
    }

    /// Whether every reader has so much before it that nothing that happens to a connection is felt soon.
    pub fn is_unhurried(&self) -> bool {
        let Some(unhurried) = self.policy.unhurried_from.filter(|_| self.media_rate.is_some()) else {
            return false;
        };
        self.readers.values().all(|reader| {
            let there = self.have.run_end(reader.position);
            there >= self.limit_of(reader) || self.play_time(reader, there) >= unhurried
        })
    }

    /// Whether requests may be long at all.
    pub fn may_be_unhurried(&self) -> bool {
        self.policy.unhurried_from.is_some()
    }

    /// How much can be asked for at once when nobody waits; `None`: somebody does.
    fn long_length(&self, pipe: &Pipe, start: u64, reader: &Reader) -> Option<u64> {
        let unhurried = self.policy.unhurried_from?;
        let buffered = self.play_time(reader, self.have.run_end(reader.position));
        if pipe.members > 0 || pipe.rate.is_zero() || self.media_rate.is_none() || buffered < unhurried {
            return None;
        }
        let most = pipe.rate.amount_in(self.play_time(reader, start) / 4).get().min(self.longest());
        let pipes = Bytes::of(self.pipes.values().filter(|pipe| !pipe.draining).count()).get().max(1);
        let wanted = pipe.rate.amount_in(BETWEEN_REQUESTS * pipes).get().max(ALIGNMENT).min(most);
        // Its end is where the next one begins.
        let end = start.saturating_add(wanted);
        let below = end - end % ALIGNMENT;
        if below >= start.saturating_add(wanted / 2) && below > start {
            return Some(below - start);
        }
        let above = below.saturating_add(ALIGNMENT);
        Some(if above - start <= most { above - start } else { wanted })
    }

    /// Whether a connection that has requests in flight is to get the next one.
    pub(super) fn runs_short(&self, pipe: &Pipe) -> bool {
        self.policy.unhurried_from.is_none()
            || pipe.rate.is_zero()
            || pipe.asked.saturating_sub(pipe.arrived) <= self.segment_length(pipe)
    }

    /// Whether a connection can be asked for more, as it has brought nearly all that it was asked for.
    pub fn can_be_asked(&self, connection: ConnectionId) -> bool {
        self.pipes.get(&connection).is_some_and(|pipe| pipe.members == 0 && self.has_room_behind(pipe))
    }

    /// Whether a connection can take one more request behind what it has.
    pub(super) fn has_room_behind(&self, pipe: &Pipe) -> bool {
        let has_room = self.is_below(pipe, self.policy.in_flight) || self.has_outgrown_requests(pipe);
        !pipe.rests && has_room && self.runs_short(pipe)
    }

    /// Whether the only connection brings so much more than when it was asked that all of its requests together are
    /// no longer than the next one: in slow start it would have nothing to do behind them.
    fn has_outgrown_requests(&self, pipe: &Pipe) -> bool {
        !self.policy.alone_time.is_zero()
            && !pipe.rate.is_zero()
            && pipe.queue.len() < MOST_REQUESTS
            && self.is_alone()
            && pipe.asked.saturating_sub(pipe.arrived) <= self.segment_length(pipe)
    }

    /// Whether less is in flight on a connection than there is to be.
    pub(super) fn is_below(&self, pipe: &Pipe, in_flight: InFlight) -> bool {
        let window = || pipe.rate.amount_in(pipe.rtt * 2).get();
        pipe.queue.len() < in_flight.least()
            || in_flight == InFlight::Windows
                && pipe.queue.len() < MOST_REQUESTS
                && pipe.asked.saturating_sub(pipe.arrived) < window()
    }

    /// A connection's server takes requests only so often: each is to last so long at least, and while it
    /// rests there is none.
    pub fn set_spacing(&mut self, connection: ConnectionId, spacing: Duration, rests: bool) {
        if let Some(pipe) = self.pipes.get_mut(&connection) {
            (pipe.spacing, pipe.rests) = (spacing, rests);
        }
    }

    /// Whether a connection that may have long requests brings what it was asked for only after so long.
    pub fn outlasts(&self, connection: ConnectionId, patience: Duration, now: Time) -> bool {
        let pipe = self.pipes.get(&connection).filter(|pipe| pipe.members == 0);
        self.policy.unhurried_from.is_some()
            && pipe.is_some_and(|pipe| self.expected(pipe, pipe.asked, now) > patience)
    }

    /// Whether a reader that has got nothing yet would have to wait for longer than `patience` until a
    /// connection has brought what nobody needs soon.
    pub fn is_in_the_way(&self, connection: ConnectionId, patience: Duration, now: Time) -> bool {
        let Some(unhurried) = self.policy.unhurried_from else { return false };
        let waits = |reader: &Reader| {
            reader.position == reader.began
                && reader.position < reader.end
                && self.have.run_end(reader.position) == reader.position
        };
        if !self.readers.values().any(waits) {
            return false;
        }
        let Some(pipe) = self.pipes.get(&connection).filter(|pipe| pipe.members == 0) else { return false };
        let segments = pipe.queue.iter().filter_map(|id| self.segments.get(id));
        let not_soon = segments.take_while(|segment| self.soonest(segment.next()) >= unhurried);
        not_soon.last().is_some_and(|last| self.expected(pipe, last.mark, now) > patience)
    }
}
