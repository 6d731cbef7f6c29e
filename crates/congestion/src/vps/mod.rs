//! Virtual packet substitution: flows of one sender share what as many standard flows would get, by weights (K. H. Lau, J. Y. B. Lee,
//! "Sender-driven bandwidth differentiation for transmitting multimedia flows over TCP", MMCN 2006; its sections are cited).
//!
//! Each member of a group brings a *virtual flow* that runs a standard controller. Virtual flows send nothing: whatever their windows allow
//! is credit of the group, and each credit goes to the member whose weight is owed most (3.2). What a member sends is written down
//! as sent by a virtual flow (a packet substitution record, 3.3); when it is acknowledged, cumulatively or by a SACK block, or lost, that
//! virtual flow is told. So the group as a whole is as fair to others as its virtual flows are, whatever the weights inside.
//!
//! Events go in, small decisions come out: a driver says what a member [wants](Group::want), has [sent](Group::on_sent), what was
//! [acknowledged](Group::on_ack) and [lost](Group::on_loss), and [`Group::allocate`] answers which members may send how much now. Finding
//! losses and sending again is the driver's business. Nothing here knows a socket or a clock: the same group serves simulated TCP,
//! a QUIC server (whose acknowledgements name no packet: [`SentTimes`]) and a kernel's user space.
//!
//! Beyond the paper:
//! - A member gets only what it can use: no data, or a small receive window, leave the credit to the others; who comes back is owed
//!   nothing and owes nothing. The paper leaves this to future work.
//! - A virtual flow that its member uses little of counts for little (`usage.rs`); what a member needs itself it may
//!   always have of its own flow, and while it counts for less than all, that one stands for what it sends.
//! - A member whose timer ran out probes with one segment until it is heard of, so that a dead receiver does not drain the group.
//! - Members behind different bottlenecks must not share credit. The group watches the queueing delay of its members
//!   ([`bottleneck`]), and parts those whose delays move apart into *pools* of their own, and joins pools whose delays move together.
//! - A virtual flow loses when a packet that stands for one of its own was lost, once a window, as its controller's contract has it. It times
//!   out when a member's timer takes everything it had in flight. It has no timer of its own. A time-out is the event of one receiver, so
//!   it reduces as many flows as have windows for what was lost, and not all of which a packet was among it.

pub mod bottleneck;
mod member;
mod parting;
mod pool;
mod records;
mod sent_times;
#[cfg(test)]
mod tests;
mod virtual_flow;
mod weight;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anabranch_units::{Bytes, Duration, Time};

use crate::algorithm::Algorithm;
use crate::control::Start;
use bottleneck::Watch;
use member::Member;
pub use parting::Regrouped;
use pool::{Pool, PoolId};
pub use sent_times::SentTimes;
use virtual_flow::{VirtualFlow, VirtualId};
pub use weight::{Served, Weight};

/// How often it is looked at how much the virtual flows count for.
const REVIEWED_EVERY: Duration = Duration::from_millis(100);

/// A member's name in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(u64);

/// A member may send more than before: wake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub member: MemberId,
    /// How much more.
    pub bytes: Bytes,
}

/// An acknowledgement of some of what a member sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When it arrived.
    pub now: Time,
    /// The round trip that it measured.
    pub rtt: Option<Duration>,
    /// The member's smoothed round-trip time.
    pub srtt: Duration,
}

/// Flows of one sender that share what as many standard flows would get.
#[derive(Debug)]
pub struct Group {
    algorithm: Algorithm,
    start: Start,
    segment: u64,
    members: BTreeMap<MemberId, Member>,
    virtuals: BTreeMap<VirtualId, VirtualFlow>,
    pools: BTreeMap<PoolId, Pool>,
    watch: Option<Watch>,
    reviewed: Option<Time>,
    next_id: u64,
}

impl Group {
    /// A group without members, whose virtual flows run `algorithm` and begin as `start` says. All members share one bottleneck as
    /// long as the group does not [watch](Self::watching) it.
    pub fn new(algorithm: Algorithm, start: Start) -> Self {
        Self {
            algorithm,
            segment: start.segment.get().max(1),
            start,
            members: BTreeMap::new(),
            virtuals: BTreeMap::new(),
            pools: BTreeMap::new(),
            watch: None,
            reviewed: None,
            next_id: 0,
        }
    }

    /// The same, watching for members behind different bottlenecks.
    #[must_use]
    pub fn watching(self, settings: bottleneck::Settings) -> Self {
        Self { watch: Some(Watch::new(settings)), ..self }
    }

