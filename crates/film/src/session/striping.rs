//! Stripe groups: connections over which a server of ours spreads the bytes by itself (`docs/protocol.md`).
//!
//! The rate controller sees their connections like any others: its windows decide the shares, and the server
//! gives every block to a connection that can take it. The content coordinator sees one pipe. Here are the
//! group's members, and the orders that are sent on one of them, the leader.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anabranch_protocol::stripe::frame::Frame;
use anabranch_protocol::stripe::{Arrivals, UnexpectedFrame};
use anabranch_units::{Duration, Rate, Time};

use super::Session;
use super::api::Action;
use super::group::Group;
use crate::content::{Arrival, Request};
use crate::control::{ConnectionId, PathId};

/// Without a sign of life for so long, or for [`QUIET_ROUND_TRIPS`], the group is asked what it still has
/// (SYNC).
const QUIET: Duration = Duration::from_secs(1);
const QUIET_ROUND_TRIPS: u64 = 4;
/// The server ends a connection that left as soon as it hears of it; one that brings nothing for so long is
/// cut.
const FAREWELL: Duration = Duration::from_secs(2);

impl Session {
    /// A connection is set up and its server has taken it into the stripe group of its path; `rtt` is what
    /// the handshake took. The first one founds the group.
    pub fn joined_group(&mut self, connection: ConnectionId, rtt: Duration, now: Time) {
        self.now = now;
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let path = state.path;
        let there = self.groups.iter().find(|(_, group)| group.path == path);
        let id = there.map_or(connection, |(id, _)| *id);
        state.group = Some(id);
        if there.is_none() {
            self.coordinator.add_connection(id, rtt, now);
        }
        let group = self.groups.entry(id).or_insert_with(|| Group {
            path,
            members: BTreeSet::new(),
            leaving: BTreeMap::new(),
            arrivals: Arrivals::new(),
            last_block: now,
            last_sync: now,
        });
        group.arrivals.connected(connection);
        let before = group.members.clone();
        group.members.insert(connection);
        self.coordinator.set_members(id, group.size());
        for member in before {
            // It was only kept because it was the last one.
            if self.connections.get(&member).is_some_and(|state| state.closing) {
                self.leave_group(member, "not needed any more");
            }
        }
        self.is_up(connection, rtt, now);
    }

    /// How many stripe groups have ended on a path: a group that a server knows by a name must get another
    /// name when this has changed, and a connection that joined under the old one is of no use.
    pub fn group_number(&self, path: PathId) -> u32 {
        self.groups_ended.get(&path).copied().unwrap_or(0)
    }

    /// A block came over a connection of a stripe group. Answers what became of its bytes.
    ///
    /// # Errors
    /// No correct server sends this block: the connection is to be closed. Nothing changed.
    pub fn block_arrived(
        &mut self,
        connection: ConnectionId,
        sequence: u64,
        range: Range<u64>,
        now: Time,
    ) -> Result<Arrival, UnexpectedFrame> {
        self.now = now;
        let Some((id, group)) = self.group_of(connection) else { return Err(UnexpectedFrame::Connection) };
        group.arrivals.arrived(connection, sequence, range.clone())?;
        group.last_block = now;
        let arrival = self.coordinator.block_arrived(id, range, now);
        self.count(connection, arrival, arrival.fresh, now);
        self.fill(now);
        Ok(arrival)
    }

    /// The answer to a SYNC came over a connection of a stripe group, with what the server has queued.
    ///
    /// # Errors
    /// No correct server sends this: the connection is to be closed.
    pub fn synced(
        &mut self,
        connection: ConnectionId,
        mark: u64,
        queued: &[Range<u64>],
        now: Time,
    ) -> Result<(), UnexpectedFrame> {
        self.now = now;
        let Some((id, group)) = self.group_of(connection) else { return Err(UnexpectedFrame::Connection) };
        let lost = group.arrivals.synced(connection, mark, queued)?;
        lost.iter().for_each(|range| group.arrivals.cancelled(range.clone()));
        for range in lost {
            self.totals.rerequested += range.end - range.start;
            self.coordinator.unassign(id, &range);
        }
        self.fill(now);
        Ok(())
    }

