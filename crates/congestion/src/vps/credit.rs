//! Who may send how much: the credit of each pool goes to the members that are owed most.

use std::collections::BTreeSet;

use anabranch_units::{Bytes, Duration, Time};

use super::group::Group;
use super::member::Member;
use super::names::{MemberId, PoolId, VirtualId};
use super::virtual_flow::VirtualFlow;

/// How often it is looked at how much the virtual flows count for.
const REVIEWED_EVERY: Duration = Duration::from_millis(100);

/// A member may send more than before: wake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub member: MemberId,
    /// How much more.
    pub bytes: Bytes,
}

impl Group {
    /// A member could send so much now, if it were allowed: data that waits, new or lost, within its receive
    /// window. What it was granted before and cannot use any more goes to the others.
    pub fn want(&mut self, id: MemberId, wanted: Bytes) {
        let Some(member) = self.members.get_mut(id) else { return };
        if member.wanted == wanted.get() && member.allowance <= member.wanted {
            return;
        }
        let Some(pool) = self.pools.get_mut(member.pool) else { return };
        member.wanted = wanted.get();
        let unused = member.allowance.saturating_sub(member.wanted);
        if unused > 0 {
            member.allowance -= unused;
            member.served = member.served.less(unused, member.weight);
            pool.reserved -= unused;
        }
        pool.queue(id, member);
        pool.note_changed(member.pool, &mut self.changed);
        self.tell_needs(id);
    }

    /// The same for a member that has something to send and does not say how much: as in slow start at most
    /// what it has in flight, and an initial window. Without a bound one that sends a packet would be granted
    /// every second one of the group's until it is heard of.
    pub fn want_more(&mut self, id: MemberId) {
        let bytes = self.in_flight(id) + self.start.initial_window;
        self.want(id, bytes);
    }

    /// Hands out all credit there is. Answers who may send more than before.
    pub fn allocate(&mut self, now: Time) -> Vec<Grant> {
        self.review(now);
        if self.changed.is_empty() {
            return Vec::new();
        }
        let mut grants: Vec<Grant> = Vec::new();
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        for name in changed.drain(..) {
            let Some(pool) = self.pools.get_mut(name) else { continue };
            pool.is_changed = false;
            while pool.free >= pool.reserved + self.segment
                && let Some(id) = pool.most_owed(name, &self.members)
            {
                let Some(member) = self.members.get_mut(id) else { break };
                let bytes = member.room().min(self.segment);
                pool.clock = pool.clock.max(member.served);
                pool.reserved += bytes;
                member.allowance += bytes;
                member.touched = now;
                member.served = member.served.more(bytes, member.weight);
                pool.queue(id, member);
                grants.push(Grant { member: id, bytes: Bytes::new(bytes) });
            }
            if pool.free >= pool.reserved + self.segment {
                pool.nobody_is_limited(name, &mut self.virtuals);
            }
            pool.tidy(name, &self.members, &self.virtuals);
        }
        // Nothing has changed meanwhile, and the list has room for next time.
        self.changed = changed;
        grants.sort_unstable_by_key(|grant| grant.member);
        grants.dedup_by(|next, grant| {
            let is_same = next.member == grant.member;
            if is_same {
                grant.bytes += next.bytes;
            }
            is_same
        });
        grants.iter().for_each(|grant| self.tell_needs(grant.member));
        grants
    }

    /// Takes back what was granted and not used for `after`: its owners have nothing to send, whatever they
    /// said they wanted. They get nothing until they [want](Self::want) again.
    pub fn reclaim(&mut self, now: Time, after: Duration) {
        let is_unused = |member: &Member| member.allowance > 0 && now.since(member.touched) >= after;
        let mut unused: Vec<_> =
            self.members.iter().filter(|(_, member)| is_unused(member)).map(|(id, _)| id).collect();
        unused.sort_unstable();
        for id in unused {
            self.want(id, Bytes::ZERO);
        }
    }

    /// Does something with a virtual flow, and keeps its pool's books. One that is gone is left alone.
    pub(super) fn with_flow(&mut self, id: VirtualId, act: impl FnOnce(&mut VirtualFlow)) {
        let Some(flow) = self.virtuals.get_mut(id) else { return };
        let before = flow.free();
        act(flow);
        flow.reckon();
        let (after, pool) = (flow.free(), flow.pool);
        if let Some(shared) = self.pools.get_mut(pool) {
            shared.set_ready(id, before, after);
            if after > before {
                shared.note_changed(pool, &mut self.changed);
            }
            if flow.is_limited && after > 0 {
                shared.note_limited(id, flow);
            }
            if shared.reserved > shared.free {
                self.settle(pool);
            }
        }
    }

    /// A member's place among those that wait, after its flight or its cap have changed.
    pub(super) fn requeue(&mut self, id: MemberId) {
        let Some(member) = self.members.get_mut(id) else { return };
        let Some(pool) = self.pools.get_mut(member.pool) else { return };
        pool.queue(id, member);
        pool.note_changed(member.pool, &mut self.changed);
        self.tell_needs(id);
    }

    /// What a member needs of its own flow has changed.
    pub(super) fn tell_needs(&mut self, id: MemberId) {
        let Some(member) = self.members.get(id) else { return };
        let (own, needs) = (member.own, member.needs(self.segment));
        if self.virtuals.get(own).is_none_or(|flow| flow.knows_needs(needs)) {
            return;
        }
        self.with_flow(own, |flow| flow.set_needs(needs));
    }

    /// How much the virtual flows count for, now and then: it changes slowly.
    fn review(&mut self, now: Time) {
        let since = self.reviewed.map_or(Duration::ZERO, |reviewed| now.since(reviewed));
        if self.reviewed.is_some() && since < REVIEWED_EVERY {
            return;
        }
        self.reviewed = Some(now);
        let (segment, initial) = (self.segment, self.start.initial_window.get());
        let mut counts = Vec::new();
        for (_, member) in self.members.iter_mut() {
            // At two looks in a row: one that waits for its turn with a packet now and then is not held back.
            let is_held_back = member.is_held_back(segment);
            if std::mem::replace(&mut member.was_held_back, is_held_back) && is_held_back {
                member.usage.used(now, since.min(REVIEWED_EVERY));
            }
            member.usage.begin(now);
            let counting = member.usage.counts(now);
            // Nothing is new of one that counts in full still.
            if counting < 1.0 || member.counted < 1.0 {
                counts.push((member.own, counting));
            }
            member.counted = counting;
        }
        counts.sort_unstable_by_key(|(own, _)| *own);
        for (own, counts) in counts {
            self.with_flow(own, |flow| flow.set_counts(counts, initial, now));
        }
    }

    /// Takes back grants that the windows do not cover any more, from those first who have had most.
    pub(super) fn settle(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(id) else { return };
        let mut changed = BTreeSet::new();
        while pool.reserved > pool.free {
            let Some(name) = pool.richest(id, &self.members) else { break };
            let Some(member) = self.members.get_mut(name) else { break };
            changed.insert(name);
            let back = member.allowance.min(pool.reserved - pool.free).min(self.segment);
            member.allowance -= back;
            member.served = member.served.less(back, member.weight);
            pool.reserved -= back;
            pool.queue(name, member);
            pool.note_changed(id, &mut self.changed);
        }
        changed.into_iter().for_each(|name| self.tell_needs(name));
    }
}
