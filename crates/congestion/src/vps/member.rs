//! A flow that really sends.

use anabranch_units::Time;

use super::names::{PoolId, VirtualId};
use super::records::Records;
use super::weight::{Served, Weight};
use crate::flow_use::FlowUse;

/// Its state, in bytes.
#[derive(Debug)]
pub(super) struct Member {
    pub weight: Weight,
    pub pool: PoolId,
    /// The virtual flow that came with it.
    pub own: VirtualId,
    pub served: Served,
    /// Whether it is among those that wait in its pool.
    pub is_waiting: bool,
    /// Its places in the lists of its pool: of those that wait, and of those that have.
    pub waits_at: Option<Served>,
    pub rich_at: Option<Served>,
    /// What it could send now, its allowance included.
    pub wanted: u64,
    /// What it was granted and has not sent.
    pub allowance: u64,
    /// When the allowance was last granted or used.
    pub touched: Time,
    pub in_flight: u64,
    /// The most that it may have in flight: without bound, but a segment from when its timer ran out to when
    /// it is heard of.
    pub cap: u64,
    pub records: Records,
    /// How much of its own virtual flow it uses.
    pub usage: FlowUse,
    /// Whether the group held it back when that was looked at last.
    pub was_held_back: bool,
    /// How much its own virtual flow counted for when that was looked at last, from 0 to 1.
    pub counted: f64,
}

impl Member {
    /// One that begins, with nothing to send.
    pub(super) fn new(weight: Weight, pool: PoolId, own: VirtualId, served: Served) -> Self {
        Self {
            weight,
            pool,
            own,
            served,
            is_waiting: false,
            waits_at: None,
            rich_at: None,
            wanted: 0,
            allowance: 0,
            touched: Time::ZERO,
            in_flight: 0,
            cap: u64::MAX,
            records: Records::default(),
            usage: FlowUse::new(),
            was_held_back: false,
            counted: 1.0,
        }
    }

    /// Whether credit is what it lacks.
    pub(super) fn is_held_back(&self, segment: u64) -> bool {
        self.allowance < segment && self.room() > 0
    }

    /// What it uses itself now: what is in flight and granted, and the next two segments where it has them.
    /// Not all that it says it wants: a transport may want without bound and send a packet. A grant never
    /// makes it less, or it would be taken back at once.
    pub(super) fn needs(&self, segment: u64) -> u64 {
        self.in_flight.saturating_add(self.could_use().min(2 * segment).max(self.allowance))
    }

    /// What it could send now, if it were granted.
    fn could_use(&self) -> u64 {
        self.wanted.min(self.cap.saturating_sub(self.in_flight))
    }

    /// What more it could be granted.
    pub(super) fn room(&self) -> u64 {
        self.could_use().saturating_sub(self.allowance)
    }
}
