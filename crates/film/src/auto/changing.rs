//! Changes of the number of connections, each on trial until its effect has been measured.

use anabranch_units::{Duration, Rate, Ratio};

use super::Auto;
use super::trial::{FIRST_HELP, SHORT_REST, Silence, Trial};
use crate::control::{ConnectionId, Order, Sample, What};

/// A connection finds its rate within this time: up in slow start, and down again where that went too far.
/// Before, more of them would be credited with what it gains, or blamed for what it loses.
const FINDING_ITS_RATE: Duration = Duration::from_secs(6);
/// So many times as many connections as there are can come of one look at a low buffer.
const FASTEST_GROWTH: usize = 4;
/// A connection may be one too many when the receiver has held the rate back for so long,
const AMPLE: Duration = Duration::from_secs(3);
/// or when the rate was held for so long although the network held the connections back: a path that is full
/// with one of them is as full with several.
const HELD_LONG: Duration = Duration::from_secs(8);
/// In a silence a further connection is tried after so long at the longest.
const LONGEST_HELP: Duration = Duration::from_secs(8);

impl Auto {
    /// Judges a trial whose effect has had the time to show.
    pub(super) fn judge(&mut self, sample: &Sample<'_>, needed: Rate, orders: &mut Vec<Order>) {
        if self.trial.is_none() {
            return;
        }
        let throughput = match self.effect(sample) {
            Some(effect) => effect,
            None => {
                // Where more stay in any case nothing has to be waited for.
                let recent = self.recent(sample);
                let has_room = self.is_hurried(sample) && self.sees_no_queue(sample);
                if recent < needed && !has_room {
                    return;
                }
                recent
            }
        };
        let Some(trial) = self.trial.take() else { return };
        let now = sample.now;
        let longest = self.parameters.longest_rest;
        match trial {
            Trial::Added { before, count } => {
                let there = sample.connections.len();
                if there <= count || throughput >= needed {
                    // It was not possible to add, or the rate is held: nothing to undo.
                    self.target = self.target.min(there.max(count)).max(1);
                    return;
                }
                let added = as_f64(there - count) / as_f64(count.max(1));
                let expected = (before * Ratio::from_f64(added)).min(needed - before);
                if throughput >= before + expected * self.parameters.least_gain {
                    (self.grow.next, self.hurry.next) = (self.parameters.first_rest, SHORT_REST);
                    return;
                }
                let hurried = self.is_hurried(sample);
                if self.has_lately_brought(needed, now) {
                    // Others have it now, of whom each connection takes a part. What a second or two show in their midst
                    // varies by more than what one brings.
                    self.grow.until = now + SHORT_REST;
                    return;
                }
                if hurried && self.sees_no_queue(sample) {
                    // The others' fall from slow start hides what it brings, and there is room on the path.
                    return;
                }
                // Where nobody knows what is wanted nothing tells that it is missing, and what brought nothing goes.
                if hurried && (self.is_lasting || sample.wanted.is_some()) {
                    self.hurry.begin(now, longest);
                    self.grow.until = self.hurry.until;
                    if !self.is_lasting {
                        // Behind a long queue it takes many round trips to find a window, and the next one would
                        // have to find it again.
                        return;
                    }
                } else {
                    self.grow.begin(now, longest);
                }
                self.give_back(sample, there - count, "more connections brought no more", orders);
            }
            Trial::GaveBack { count } => {
                if throughput < needed {
                    self.shrink.begin(now, longest);
                    self.target += count;
                    self.fill(sample, "what was given back is missed", orders);
                }
            }
        }
    }

    /// Rule 3.
    pub(super) fn consider_growth(
        &mut self,
        sample: &Sample<'_>,
        recent: Rate,
        needed: Rate,
        orders: &mut Vec<Order>,
    ) {
        let now = sample.now;
        let count = sample.connections.len();
        let missed_for = self.missed_since.map_or(Duration::ZERO, |since| now.since(since));
        // A connection that was to be closed and goes on instead can make them one more than the most.
        if count == 0
            || count >= self.parameters.most
            || sample.connecting > 0
            || self.missed_since.is_none()
            || missed_for < self.patience(sample)
            || self.rises_to(needed, sample)
            || now < self.grow.until
            || self.target >= self.parameters.most
        {
            return;
        }
        let hurried = self.is_hurried(sample);
        if !hurried && now.since(self.newest) < FINDING_ITS_RATE {
            return;
        }
        // In proportion to the shortfall; a download without a player has time to double.
        let most = if hurried { FASTEST_GROWTH * count } else { 2 * count };
        let in_proportion =
            (count + 1..most).find(|more| recent.as_f64() * as_f64(*more) >= needed.as_f64() * as_f64(count));
        // With enough in the buffer there is time to add them one by one, and see.
        let plays_on = sample.buffer.is_some() && !hurried;
        let wanted = if plays_on { count + 1 } else { in_proportion.unwrap_or(most) };
        let fed = self.most_fed(sample, recent).unwrap_or(self.parameters.most);
        if fed <= count {
            return;
        }
        self.target = wanted.clamp(count + 1, fed);
        // A dip just now (BBR's probing of the RTT, a moment of cross traffic) must not pass for what these
        // bring alone; what they brought before others came must not either.
        let before = recent.max(self.throughput(missed_for.min(Duration::from_secs(3)), now));
        self.trial = Some(Trial::Added { before, count });
        self.fill(sample, "the needed rate is missed", orders);
    }

