//! Queues that decide when a packet leaves them.

use super::codel::{CoDelQueue, Head};
use super::fq_codel::FlowQueues;

/// A queue that decides when a packet leaves it.
#[derive(Debug)]
pub(super) enum Served {
    CoDel(Box<CoDelQueue>),
    FqCoDel(Box<FlowQueues>),
}

impl Served {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::CoDel(queue) => queue.len(),
            Self::FqCoDel(queues) => queues.len(),
        }
    }

    pub(super) fn push(&mut self, packet: Head, flow: u64) {
        match self {
            Self::CoDel(queue) => queue.push(packet),
            Self::FqCoDel(queues) => queues.push(packet, flow),
        }
    }

    pub(super) fn pop(&mut self, now: u64, dropped: impl FnMut(u32, u32)) -> Option<Head> {
        match self {
            Self::CoDel(queue) => queue.pop(now, dropped),
            Self::FqCoDel(queues) => queues.pop(now, dropped),
        }
    }

    /// Makes room, where this drops another packet than the one that comes.
    pub(super) fn make_room(&mut self) -> Option<(u32, u32)> {
        match self {
            Self::CoDel(_) => None,
            Self::FqCoDel(queues) => queues.drop_longest(),
        }
    }
}