    /// A flow joins, with a virtual flow of its own that begins.
    pub fn join(&mut self, weight: Weight) -> MemberId {
        let number = self.next_id;
        self.next_id += 1;
        let (member, own) = (MemberId(number), VirtualId(number));
        // Until more is known it is where most are.
        let mut counts: BTreeMap<PoolId, usize> = BTreeMap::new();
        for member in self.members.values() {
            *counts.entry(member.pool).or_default() += 1;
        }
        let pool =
            counts.into_iter().max_by_key(|(_, count)| *count).map_or(PoolId(number), |(pool, _)| pool);
        let flow = VirtualFlow::new(pool, self.algorithm.controller(&self.start), self.segment);
        let shared = self.pools.entry(pool).or_default();
        shared.set_ready(own, 0, flow.free());
        self.virtuals.insert(own, flow);
        self.members.insert(member, Member::new(weight, pool, own, shared.clock));
        member
    }

    /// A flow leaves, and a virtual flow with it. What it had in flight counts no more.
    pub fn leave(&mut self, member: MemberId) {
        self.want(member, Bytes::ZERO);
        let Some(mut gone) = self.members.remove(&member) else { return };
        for record in gone.records.take_all() {
            self.with_flow(record.flow, |flow| flow.release(record.bytes()));
        }
        if let Some(flow) = self.virtuals.remove(&gone.own)
            && let Some(pool) = self.pools.get_mut(&flow.pool)
        {
            pool.set_ready(gone.own, flow.free(), 0);
        }
        if let Some(watch) = &mut self.watch {
            watch.forget(member);
        }
        self.settle(gone.pool);
        self.drop_empty_pools();
    }

