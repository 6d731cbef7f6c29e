//! The sender's clock, as its receiver has it: when a packet is handed on.
//!
//! That is a latency budget after it came into the sender, on the way as it is without a queue. The clocks of
//! the two ends are not the same, so the least time from leaving to arriving, as the two clocks have it,
//! stands for the way. What a queue adds to it is taken from the budget and does not extend it. Two things
//! do:
//!
//! - *Clocks drift.* Where the queue never drains that cannot be seen from arrivals alone. But a queue makes
//!   the round trip longer by as much as the way, and a clock does not: way less round trip is what only the
//!   clocks change, and the way back. The sender tells its round trip, which is a mean of what our reports
//!   bring; the same mean of the ways of the datagrams reported is what it is compared with.
//! - *A route becomes longer*, which [`Levels`] finds out.
//!
//! Each connection has a way of its own. The shortest of those that are in use counts.

use std::collections::BTreeMap;

use anabranch_protocol::live::wire::{Header, RateReport, expand, from_micros, low_bits, micros};
use anabranch_units::{Duration, Time};

use super::ConnectionId;
use super::levels::{Levels, signed};

/// A datagram whose way differs from what is known by so much more than the budget tells of a clock that
/// jumped.
const JUMP: Duration = Duration::from_secs(5);
/// A connection of which nothing was heard for so long does not count.
const IN_USE: Duration = Duration::from_secs(15);
/// A new value counts for so much in the sender's mean of round trips (RFC 5348, section 4.3: q is 0.9).
const MEAN: i64 = 10;
/// After so many reports the two means no longer differ by how they began. What the clocks change is averaged
/// over about as many, and followed from the first average on.
const REPORTS: i64 = 32;
/// Clocks that are disciplined drift by no more, in millionths. On a way back that becomes longer the
/// sender's clock seems to go slower: what a queue there adds is followed no faster than that.
const MOST_DRIFT: i64 = 200;

/// What is known of the sender's clock and of the ways of its connections. Times of the sender are in
/// microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderClock {
    /// The newest time at which a datagram left, as the sender tells it.
    newest: Option<u64>,
    /// What is added to the sender's times, so that they go on where its clock jumped: what waits keeps its
    /// turn.
    correction: i64,
    jumps: u64,
    ways: BTreeMap<ConnectionId, Way>,
    /// That of the shortest way in use; `None` before the first media.
    offset: Option<i64>,
}

/// The way of a connection. All values are differences of the receiver's and the sender's clock, but for
/// round trips.
#[derive(Clone, Debug, Default)]
struct Way {
    heard: Time,
    /// From leaving to arriving without a queue; `None` before the first media.
    offset: Option<i64>,
    levels: Levels,
    /// The sender's mean round trip, as it told it last.
    rtt: Option<i64>,
    /// The same mean of the way here, over all reports, and how many there were.
    mean: Option<i64>,
    reports: i64,
    /// What is left when the round trip is taken off: what the clocks change, and the way back; and when that
    /// was adjusted.
    clocks: Option<i64>,
    adjusted: Time,
}

impl Way {
    /// Media took so long by the two clocks, of which so much may be borne.
    fn media(&mut self, took: i64, borne: i64, now: Time) {
        let offset = self.offset.map_or(took, |offset| offset.min(took));
        self.offset = Some(offset);
        if let Some(longer) = self.levels.sample(took, offset, borne, now) {
            // What the clocks change is not known for this route, as the way back is another one too.
            let (rtt, mean, heard) = (self.rtt, self.mean, self.heard);
            *self = Self { offset: Some(longer), rtt, mean, heard, ..Self::default() };
        }
    }