    /// Nothing comes at all, and the buffer is low: another connection need not wait for the retransmission
    /// timeouts of those that are there, which double with every one (RFC 6298, section 5.5), nor for an
    /// answer to a lost SYN. Answers whether it helps itself so.
    pub(super) fn helps_in_silence(&mut self, sample: &Sample<'_>, orders: &mut Vec<Order>) -> bool {
        if !sample.delivered().is_zero() {
            self.silence = Silence::since(sample.now);
            return false;
        }
        let silent = sample.now.since(self.silence.since);
        if silent < FIRST_HELP.max(sample.mean_rtt() * 4)
            || sample.now < self.silence.help.until
            || self.missed_since.is_none()
            || sample.connections.is_empty()
            || !self.is_hurried(sample)
        {
            return false;
        }
        self.silence.help.begin(sample.now, LONGEST_HELP);
        self.trial = None;
        let there = sample.connections.len() + sample.connecting;
        self.target = (there + 1).min(self.parameters.most);
        self.fill(sample, "nothing comes: a new connection need not wait for a timeout", orders);
        true
    }

    /// Rule 4.
    pub(super) fn consider_giving_back(
        &mut self,
        sample: &Sample<'_>,
        needed: Rate,
        orders: &mut Vec<Order>,
    ) {
        let now = sample.now;
        let ample_for = self.ample_since.map_or(Duration::ZERO, |since| now.since(since));
        let held_for = self.held_since.map_or(Duration::ZERO, |since| now.since(since));
        // A buffer that cannot be filled any further is no sign of want.
        let low = !sample.sated && sample.buffer.is_some_and(|buffer| buffer < self.parameters.buffer.0);
        // Where nothing is asked for and nothing has come for a while, nobody reads: what is not there is not
        // missed.
        let nobody_reads = sample.sated && self.throughput(AMPLE, now).is_zero();
        // Where nobody knows what is wanted, a player that takes nothing wants nothing.
        let is_known = sample.wanted.is_some() || (sample.sated && sample.buffer.is_some());
        if !is_known
            || low
            || sample.connections.len() < 2
            || sample.connecting > 0
            || self.trial.is_some()
            || (now < self.shrink.until && !nobody_reads)
            || (ample_for < AMPLE && held_for < HELD_LONG)
            || self.throughput(Duration::from_secs(3), now) < needed
        {
            return;
        }
        let part = if nobody_reads { 2 } else { 4 };
        let surplus = (sample.connections.len() / part).max(1);
        self.trial = Some(Trial::GaveBack { count: surplus });
        self.give_back(sample, surplus, "fewer may hold the rate", orders);
    }

    /// Closes the connections that deliver least.
    fn give_back(
        &mut self,
        sample: &Sample<'_>,
        how_many: usize,
        why: &'static str,
        orders: &mut Vec<Order>,
    ) {
        let mut by_yield: Vec<_> = sample
            .connections
            .iter()
            .map(|connection| (self.yields.get(&connection.connection).copied(), connection.connection))
            .collect();
        // Among equals the newest goes: the older ones have found their window.
        by_yield.sort_by_key(|(rate, ConnectionId(id))| (*rate, std::cmp::Reverse(*id)));
        for (_, connection) in by_yield.into_iter().take(how_many) {
            orders.push(Order { what: What::Close(connection), why });
        }
        self.target = sample.connections.len().saturating_sub(how_many).max(1);
        self.settles = sample.now + self.settling(sample);
        self.ample_since = None;
        self.missed_since = None;
    }
}

fn as_f64(count: usize) -> f64 {
    anabranch_units::Bytes::of(count).as_f64()
}
