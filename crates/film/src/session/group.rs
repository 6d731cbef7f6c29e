//! What a session knows of a stripe group.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_protocol::stripe::Arrivals;
use anabranch_units::Time;

use crate::control::{ConnectionId, PathId};

/// What a session knows of a stripe group. There is at most one on a path, and it has at least one member.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) path: PathId,
    /// Connections that take orders. The leader is the oldest: orders on different connections could overtake
    /// each other.
    pub(super) members: BTreeSet<ConnectionId>,
    /// Connections that were taken out and still bring what was on its way; since when.
    pub(super) leaving: BTreeMap<ConnectionId, Time>,
    pub(super) arrivals: Arrivals,
    pub(super) last_block: Time,
    pub(super) last_sync: Time,
}

impl Group {
    /// Members, at least 1 as a divisor.
    pub(super) fn size(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX).max(1)
    }
}
