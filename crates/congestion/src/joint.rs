//! Several connections under one joint window, split by weights: a weighted group where no credit can pass
//! from one socket to another, as in a kernel. [`vps`](crate::vps) is the exact form, packet by packet; this
//! one only ever answers how large a member's window is, when that member hears something.
//!
//! - Each member brings a *virtual flow* with the standard window control (RFC 5681). Together their windows
//!   are the joint window W. What any member has delivered counts for all of them, each by its part of W, so
//!   that W grows as that many plain flows would.
//! - A lost packet is one of the virtual flows' in turn, each as often as its window is large. That flow
//!   halves, once a round trip. So a burst that one large member loses counts as if plain flows had lost it;
//!   in MulTCP it would count once. Of a member that uses less than half of its part and of its own flow's
//!   window all lost packets are that flow's: the burst with which one comes back from a rest is no business
//!   of the others'. Nor do others lose in the turn of a flow of which its member uses little: that one's turn is
//!   theirs whose packet it is.
//! - W is split so that rates stand as the weights: a member's part is as its weight times its round-trip
//!   time. For a virtual flow the round trip is then the weighted mean of the members'.
//! - A member that cannot use its part leaves the rest of it to the others (max-min by weight). One that
//!   begins, comes back from silence, or had a time-out, is *capped*: it comes to its part as slow start
//!   would, and until then the others have it. So is one whose part more than doubles at once.
//! - Where nobody is held back by W, W does not grow.
//! - A virtual flow that its member uses little of counts for little in W (`flow_use.rs`), and does not grow.
//!   What its member needs itself counts, and it may always have its own flow's window up to the initial one:
//!   as a plain flow it could send as much.
//! - A loss of what was sent before a flow was halved does not halve it again, whichever member sees it and
//!   however late. A time-out is the event of one receiver: it halves as many flows as have windows for what
//!   was lost, and not one for each packet.
//!
//! With one member this is Reno. What differs from VPS: a member hears of its new part with its own next
//! acknowledgement and no sooner, and which virtual flow a packet belongs to is reckoned, not recorded.

mod member;

use anabranch_units::{Duration, Time};

use crate::flow_use::FlowUse;
use crate::vps::Weight;
use member::Member;
pub use member::MemberReport;

/// As many members as a group has at most: each event looks at all of them.
pub const MOST_MEMBERS: usize = 32;

/// Of the packets that are lost at once no more count: by then every flow of any size has lost.
const MOST_LOST: u32 = 32;
/// Turns that differ by less are alike: the first place goes first.
const ALIKE: f64 = 1.0 / 1024.0;
/// Least threshold (RFC 5681, equation 4), packets.
const LEAST_THRESHOLD: f64 = 2.0;

/// A group. Members have places, from 0 to [`MOST_MEMBERS`].
#[derive(Clone, Debug)]
pub struct JointWindow {
    initial: f64,
    members: Vec<Option<Member>>,
    /// Packets delivered until now.
    delivered: f64,
    /// Packets for each of a member's [measure](Member::measure).
    level: f64,
    /// Whether the joint window is what holds members back.
    is_full: bool,
}

impl JointWindow {
    /// A group without members. `initial_window`: of each virtual flow, packets, at least one.
    pub fn new(initial_window: u32) -> Self {
        let initial = f64::from(initial_window.max(1));
        Self { initial, members: vec![None; MOST_MEMBERS], delivered: 1.0, level: 0.0, is_full: false }
    }

    /// A connection joins. Answers its place; `None` when the group is full.
    pub fn join(&mut self, weight: Weight, now: Time) -> Option<usize> {
        self.join_with(weight, self.initial, f64::INFINITY, now)
    }

    /// A connection that was on its own joins, with the window and threshold that it has, packets: so
    /// everybody together sends what they sent before. Answers its place; `None` when the group is full.
    pub fn join_late(&mut self, weight: Weight, cwnd: u32, ssthresh: u32, now: Time) -> Option<usize> {
        self.join_with(weight, f64::from(cwnd), f64::from(ssthresh), now)
    }

