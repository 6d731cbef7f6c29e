//! Members behind one bottleneck, and the credit that they share.

use std::collections::BTreeSet;

use super::member::Member;
use super::names::{MemberId, VirtualId};
use super::weight::Served;

/// The books of a pool, in bytes.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// What the virtual flows' windows leave free.
    pub free: u64,
    /// What of it was granted and not sent yet.
    pub reserved: u64,
    /// Members that could use more, the one first that is owed most.
    pub waiting: BTreeSet<(Served, MemberId)>,
    /// Virtual flows by what their windows leave free, without those that leave nothing.
    pub ready: BTreeSet<(u64, VirtualId)>,
    /// The virtual flow that what was sent last stands for.
    pub sending: Option<VirtualId>,
    /// What the member was served that was granted last: where one begins that comes back.
    pub clock: Served,
}

impl Pool {
    /// A member is about to change: it leaves its place among those that wait.
    pub(super) fn stand_back(&mut self, id: MemberId, member: &Member) {
        self.waiting.remove(&(member.served, id));
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
}
