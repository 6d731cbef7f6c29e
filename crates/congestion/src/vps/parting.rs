//! Members behind different bottlenecks are parted, and those behind the same one joined.

use anabranch_units::{Bytes, Time};

use super::group::Group;
use super::names::{MemberId, PoolId};
use super::pool::Pool;

/// A member was moved to other company.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regrouped {
    /// Who.
    pub member: MemberId,
    /// Those with whom it shares credit now.
    pub companions: usize,
    /// How its delays go with those of the company that it joined or left: a concordance between -1 and 1.
    pub concordance: f64,
}

impl Group {
    /// Parts members behind different bottlenecks and joins those behind the same one, where the group
    /// watches; to be called now and then. Answers who was moved.
    pub fn regroup(&mut self, now: Time) -> Vec<Regrouped> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        if !watch.is_due(now) {
            return Vec::new();
        }
        let mut places: Vec<_> = self.members.iter().map(|(id, member)| (member.pool.0, id)).collect();
        places.sort_unstable();
        let mut told = Vec::new();
        for found in watch.judge(&places, now) {
            let pool = found.to.map_or_else(|| self.begin_pool(), PoolId);
            for id in &found.members {
                self.move_to(*id, pool);
            }
            told.extend(found.members.iter().map(|id| Regrouped {
                member: *id,
                companions: self.companions(*id),
                concordance: found.concordance,
            }));
        }
        told
    }

    /// A member and its virtual flow change their pool. What the flow has in flight for others stays written
    /// down.
    fn move_to(&mut self, id: MemberId, pool: PoolId) {
        let Some(wanted) = self.members.get(id).map(|member| member.wanted) else { return };
        self.want(id, Bytes::ZERO);
        let (Some(member), Some(shared)) = (self.members.get_mut(id), self.pools.get_mut(pool)) else {
            return;
        };
        let from = std::mem::replace(&mut member.pool, pool);
        let own = member.own;
        shared.members += 1;
        member.served = shared.clock;
        if let Some(flow) = self.virtuals.get_mut(own) {
            if let Some(old) = self.pools.get_mut(from) {
                old.let_go(own, flow);
            }
            flow.pool = pool;
            if let Some(shared) = self.pools.get_mut(pool) {
                shared.set_ready(own, 0, flow.free());
                if flow.is_limited && flow.free() > 0 {
                    shared.note_limited(own, flow);
                }
            }
        }
        if let Some(shared) = self.pools.get_mut(pool) {
            shared.note_changed(pool, &mut self.changed);
        }
        self.settle(from);
        self.leave_pool(from);
        self.want(id, Bytes::new(wanted));
    }

    /// A pool that nobody is in yet.
    pub(super) fn begin_pool(&mut self) -> PoolId {
        let id = PoolId(self.pool_seats.name(self.next_number));
        self.next_number = self.next_number.wrapping_add(1);
        self.pools.insert(id, Pool::default());
        id
    }

    /// One member less is in a pool, which goes with the last one.
    pub(super) fn leave_pool(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(id) else { return };
        pool.members = pool.members.saturating_sub(1);
        if pool.members == 0 {
            self.pools.remove(id);
            self.pool_seats.leave(id);
        }
    }
}

#[cfg(test)]
mod tests;
