//! Members behind one bottleneck, and the credit that they share.

use std::collections::BTreeSet;

use super::member::Member;
use super::names::{MemberId, VirtualId};
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
    pub waiting: BTreeSet<(Served, MemberId)>,
    /// Members with credit that they have not used, the one last that has had most.
    pub rich: BTreeSet<(Served, MemberId)>,
    /// Virtual flows by what their windows leave free, without those that leave nothing.
    pub ready: BTreeSet<(u64, VirtualId)>,
    /// Those of them that were held back by their windows when they sent last.
    pub limited: BTreeSet<VirtualId>,
    /// The virtual flow that what was sent last stands for.
    pub sending: Option<VirtualId>,
    /// What the member was served that was granted last: where one begins that comes back.
    pub clock: Served,
}

impl Pool {
    /// A member is about to change: it leaves its places among those that wait and those that have.
    pub(super) fn stand_back(&mut self, id: MemberId, member: &Member) {
        self.waiting.remove(&(member.served, id));
        self.rich.remove(&(member.served, id));
    }

    /// A member may have something that could be taken back.
    pub(super) fn note_rich(&mut self, id: MemberId, member: &Member) {
        if member.allowance > 0 {
            self.rich.insert((member.served, id));
        }
    }

    /// A member has changed. Who could use no more credit for a time and now can is owed nothing for that
    /// time: it did not wait.
    pub(super) fn queue(&mut self, id: MemberId, member: &mut Member) {
        let waited = member.is_waiting;
        member.is_waiting = member.room() > 0;
        if member.is_waiting {
            if !waited {
                member.served = member.served.max(self.clock);
            }
            self.waiting.insert((member.served, id));
        }
        self.note_rich(id, member);
    }

    /// A virtual flow's window leaves `after` free instead of `before`.
    pub(super) fn set_ready(&mut self, flow: VirtualId, before: u64, after: u64) {
        if before == after {
            return;
        }
        self.ready.remove(&(before, flow));
        if after > 0 {
            self.ready.insert((after, flow));
        }
        self.free = self.free - before + after;
    }

    /// A virtual flow is ready though it was held back when it sent last, or is not.
    pub(super) fn set_limited(&mut self, flow: VirtualId, is_limited: bool) {
        if is_limited {
            self.limited.insert(flow);
        } else {
            self.limited.remove(&flow);
        }
    }
}
