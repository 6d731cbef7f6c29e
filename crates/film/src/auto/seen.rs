//! What the controller has seen of the paths: rates, round trips, and whether a queue stands.

use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

use super::{Auto, LEAST_QUEUE, NO_QUEUE, ROOM_AFTER};
use crate::control::{ConnectionSample, Sample};

/// So many round trips a few changes of the number of connections need to show their effect.
const ROUND_TRIPS_OF_CHANGES: u64 = 40;
/// A shortfall of less of the wanted rate empties no buffer in a time that matters.
const NOTICEABLE: f64 = 0.05;
/// A rate that is so many times what it was a few round trips ago is on its way up.
const RISES: f64 = 1.25;
/// Those are four, and at most this long: where they take longer it is mostly a queue's doing.
const LONGEST_LOOK: Duration = Duration::from_secs(2);
/// What the paths have brought so lately they can bring.
const LATELY: Duration = Duration::from_secs(60);
/// Rates are averaged over this long at most.
const MEMORY: Duration = Duration::from_secs(8);

impl Auto {
    /// Mean throughput over the last `span`.
    pub(super) fn throughput(&self, span: Duration, now: Time) -> Rate {
        self.throughput_between(now - span, now)
    }

    /// Mean throughput of the intervals that ended after `from`, and not after `to`.
    pub(super) fn throughput_between(&self, from: Time, to: Time) -> Rate {
        let within = self.history.iter().filter(|(end, _, _)| *end > from && *end <= to);
        let (time, bytes) = within.fold((Duration::ZERO, Bytes::ZERO), |(time, sum), (_, length, bytes)| {
            (time + *length, sum + *bytes)
        });
        Rate::of(bytes, time)
    }

    /// Takes note of an interval.
    pub(super) fn remember(&mut self, sample: &Sample<'_>) {
        let weight = Ratio::from_f64((sample.elapsed.as_secs_f64() / 4.0).min(1.0));
        for connection in sample.connections {
            let rate = Rate::of(connection.delivered, sample.elapsed);
            let mean = self.yields.entry(connection.connection).or_insert(rate);
            *mean = *mean * weight.complement() + rate * weight;
            let shortest = self.shortest.entry(connection.path).or_insert(connection.srtt);
            *shortest = connection.srtt.min(*shortest);
        }
        let is_delayed = |connection: &ConnectionSample| {
            self.shortest
                .get(&connection.path)
                .is_some_and(|shortest| connection.srtt > *shortest + LEAST_QUEUE)
        };
        if sample.connections.iter().any(is_delayed) {
            self.delay_seen = Some(sample.now);
        }
        if !self.round_trips_within(NO_QUEUE, sample) {
            self.queue_seen = Some(sample.now);
        }
        self.history.push_back((sample.now, sample.elapsed, sample.delivered()));
        while self.history.front().is_some_and(|(end, _, _)| sample.now.since(*end) > MEMORY) {
            self.history.pop_front();
        }
    }

    /// Whether the buffer is below B-, or will be empty before a few changes have shown their effect.
    pub(super) fn is_hurried(&self, sample: &Sample<'_>) -> bool {
        let changes = sample.mean_rtt() * ROUND_TRIPS_OF_CHANGES;
        self.comes_late(sample)
            || sample.buffer.is_some_and(|buffer| {
                buffer < self.parameters.buffer.0 || self.lasts(sample, buffer) < changes
            })
    }

    /// Takes note of what has come over the last moments.
    pub(super) fn note_brought(&mut self, recent: Rate, now: Time) {
        let is_most = |(at, most): (Time, Rate)| recent >= most || now.since(at) > LATELY;
        if self.most_brought.is_none_or(is_most) {
            self.most_brought = Some((now, recent));
        }
    }

    /// Whether the paths have brought what is needed not long ago, so that it is others who have it where it is missed; of
    /// a film in segments alone.
    pub(super) fn has_lately_brought(&self, needed: Rate, now: Time) -> bool {
        let did = |(at, most): (Time, Rate)| most >= needed && now.since(at) <= LATELY;
        self.is_lasting && self.most_brought.is_some_and(did)
    }

    /// Whether a segment would have come when nothing is left to play, at the rate of the last moments: the less of it
    /// is there, the more of the buffer is gone until it can be played.
    pub(super) fn comes_late(&self, sample: &Sample<'_>) -> bool {
        let Some(buffer) = sample.buffer.filter(|_| self.is_lasting && !sample.left.is_zero()) else {
            return false;
        };
        let rate = self.recent(sample);
        !rate.is_zero() && rate.time_for(sample.left) > buffer
    }

    /// How long the buffer lasts at the rate of the last moments.
    fn lasts(&self, sample: &Sample<'_>, buffer: Duration) -> Duration {
        let Some(wanted) = sample.wanted else { return Duration::MAX };
        let missing = 1.0 - self.recent(sample).ratio_to(wanted);
        if missing < NOTICEABLE { Duration::MAX } else { buffer * Ratio::from_f64(1.0 / missing) }
    }

    /// Mean throughput over the last moments: over several round trips.
    pub(super) fn recent(&self, sample: &Sample<'_>) -> Rate {
        self.throughput(Duration::from_secs(1).max(sample.mean_rtt() * 4), sample.now)
    }

    /// Whether the rate rises as in slow start, and will be there soon if it goes on like that: then nothing is
    /// missed yet, and more connections would only meet the first ones at the top. A queue says that slow
    /// start is over; whose buffer is low cannot wait for what else may let the rate rise.
    pub(super) fn rises_to(&self, needed: Rate, sample: &Sample<'_>) -> bool {
        if self.is_hurried(sample) && !self.sees_no_queue(sample) {
            return false;
        }
        let span = (sample.mean_rtt() * 4).max(Duration::from_millis(500)).min(LONGEST_LOOK);
        let before = self.throughput_between(sample.now - span * 2, sample.now - span).as_f64();
        let last = self.throughput(span, sample.now).as_f64();
        let growth = last / before.max(1.0);
        growth > RISES && last * growth * growth >= needed.as_f64()
    }

    /// Whether no queue stands on any path: losses, and not its capacity, hold the connections back.
    pub(super) fn sees_no_queue(&self, sample: &Sample<'_>) -> bool {
        self.round_trips_within(Ratio::new(5, 4), sample)
    }

    /// Whether every path has room: nothing of a queue has stood on any for a while. Others fill queues and
    /// let them drain.
    pub(super) fn has_room(&self, sample: &Sample<'_>) -> bool {
        self.queue_seen.is_none_or(|seen| sample.now.since(seen) > ROOM_AFTER)
    }

    /// Whether every connection's round trip is within this multiple of the shortest on its path.
    fn round_trips_within(&self, multiple: Ratio, sample: &Sample<'_>) -> bool {
        sample.connections.iter().all(|connection| {
            let shortest = self.shortest.get(&connection.path).copied().unwrap_or(connection.srtt);
            connection.srtt <= shortest * multiple
        })
    }
}