    fn join_with(&mut self, weight: Weight, cwnd: f64, ssthresh: f64, now: Time) -> Option<usize> {
        let place = self.members.iter().position(Option::is_none)?;
        self.members[place] = Some(Member {
            weight,
            seen: now,
            srtt: Duration::ZERO,
            used: 0.0,
            is_limited: true,
            cap: cwnd,
            cwnd,
            ssthresh,
            recovered_at: 0.0,
            reduced: Time::ZERO,
            usage: FlowUse::begun(now),
            turn: 0.0,
        });
        self.settle(place, now);
        Some(place)
    }

    /// A connection ends, and its virtual flow with it. A place without a member is left alone, here and
    /// below.
    pub fn leave(&mut self, place: usize, now: Time) {
        if let Some(member) = self.members.get_mut(place) {
            *member = None;
        }
        self.settle(place, now);
    }

    /// A member's part counts for this much from its next event on.
    pub fn set_weight(&mut self, place: usize, weight: Weight) {
        if let Some(Some(member)) = self.members.get_mut(place) {
            member.weight = weight;
        }
    }

    /// A member hears something.
    pub fn heard(&mut self, place: usize, heard: &MemberReport) {
        let Some(Some(member)) = self.members.get_mut(place) else { return };
        let delivered = f64::from(heard.delivered);
        if member.is_silent(heard.now) {
            member.cap = member.cap.min(self.initial);
        }
        // Of which next to nothing counts, that one begins again with the initial window (RFC 5681, section
        // 4.1).
        if member.usable(heard.now) < self.initial {
            member.cwnd = member.cwnd.min(self.initial);
        }
        // What is lost was sent by then: a round trip ago, or before the member was heard of for the last
        // time.
        let sent = if heard.has_timed_out { member.seen } else { heard.now - heard.srtt };
        let span = if heard.is_limited {
            heard.now.since(member.seen).min(heard.srtt)
        } else {
            Duration::from_secs_f64(heard.srtt.as_secs_f64() * delivered / member.cwnd.max(1.0))
        };
        member.usage.used(heard.now, span);
        member.seen = heard.now;
        member.srtt = heard.srtt;
        member.used = f64::from(heard.used);
        member.is_limited = heard.is_limited;
        member.cap += delivered;
        if !heard.is_limited {
            member.cap = member.cap.min((2.0 * member.used).max(self.initial));
        }
        self.delivered += delivered;
        self.settle(place, heard.now);
        let total = self.total(heard.now);
        // It comes back from a rest, or always sends little.
        let is_own = self.members[place].as_ref().is_some_and(|member| {
            2.0 * member.used < member.cwnd.min(self.part(member, total)) || !member.counts_in_full(heard.now)
        });
        if self.is_full {
            self.grow(delivered, heard.now);
        }
        if heard.has_timed_out
            && let Some(Some(member)) = self.members.get_mut(place)
        {
            member.cap = 1.0;
            member.used = 0.0;
        }
        if heard.lost > 0 {
            self.lose(place, is_own, sent, heard);
        }
        self.settle(place, heard.now);
    }

    /// The joint window, packets.
    pub fn total(&self, now: Time) -> f64 {
        self.members.iter().flatten().map(|member| member.usable(now)).sum()
    }

    /// A member's window, packets: whole ones, at least one.
    pub fn window(&self, place: usize, now: Time) -> u32 {
        let Some(Some(member)) = self.members.get(place) else { return 1 };
        let own = if member.counts_in_full(now) { 0.0 } else { member.cwnd.min(self.initial) };
        let part = member.cap.min(self.part(member, self.total(now)).max(own));
        (part + 0.5).max(1.0) as u32
    }

    /// Whether a virtual flow is still in slow start.
    pub fn is_in_slow_start(&self, now: Time) -> bool {
        self.counted(now).any(|member| member.cwnd < member.ssthresh)
    }

    fn counted(&self, now: Time) -> impl Iterator<Item = &Member> {
        self.members.iter().flatten().filter(move |member| member.usable(now) > 0.0)
    }

    /// What a member's part is at the level, at most all.
    fn part(&self, member: &Member, total: f64) -> f64 {
        (self.level * member.measure()).min(total)
    }