    /// Something came over a connection of a stripe group, if only a part of a block: it lives. A block is
    /// long for a slow one.
    pub fn heard(&mut self, connection: ConnectionId, now: Time) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.heard(now);
        }
    }

    fn group_of(&mut self, connection: ConnectionId) -> Option<(ConnectionId, &mut Group)> {
        let id = self.connections.get(&connection)?.group?;
        Some((id, self.groups.get_mut(&id)?))
    }

    /// Orders a request of a stripe group; false: there is no such group.
    pub(super) fn want(&mut self, id: ConnectionId, request: &Request) -> bool {
        let Some(group) = self.groups.get_mut(&id) else { return false };
        group.arrivals.wanted(request.range.clone());
        for member in &group.members {
            if let Some(state) = self.connections.get_mut(member) {
                state.note_work(true, self.now);
            }
        }
        let frame = Frame::Want { range: request.range.clone(), priority: request.priority };
        self.order(id, frame, request.why);
        true
    }

    fn order(&mut self, id: ConnectionId, frame: Frame<'static>, why: &'static str) {
        if let Some(leader) = self.groups.get(&id).and_then(|group| group.members.first()) {
            self.actions.push_back(Action::Order { connection: *leader, frame, why });
        }
    }

    /// Takes a connection out of its stripe group in good order; false: it is in none, or its last member.
    pub(super) fn leave_group(&mut self, connection: ConnectionId, why: &'static str) -> bool {
        let now = self.now;
        let Some((id, group)) = self.group_of(connection) else { return false };
        if group.members.len() < 2 || !group.members.remove(&connection) {
            return group.leaving.contains_key(&connection);
        }
        group.leaving.insert(connection, now);
        let size = group.size();
        self.coordinator.set_members(id, size);
        self.actions.push_back(Action::Leave { connection, why });
        true
    }

    /// A connection is gone: what it was asked for is unassigned again. Of a stripe group, what went down
    /// with it comes to light by a SYNC; with the last member goes the group.
    pub(super) fn forget_connection(&mut self, connection: ConnectionId, group: Option<ConnectionId>) {
        let Some(id) = group else { return self.coordinator.remove_connection(connection) };
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.members.remove(&connection);
        group.leaving.remove(&connection);
        let mark = group.arrivals.closed(connection);
        if !group.members.is_empty() {
            let size = group.size();
            self.coordinator.set_members(id, size);
            if let Some(mark) = mark {
                self.sync(id, mark, "a connection of the group is gone");
            }
            return;
        }
        let Some(group) = self.groups.remove(&id) else { return };
        *self.groups_ended.entry(group.path).or_default() += 1;
        self.coordinator.remove_connection(id);
        for connection in group.leaving.into_keys() {
            self.connections.remove(&connection);
            self.actions.push_back(Action::Close { connection, why: "its group has ended" });
        }
    }

    fn sync(&mut self, id: ConnectionId, mark: u64, why: &'static str) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.last_sync = self.now;
        }
        self.order(id, Frame::Sync { mark }, why);
    }

    /// Cancels what the groups need not bring any more.
    pub(super) fn take_back(&mut self, now: Time) {
        self.now = now;
        let ids: Vec<_> = self.groups.keys().copied().collect();
        for id in ids {
            for range in self.coordinator.take_back(id) {
                self.cancel(id, range, "nobody waits for it any more");
            }
        }
    }

    /// A stripe group need not bring this any more; of any other pipe it cannot be taken back.
    pub(super) fn cancel(&mut self, id: ConnectionId, range: Range<u64>, why: &'static str) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.arrivals.cancelled(range.clone());
            self.order(id, Frame::Cancel { range }, why);
        }
    }

    /// What the clock brings: cancels, asks again for holes that keep a reader waiting, finds out what is
    /// lost when a group is quiet, cuts connections that do not end.
    pub(super) fn tend_groups(&mut self, now: Time) {
        self.take_back(now);
        let ids: Vec<_> = self.groups.keys().copied().collect();
        for id in ids {
            let Some(group) = self.groups.get_mut(&id) else { continue };
            for hole in self.coordinator.take_back_holes(id, now) {
                self.totals.rerequested += hole.end - hole.start;
                group.arrivals.cancelled(hole);
            }
            let members = group.members.iter().filter_map(|member| self.connections.get(member));
            let (rtt, quietest) = members.fold((Duration::ZERO, Duration::ZERO), |(rtt, quiet), member| {
                (rtt.max(member.srtt), quiet.max(member.silent(now)))
            });
            let patience = QUIET.max(rtt * QUIET_ROUND_TRIPS);
            // One that is merely slow shows by the answer that it lives, before it is closed for its silence.
            let quiet =
                now.since(group.last_block) > patience || quietest > (self.silent_after / 4).max(patience);
            if quiet
                && now.since(group.last_sync) > patience
                && let Some(mark) = group.arrivals.sync()
            {
                self.sync(id, mark, "it has been quiet");
            }
            let Some(group) = self.groups.get(&id) else { continue };
            let over = |(connection, since): (&ConnectionId, &Time)| {
                let silent =
                    self.connections.get(connection).map_or(Duration::MAX, |state| state.silent(now));
                (now.since(*since).min(silent) > FAREWELL.max(rtt * QUIET_ROUND_TRIPS)).then_some(*connection)
            };
            let over: Vec<_> = group.leaving.iter().filter_map(over).collect();
            for connection in over {
                self.close_now(connection, "the server does not end it");
            }
        }
    }

    /// Tells the coordinator what the groups deliver.
    pub(super) fn estimate_groups(&mut self) {
        for (id, group) in &self.groups {
            let members: Vec<_> =
                group.members.iter().filter_map(|member| self.connections.get(member)).collect();
            let rate = members.iter().map(|member| member.rate).sum::<Rate>();
            let rtt = members.iter().map(|member| member.srtt).sum::<Duration>() / u64::from(group.size());
            self.coordinator.estimate(*id, rate, rtt);
        }
    }
}

#[cfg(test)]
mod tests;
