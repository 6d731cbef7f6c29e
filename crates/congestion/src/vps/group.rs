//! The group: who is in it, and what each member may have in flight.

use anabranch_units::{Bytes, Time};

use super::bottleneck::Watch;
use super::member::Member;
use super::names::{MemberId, Place, PoolId, Vacant, VirtualId};
use super::pool::Pool;
use super::records::Record;
use super::seats::Seats;
use super::settings::{Begins, Settings};
use super::virtual_flow::VirtualFlow;
use super::weight::Weight;
use crate::algorithm::Algorithm;
use crate::control::Start;

/// Flows of one sender that share what as many standard flows would get.
#[derive(Debug)]
pub struct Group {
    pub(super) algorithm: Algorithm,
    pub(super) start: Start,
    pub(super) segment: u64,
    pub(super) members: Seats<MemberId, Member>,
    pub(super) virtuals: Seats<VirtualId, VirtualFlow>,
    pub(super) pools: Seats<PoolId, Pool>,
    /// Those in which there may be something to hand out.
    pub(super) changed: Vec<PoolId>,
    pub(super) watch: Option<Watch>,
    pub(super) reviewed: Option<Time>,
    pub(super) member_seats: Vacant,
    pub(super) pool_seats: Vacant,
    pub(super) next_number: u32,
    /// Records that are just taken out: none, between two calls.
    pub(super) taken: Vec<Record>,
}

impl Group {
    /// A group without members, whose virtual flows run `algorithm` and begin as `start` says. All members
    /// share one bottleneck as long as the group does not [watch](Self::watching) it.
    pub fn new(algorithm: Algorithm, start: Start) -> Self {
        Self {
            algorithm,
            segment: start.segment.get().max(1),
            start,
            members: Seats::default(),
            virtuals: Seats::default(),
            pools: Seats::default(),
            changed: Vec::new(),
            watch: None,
            reviewed: None,
            member_seats: Vacant::default(),
            pool_seats: Vacant::default(),
            next_number: 0,
            taken: Vec::new(),
        }
    }

    /// The same, watching for members behind different bottlenecks.
    #[must_use]
    pub fn watching(self, settings: Settings) -> Self {
        Self { watch: Some(Watch::new(settings)), ..self }
    }

    /// A flow joins, with a virtual flow of its own that begins. It shares with all others, or, where the
    /// group [watches](Self::watching), as [`Settings::begins`] says.
    pub fn join(&mut self, weight: Weight) -> MemberId {
        let is_alone = self.watch.as_ref().is_some_and(|watch| watch.begins() == Begins::Alone);
        // Until more is known it is where most are.
        let most = self.pools.iter().max_by_key(|(id, pool)| (pool.members, *id)).map(|(id, _)| id);
        self.join_pool(weight, most.filter(|_| !is_alone))
    }

    /// The same for one that is known to share a bottleneck with who is or was at this place, such as another
    /// connection of the same client. If nobody is there any more, it begins as others do.
    pub fn join_beside(&mut self, weight: Weight, place: Place) -> MemberId {
        if self.pools.get(place.0).is_some() {
            self.join_pool(weight, Some(place.0))
        } else {
            self.join(weight)
        }
    }

    fn join_pool(&mut self, weight: Weight, pool: Option<PoolId>) -> MemberId {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let name = self.member_seats.name(number);
        let (member, own) = (MemberId(name), VirtualId(name));
        let pool = pool.unwrap_or_else(|| self.begin_pool());
        let flow = VirtualFlow::new(pool, self.algorithm.controller(&self.start), self.segment);
        let Some(shared) = self.pools.get_mut(pool) else { return member };
        shared.members += 1;
        shared.set_ready(own, 0, flow.free());
        shared.note_changed(pool, &mut self.changed);
        let clock = shared.clock;
        self.virtuals.insert(own, flow);
        self.members.insert(member, Member::new(weight, pool, own, clock));
        member
    }

    /// A flow leaves, and a virtual flow with it. What it had in flight counts no more.
    pub fn leave(&mut self, member: MemberId) {
        self.want(member, Bytes::ZERO);
        let Some(mut gone) = self.members.remove(member) else { return };
        self.member_seats.leave(member);
        for record in gone.records.take_all() {
            self.with_flow(record.flow, |flow| flow.release(record.bytes()));
        }
        if let Some(mut flow) = self.virtuals.remove(gone.own)
            && let Some(pool) = self.pools.get_mut(flow.pool)
        {
            pool.let_go(gone.own, &mut flow);
        }
        if let Some(watch) = &mut self.watch {
            watch.forget(member);
        }
        self.settle(gone.pool);
        self.leave_pool(gone.pool);
    }

    /// Members now, in no order.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.iter().map(|(id, _)| id)
    }

    /// A member's share counts for this much from now on.
    pub fn set_weight(&mut self, id: MemberId, weight: Weight) {
        let Some(member) = self.members.get_mut(id) else { return };
        let Some(pool) = self.pools.get_mut(member.pool) else { return };
        member.served = member.served.reweighed(pool.clock, member.weight, weight);
        member.weight = weight;
        pool.queue(id, member);
        pool.note_changed(member.pool, &mut self.changed);
    }

    /// What a member may send now.
    pub fn allowance(&self, member: MemberId) -> Bytes {
        Bytes::new(self.members.get(member).map_or(0, |member| member.allowance))
    }

    /// What a member has in flight.
    pub fn in_flight(&self, member: MemberId) -> Bytes {
        Bytes::new(self.members.get(member).map_or(0, |member| member.in_flight))
    }

    /// What a member may have in flight: what a congestion window is to a flow of its own.
    pub fn window(&self, member: MemberId) -> Bytes {
        self.allowance(member) + self.in_flight(member)
    }

    /// What counts of the windows of all virtual flows: what the group may have in flight.
    pub fn total_window(&self) -> Bytes {
        Bytes::new(self.virtuals.iter().map(|(_, flow)| flow.usable()).sum())
    }

    /// How many members share credit with this one, itself not counted.
    pub fn companions(&self, member: MemberId) -> usize {
        let pool = self.members.get(member).and_then(|member| self.pools.get(member.pool));
        pool.map_or(0, |pool| pool.members.saturating_sub(1))
    }

    /// Where a member is, for one that [joins beside](Self::join_beside) it.
    pub fn place(&self, member: MemberId) -> Option<Place> {
        self.members.get(member).map(|member| Place(member.pool))
    }
}