    /// Finds the level at which the parts of those who can use them, and what the others use, are the joint
    /// window. One step from the level that was: from below it never overshoots, so that a few events bring
    /// it there. Where all use less than their parts, each could have what is left.
    fn settle(&mut self, place: usize, now: Time) {
        let total = self.total(now);
        let (mut claimed, mut open, mut all, mut most) = (0.0, 0.0, 0.0, 0.0_f64);
        for member in self.members.iter().flatten().filter(|member| !member.is_silent(now)) {
            let (claim, measure) = (member.claim(), member.measure());
            all += measure;
            if claim < self.part(member, total) {
                claimed += claim;
                most = most.max(claim / measure);
            } else {
                open += measure;
            }
        }
        self.is_full = open > 0.0 || claimed >= total;
        let level = if open > 0.0 { (total - claimed) / open } else { most + (total - claimed) / all };
        self.level = if all > 0.0 { level.max(total / all) } else { 0.0 };
        // A part that grows at once, because others go, is come to as in slow start as well.
        if let Some(Some(member)) = self.members.get(place) {
            let most = 2.0 * self.part(member, total);
            if let Some(Some(member)) = self.members.get_mut(place) {
                member.cap = member.cap.min(most);
            }
        }
    }

    /// What was delivered counts for every virtual flow by its part of the joint window.
    fn grow(&mut self, delivered: f64, now: Time) {
        let total = self.total(now).max(1.0);
        let reached = self.delivered;
        for member in self.members.iter_mut().flatten() {
            let beyond = delivered.min(reached - member.recovered_at);
            if beyond > 0.0 && member.usable(now) >= member.cwnd {
                let each = if member.cwnd < member.ssthresh { member.cwnd } else { 1.0 };
                member.cwnd += beyond * each / total;
            }
        }
    }

    /// A member lost packets that were sent by `sent`: all are its own virtual flow's, or else each is the
    /// next one's in turn.
    fn lose(&mut self, place: usize, is_own: bool, sent: Time, heard: &MemberReport) {
        let now = heard.now;
        let total = self.total(now).max(1.0);
        let in_flight: f64 = self
            .members
            .iter()
            .flatten()
            .filter(|member| !member.is_silent(now))
            .map(|member| member.used)
            .sum();
        let counted = self.counted(now).count() as f64;
        // What was in flight until now besides what is.
        let gone = if heard.has_timed_out { f64::from(heard.used) } else { 0.0 };
        // A window that is full is the flight and a part of a packet more (as in `multcp`).
        let full = ((in_flight + gone + counted) / total).min(1.0);
        let mut left = f64::from(heard.lost);
        for _ in 0..MOST_LOST {
            if left <= 0.0 {
                return;
            }
            let mut whose = if is_own { Some(place) } else { self.next_in_turn(total, now) };
            // Who lends most of its flow away loses nothing by what others do with that.
            let lends =
                |whose: usize| self.members[whose].as_ref().is_some_and(|member| !member.counts_in_full(now));
            if whose.is_some_and(lends) {
                whose = Some(place);
            }
            let Some(Some(member)) = whose.and_then(|whose| self.members.get_mut(whose)) else { return };
            left -= if heard.has_timed_out { member.cwnd } else { 1.0 };
            if self.delivered > member.recovered_at && sent >= member.reduced {
                member.ssthresh = (member.cwnd * full / 2.0).max(LEAST_THRESHOLD);
                member.cwnd = member.ssthresh;
                // What is in flight now was sent before.
                member.recovered_at = self.delivered + in_flight;
                member.reduced = now;
            }
        }
    }

    /// Whose virtual flow the next lost packet is.
    fn next_in_turn(&mut self, total: f64, now: Time) -> Option<usize> {
        let mut whose: Option<(usize, f64)> = None;
        for (place, member) in self.members.iter_mut().enumerate() {
            let Some(member) = member.as_mut().filter(|member| member.usable(now) > 0.0) else { continue };
            member.turn += member.usable(now) / total;
            if whose.is_none_or(|(_, most)| member.turn > most + ALIKE) {
                whose = Some((place, member.turn));
            }
        }
        let (place, _) = whose?;
        if let Some(Some(member)) = self.members.get_mut(place) {
            member.turn -= 1.0;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests;