    /// The sender is told of a datagram that took so long.
    fn reported(&mut self, took: i64, now: Time) {
        let before = self.mean.unwrap_or(took);
        self.mean = Some(before.saturating_add(took.saturating_sub(before) / MEAN));
        self.reports += 1;
        let (Some(rtt), Some(offset)) = (self.rtt, self.offset) else { return };
        // How many of these values are averaged.
        let values = self.reports - REPORTS;
        if values <= 0 {
            return;
        }
        // What the sender tells comes from the report before this one.
        let clocks = before.saturating_sub(rtt);
        let known = *self.clocks.get_or_insert(clocks);
        let elapsed = signed(now.since(std::mem::replace(&mut self.adjusted, now)).as_micros());
        let mut change = clocks.saturating_sub(known) / values.min(REPORTS);
        if values > REPORTS && change > 0 {
            self.offset = Some(offset.saturating_add(change));
        } else if values > REPORTS && self.levels.is_above(offset) {
            change = change.max(-(elapsed.saturating_mul(MOST_DRIFT) / 1_000_000));
            self.offset = Some(offset.saturating_add(change));
        }
        // Where the queue drains arrivals themselves show a clock that goes faster.
        self.clocks = Some(known.saturating_add(change));
    }
}

impl SenderClock {
    /// A datagram arrived that is not a replay; `has_media`: it is as long as media are. Packets are handed
    /// on after `latency`.
    pub(super) fn arrived(
        &mut self,
        id: ConnectionId,
        header: &Header,
        has_media: bool,
        latency: Duration,
        now: Time,
    ) {
        let told = expand(header.timestamp, self.newest.unwrap_or(header.timestamp.into()));
        let mut took = self.took(told, now);
        let known = self.ways.get(&id).and_then(|way| way.offset).or(self.offset);
        if let Some(known) = known.filter(|known| took.abs_diff(*known) > (latency + JUMP).as_micros()) {
            self.jumps += 1;
            self.correction = self.correction.saturating_add(took.saturating_sub(known));
            self.newest = Some(told);
            took = known;
        }
        self.newest = self.newest.max(Some(told));
        let way = self.ways.entry(id).or_default();
        way.heard = now;
        way.rtt = Some(i64::from(header.rtt)).filter(|rtt| *rtt > 0);
        if has_media {
            way.media(took, signed(latency.as_micros()), now);
        }
        let in_use = self.ways.values().filter(|way| now.since(way.heard) <= IN_USE);
        self.offset = in_use.filter_map(|way| way.offset).min().or(self.offset);
    }

    /// A report leaves on this connection.
    pub(super) fn reported(&mut self, id: ConnectionId, report: &RateReport, now: Time) {
        let Some(newest) = self.newest else { return };
        let took =
            self.took(expand(report.timestamp, newest), now).saturating_sub(signed(report.delay.as_micros()));
        if let Some(way) = self.ways.get_mut(&id) {
            way.reported(took, now);
        }
    }

    /// The connection is gone.
    pub(super) fn connection_down(&mut self, id: ConnectionId) {
        self.ways.remove(&id);
    }

    /// When what came into the sender at a time with these low bits left it, or might have left it: as the
    /// sender's clock goes now. What cannot be, as its clock jumped between, counts as just come.
    pub(super) fn came(&self, time: u32, left: Option<u32>, latency: Duration) -> i64 {
        let newest = self.newest.unwrap_or(0);
        let left = left.map_or(newest, |left| expand(left, newest));
        let age = u64::from(low_bits(left).wrapping_sub(time));
        let age = if age > (latency + JUMP).as_micros() { 0 } else { age };
        signed(left).saturating_add(self.correction).saturating_sub(signed(age))
    }

    /// By the receiver's clock: when what came into the sender then would be here without a queue.
    pub(super) fn here(&self, came: i64) -> Time {
        from_micros(u64::try_from(came.saturating_add(self.offset.unwrap_or(0))).unwrap_or(0))
    }

    /// How often the sender's clock jumped.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }

    fn took(&self, told: u64, now: Time) -> i64 {
        signed(micros(now)).saturating_sub(signed(told)).saturating_sub(self.correction)
    }
}

#[cfg(test)]
mod tests;
