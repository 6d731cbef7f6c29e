//! Members behind one bottleneck, and the credit that they share.

use std::collections::{BTreeSet, BinaryHeap};

use super::member::Member;
use super::names::{MemberId, PoolId, VirtualId};
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
    /// Virtual flows by what their windows left free when that changed last, and by what they left before:
    /// what is no longer so is passed over where it is read.
    ready: BinaryHeap<(u64, VirtualId)>,
    /// Virtual flows whose windows leave something free.
    ready_flows: usize,
    /// Whether it is among those in which there may be something to hand out.
    pub is_changed: bool,
    /// Those of them that were held back by their windows when they sent last.
    pub limited: BTreeSet<VirtualId>,
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
        relist(&mut self.rich, id, &mut member.rich_at, place);
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
        relist(&mut self.waiting, id, &mut member.waits_at, place);
        self.note_rich(id, member);
    }

    /// A virtual flow's window leaves `after` free instead of `before`.
    pub(super) fn set_ready(&mut self, flow: VirtualId, before: u64, after: u64) {
        if before == after {
            return;
        }
        self.ready_flows = self.ready_flows - usize::from(before > 0) + usize::from(after > 0);
        if after > 0 {
            self.ready.push((after, flow));
        }
        self.free = self.free - before + after;
    }

    /// The virtual flow whose window leaves most free, by what `free` says that each one's leaves.
    pub(super) fn readiest(&mut self, free: impl Fn(VirtualId) -> u64) -> Option<VirtualId> {
        // Most of what is read is no longer so: now and then all of that goes at once.
        if self.ready.len() > 2 * self.ready_flows + 64 {
            let mut current = std::mem::take(&mut self.ready).into_vec();
            current.retain(|(left, flow)| free(*flow) == *left);
            current.sort_unstable();
            current.dedup();
            self.ready = current.into();
        }
        while let Some((left, flow)) = self.ready.peek().copied() {
            if free(flow) == left {
                return Some(flow);
            }
            self.ready.pop();
        }
        None
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

/// Gives a member another place in a list, or none. `at`: where it is.
fn relist(
    list: &mut BTreeSet<(Served, MemberId)>,
    id: MemberId,
    at: &mut Option<Served>,
    place: Option<Served>,
) {
    if *at == place {
        return;
    }
    if let Some(before) = std::mem::replace(at, place) {
        list.remove(&(before, id));
    }
    if let Some(served) = place {
        list.insert((served, id));
    }
}