    /// Members now.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.keys().copied()
    }

    /// A member's share counts for this much from now on.
    pub fn set_weight(&mut self, id: MemberId, weight: Weight) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let Some(pool) = self.pools.get_mut(&member.pool) else { return };
        pool.stand_back(id, member);
        member.served = member.served.reweighed(pool.clock, member.weight, weight);
        member.weight = weight;
        pool.queue(id, member);
    }

    /// A member could send so much now, if it were allowed: data that waits, new or lost, within its receive window. What it was granted
    /// before and cannot use any more goes to the others.
    pub fn want(&mut self, id: MemberId, wanted: Bytes) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let Some(pool) = self.pools.get_mut(&member.pool) else { return };
        pool.stand_back(id, member);
        member.wanted = wanted.get();
        let unused = member.allowance.saturating_sub(member.wanted);
        if unused > 0 {
            member.allowance -= unused;
            member.served = member.served.less(unused, member.weight);
            pool.reserved -= unused;
        }
        pool.queue(id, member);
        self.tell_needs(id);
    }

    /// The same for a member that has something to send and does not say how much: as in slow start at most what it has in flight, and an
    /// initial window. Without a bound one that sends a packet would be granted every second one of the group's until it is heard of.
    pub fn want_more(&mut self, id: MemberId) {
        let bytes = self.in_flight(id) + self.start.initial_window;
        self.want(id, bytes);
    }

    /// Hands out all credit there is. Answers who may send more than before.
    pub fn allocate(&mut self, now: Time) -> Vec<Grant> {
        self.review(now);
        let mut grants: BTreeMap<MemberId, u64> = BTreeMap::new();
        for pool in self.pools.values_mut() {
            while pool.free >= pool.reserved + self.segment
                && let Some((served, id)) = pool.waiting.pop_first()
            {
                let Some(member) = self.members.get_mut(&id) else { continue };
                let bytes = member.room().min(self.segment);
                pool.clock = pool.clock.max(served);
                pool.reserved += bytes;
                member.allowance += bytes;
                member.touched = now;
                member.served = served.more(bytes, member.weight);
                pool.queue(id, member);
                *grants.entry(id).or_default() += bytes;
            }
            // Flows that have credit left were not held back by their windows.
            let is_left = pool.free >= pool.reserved + self.segment;
            for (free, id) in &pool.ready {
                if is_left
                    && *free >= self.segment
                    && let Some(flow) = self.virtuals.get_mut(id)
                {
                    flow.is_limited = false;
                }
            }
        }
        grants.keys().for_each(|id| self.tell_needs(*id));
        grants.into_iter().map(|(member, bytes)| Grant { member, bytes: Bytes::new(bytes) }).collect()
    }

    /// What a member may send now.
    pub fn allowance(&self, member: MemberId) -> Bytes {
        Bytes::new(self.members.get(&member).map_or(0, |member| member.allowance))
    }

    /// What a member has in flight.
    pub fn in_flight(&self, member: MemberId) -> Bytes {
        Bytes::new(self.members.get(&member).map_or(0, |member| member.in_flight))
    }

    /// What a member may have in flight: what a congestion window is to a flow of its own.
    pub fn window(&self, member: MemberId) -> Bytes {
        self.allowance(member) + self.in_flight(member)
    }

    /// What counts of the windows of all virtual flows: what the group may have in flight.
    pub fn total_window(&self) -> Bytes {
        Bytes::new(self.virtuals.values().map(VirtualFlow::usable).sum())
    }

    /// How many members share credit with this one, itself not counted.
    pub fn companions(&self, member: MemberId) -> usize {
        let Some(pool) = self.members.get(&member).map(|member| member.pool) else { return 0 };
        self.members.values().filter(|other| other.pool == pool).count() - 1
    }

    /// A member has sent the bytes of a range of its own sequence. More than its allowance counts too.
    pub fn on_sent(&mut self, id: MemberId, range: Range<u64>, now: Time) {
        let bytes = range.end.saturating_sub(range.start);
        let Some(member) = self.members.get_mut(&id).filter(|_| bytes > 0) else { return };
        let Some(pool) = self.pools.get_mut(&member.pool) else { return };
        pool.stand_back(id, member);
        let granted = bytes.min(member.allowance);
        member.allowance -= granted;
        pool.reserved -= granted;
        member.served = member.served.more(bytes - granted, member.weight);
        member.wanted = member.wanted.saturating_sub(bytes);
        member.touched = now;
        member.in_flight += bytes;
        // What is sent together stands for one virtual flow as long as that has credit: a burst is dropped together as well.
        let may_send = |id: &VirtualId| {
            self.virtuals.get(id).is_some_and(|flow| flow.pool == member.pool && flow.free() >= self.segment)
        };
        let is_own = self.virtuals.get(&member.own).is_some_and(|flow| !flow.counts_in_full());
        let flow_id = Some(member.own).filter(|own| is_own && may_send(own)).unwrap_or_else(|| {
            let ready = || pool.ready.last().map(|(_, flow)| *flow);
            let shared = pool.sending.filter(may_send).or_else(ready).unwrap_or(member.own);
            pool.sending = Some(shared);
            shared
        });
        // What is sent again before its loss was told takes the place of the first one.
        let replaced = member.records.take(range.clone());
        member.in_flight -= replaced.iter().map(records::Record::bytes).sum::<u64>();
        for record in replaced {
            self.with_flow(record.flow, |flow| flow.release(record.bytes()));
        }
        let mut place = 0;
        self.with_flow(flow_id, |flow| place = flow.send(bytes));
        if let Some(member) = self.members.get_mut(&id) {
            member.records.add(range, flow_id, place);
        }
        self.requeue(id);
    }

    /// An acknowledgement of bytes of a member's sequence: the cumulative part and the SACK blocks. What is known already counts once.
    /// Where a receiver acknowledges every second segment, virtual flows hear as often.
    pub fn on_ack(&mut self, id: MemberId, ranges: &[Range<u64>], heard: &Heard) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let records: Vec<_> = ranges.iter().flat_map(|range| member.records.take(range.clone())).collect();
        let acked: u64 = records.iter().map(records::Record::bytes).sum();
        member.in_flight -= acked;
        if acked > 0 {
            member.cap = u64::MAX;
            let own = self.virtuals.get(&member.own).map_or(1, |flow| flow.cwnd().get().max(1));
            let span = heard.srtt.as_secs_f64() * acked as f64 / own as f64;
            member.usage.used(heard.now, Duration::from_secs_f64(span));
        }
        for record in records {
            self.with_flow(record.flow, |flow| flow.acknowledge(record.place, record.bytes(), acked, heard));
        }
        self.requeue(id);
        if let (Some(watch), Some(rtt)) = (&mut self.watch, heard.rtt) {
            watch.sample(id, heard.now, rtt);
        }
    }

    /// Bytes of a member's sequence were lost.
    pub fn on_loss(&mut self, id: MemberId, range: Range<u64>, now: Time) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let records = member.records.take(range);
        member.in_flight -= records.iter().map(records::Record::bytes).sum::<u64>();
        for record in records {
            self.with_flow(record.flow, |flow| flow.lose(record.place, record.bytes(), now));
        }
        self.requeue(id);
    }

    /// Bytes of a member's sequence are neither acknowledged nor lost, and in flight no more: what nobody acknowledges, such as QUIC's
    /// packets of mere acknowledgements.
    pub fn release(&mut self, id: MemberId, range: Range<u64>) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let records = member.records.take(range);
        member.in_flight -= records.iter().map(records::Record::bytes).sum::<u64>();
        for record in records {
            self.with_flow(record.flow, |flow| flow.release(record.bytes()));
        }
        self.requeue(id);
    }

    /// The same of the oldest bytes that a member has in flight: nothing will be heard of them, and the network has them no more.
    pub fn release_oldest(&mut self, id: MemberId, bytes: Bytes) {
        let oldest = self.members.get(&id).and_then(|member| member.records.oldest(bytes.get()));
        if let Some(range) = oldest {
            self.release(id, range);
        }
    }

    /// A member's retransmission timer ran out: everything it had in flight is lost.
    pub fn on_timeout(&mut self, id: MemberId, now: Time) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let records = member.records.take_all();
        member.in_flight = 0;
        member.cap = self.segment;
        let mut latest: BTreeMap<VirtualId, (u64, u64)> = BTreeMap::new();
        for record in records {
            let entry = latest.entry(record.flow).or_default();
            *entry = (entry.0.max(record.place), entry.1 + record.bytes());
        }
        // Those that stood for most of it lose, until their windows are as much as what is lost; from the others it is taken away.
        let mut left: u64 = latest.values().map(|(_, bytes)| bytes).sum();
        let mut latest: Vec<_> = latest.into_iter().collect();
        latest.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
        for (id, (place, bytes)) in latest {
            if left == 0 {
                self.with_flow(id, |flow| flow.release(bytes));
                continue;
            }
            left = left.saturating_sub(self.virtuals.get(&id).map_or(0, |flow| flow.cwnd().get()));
            self.with_flow(id, |flow| flow.time_out(place, bytes, now));
        }
        // What it was granted beyond its probe goes to the others.
        let wanted = self.members.get(&id).map_or(0, |member| member.wanted);
        self.want(id, Bytes::new(wanted.min(self.segment)));
        self.want(id, Bytes::new(wanted));
        self.requeue(id);
    }

    /// Takes back what was granted and not used for `after`: its owners have nothing to send, whatever they said they wanted. They
    /// get nothing until they [want](Self::want) again.
    pub fn reclaim(&mut self, now: Time, after: Duration) {
        let is_unused = |member: &Member| member.allowance > 0 && now.since(member.touched) >= after;
        let unused: Vec<_> =
            self.members.iter().filter(|(_, member)| is_unused(member)).map(|(id, _)| *id).collect();
        for id in unused {
            self.want(id, Bytes::ZERO);
        }
    }

    /// Does something with a virtual flow, and keeps its pool's books. One that is gone is left alone.
    fn with_flow(&mut self, id: VirtualId, act: impl FnOnce(&mut VirtualFlow)) {
        let Some(flow) = self.virtuals.get_mut(&id) else { return };
        let before = flow.free();
        act(flow);
        let (after, pool) = (flow.free(), flow.pool);
        if let Some(shared) = self.pools.get_mut(&pool) {
            shared.set_ready(id, before, after);
            if after < before {
                self.settle(pool);
            }
        }
    }

    /// A member's place among those that wait, after its flight or its cap have changed.
    fn requeue(&mut self, id: MemberId) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let Some(pool) = self.pools.get_mut(&member.pool) else { return };
        pool.stand_back(id, member);
        pool.queue(id, member);
        self.tell_needs(id);
    }

    /// What a member needs of its own flow has changed.
    fn tell_needs(&mut self, id: MemberId) {
        let Some(member) = self.members.get(&id) else { return };
        let (own, needs) = (member.own, member.needs(self.segment));
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
        let mut counts = Vec::with_capacity(self.members.len());
        for member in self.members.values_mut() {
            // At two looks in a row: one that waits for its turn with a packet now and then is not held back.
            let is_held_back = member.is_held_back(segment);
            if std::mem::replace(&mut member.was_held_back, is_held_back) && is_held_back {
                member.usage.used(now, since.min(REVIEWED_EVERY));
            }
            member.usage.begin(now);
            counts.push((member.own, member.usage.counts(now)));
        }
        for (own, counts) in counts {
            self.with_flow(own, |flow| flow.set_counts(counts, initial, now));
        }
    }

    /// Takes back grants that the windows do not cover any more, from those first who have had most.
    fn settle(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else { return };
        let mut changed = BTreeSet::new();
        while pool.reserved > pool.free {
            let rich =
                self.members.iter_mut().filter(|(_, member)| member.pool == id && member.allowance > 0);
            let Some((name, member)) = rich.max_by_key(|(_, member)| member.served) else { break };
            changed.insert(*name);
            let back = member.allowance.min(pool.reserved - pool.free).min(self.segment);
            pool.stand_back(*name, member);
            member.allowance -= back;
            member.served = member.served.less(back, member.weight);
            pool.reserved -= back;
            pool.queue(*name, member);
        }
        changed.into_iter().for_each(|name| self.tell_needs(name));
    }
}
