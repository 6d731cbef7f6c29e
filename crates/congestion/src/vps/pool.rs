//! Members behind one bottleneck, and the credit that they share.

use std::cmp::Reverse;

use super::member::Member;
use super::names::{MemberId, PoolId, VirtualId};
use super::order::Order;
use super::seats::Seats;
use super::virtual_flow::VirtualFlow;
use super::weight::Served;

/// The books of a pool, in bytes.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// How many members are in it.
    pub members: usize,
    /// What the virtual flows' windows leave free.
    pub free: u64,
    /// What of it was granted and not sent yet.
    pub reserved: u64,
    /// Members that could use more, the one first that is owed most.
    waiting: Order<Reverse<(Served, MemberId)>>,
    /// Members with credit that they have not used, the one last that has had most.
    rich: Order<(Served, MemberId)>,
    /// Virtual flows by what their windows leave free.
    ready: Order<(u64, VirtualId)>,
    /// Whether it is among those in which there may be something to hand out.
    pub is_changed: bool,
    /// Ready virtual flows that were held back by their windows when they sent last, and some that are so no
    /// more.
    limited: Vec<VirtualId>,
    /// The virtual flow that what was sent last stands for.
    pub sending: Option<VirtualId>,
    /// What the member was served that was granted last: where one begins that comes back.
    pub clock: Served,
}

impl Pool {
    /// There may be something to hand out in it: its name is put into a list, once.
    pub(super) fn note_changed(&mut self, id: PoolId, changed: &mut Vec<PoolId>) {
        if !std::mem::replace(&mut self.is_changed, true) {
            changed.push(id);
        }
    }

    /// A member may have something that could be taken back.
    pub(super) fn note_rich(&mut self, id: MemberId, member: &mut Member) {
        let place = (member.allowance > 0).then_some(member.served);
        if member.rich_at != place {
            let before = std::mem::replace(&mut member.rich_at, place);
            self.rich.change(before.map(|served| (served, id)), place.map(|served| (served, id)));
        }
    }

    /// A member has changed. Who could use no more credit for a time and now can is owed nothing for that
    /// time: it did not wait.
    pub(super) fn queue(&mut self, id: MemberId, member: &mut Member) {
        let waited = member.is_waiting;
        member.is_waiting = member.room() > 0;
        if member.is_waiting && !waited {
            member.served = member.served.max(self.clock);
        }
        let place = member.is_waiting.then_some(member.served);
        if member.waits_at != place {
            let before = std::mem::replace(&mut member.waits_at, place);
            let named = |served| Reverse((served, id));
            self.waiting.change(before.map(named), place.map(named));
        }
        self.note_rich(id, member);
    }

    /// How many members wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How much lies in its lists.
    #[cfg(test)]
    pub(super) fn lying(&self) -> usize {
        self.waiting.lying() + self.rich.lying() + self.ready.lying() + self.limited.len()
    }

    /// The member that waits and is owed most, in the pool of this name.
    pub(super) fn most_owed(&mut self, pool: PoolId, members: &Seats<MemberId, Member>) -> Option<MemberId> {
        let is_so = |Reverse((served, id)): Reverse<(Served, MemberId)>| {
            members.get(id).is_some_and(|member| member.pool == pool && member.waits_at == Some(served))
        };
        self.waiting.tidy(is_so);
        self.waiting.greatest(is_so).map(|Reverse((_, id))| id)
    }

    /// The member that has had most of those that have unused credit.
    pub(super) fn richest(&mut self, pool: PoolId, members: &Seats<MemberId, Member>) -> Option<MemberId> {
        self.rich.greatest(is_rich(pool, members)).map(|(_, id)| id)
    }

    /// A virtual flow's window leaves `after` free instead of `before`.
    pub(super) fn set_ready(&mut self, flow: VirtualId, before: u64, after: u64) {
        if before == after {
            return;
        }
        let named = |free| (free > 0).then_some((free, flow));
        self.ready.change(named(before), named(after));
        self.free = self.free - before + after;
    }

    /// The virtual flow whose window leaves most free.
    pub(super) fn readiest(
        &mut self,
        pool: PoolId,
        virtuals: &Seats<VirtualId, VirtualFlow>,
    ) -> Option<VirtualId> {
        self.ready.greatest(is_ready(pool, virtuals)).map(|(_, flow)| flow)
    }

    /// Lets go of what is no longer so in its lists, where that has become much.
    pub(super) fn tidy(
        &mut self,
        pool: PoolId,
        members: &Seats<MemberId, Member>,
        virtuals: &Seats<VirtualId, VirtualFlow>,
    ) {
        self.rich.tidy(is_rich(pool, members));
        self.ready.tidy(is_ready(pool, virtuals));
    }

    /// A virtual flow is ready though it was held back when it sent last.
    pub(super) fn note_limited(&mut self, id: VirtualId, flow: &mut VirtualFlow) {
        if !std::mem::replace(&mut flow.is_listed, true) {
            self.limited.push(id);
        }
    }

    /// A virtual flow leaves the pool.
    pub(super) fn let_go(&mut self, id: VirtualId, flow: &mut VirtualFlow) {
        self.set_ready(id, flow.free(), 0);
        if std::mem::replace(&mut flow.is_listed, false) {
            self.limited.retain(|limited| *limited != id);
        }
    }

    /// Credit is left: flows that are ready were not held back by their windows.
    pub(super) fn nobody_is_limited(&mut self, pool: PoolId, virtuals: &mut Seats<VirtualId, VirtualFlow>) {
        for id in self.limited.drain(..) {
            if let Some(flow) = virtuals.get_mut(id).filter(|flow| flow.pool == pool) {
                flow.is_listed = false;
                flow.is_limited &= flow.free() == 0;
            }
        }
    }
}

/// Whether a member is where a list says, in the pool of this name,
fn is_rich(pool: PoolId, members: &Seats<MemberId, Member>) -> impl Fn((Served, MemberId)) -> bool {
    move |(served, id)| {
        members.get(id).is_some_and(|member| member.pool == pool && member.rich_at == Some(served))
    }
}

/// and a virtual flow.
fn is_ready(pool: PoolId, virtuals: &Seats<VirtualId, VirtualFlow>) -> impl Fn((u64, VirtualId)) -> bool {
    move |(free, id)| virtuals.get(id).is_some_and(|flow| flow.pool == pool && flow.free() == free)
}
