//! Queues that decide when a packet leaves them.

use anabranch_queues::{DualPi2State, Leaving};

use super::codel::{CoDelQueue, Head};
use super::fq_codel::FlowQueues;

/// A queue that decides when a packet leaves it.
#[derive(Debug)]
pub(super) enum Served {
    CoDel(Box<CoDelQueue>),
    FqCoDel(Box<FlowQueues>),
    DualPi2(Box<DualPi2State<u32>>),
}

impl Served {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::CoDel(queue) => queue.len(),
            Self::FqCoDel(queues) => queues.len(),
            Self::DualPi2(queues) => queues.len(),
        }
    }

    pub(super) fn push(&mut self, packet: Head, flow: u64) {
        match self {
            Self::CoDel(queue) => queue.push(packet),
            Self::FqCoDel(queues) => queues.push(packet, flow),
            Self::DualPi2(queues) => queues.push(packet.packet, packet.size, packet.ecn, packet.came),
        }
    }

    pub(super) fn pop(&mut self, now: u64, dropped: impl FnMut(u32, u32)) -> Option<Head> {
        match self {
            Self::CoDel(queue) => queue.pop(now, dropped),
            Self::FqCoDel(queues) => queues.pop(now, dropped),
            Self::DualPi2(queues) => queues.pop(now, dropped).map(|leaving| {
                let Leaving { packet, size, came, codepoint: ecn, is_marked } = leaving;
                Head { packet, size, came, ecn, is_marked }
            }),
        }
    }

    /// Whether it judges also what comes to an idle link.
    pub(super) fn judges_all(&self) -> bool {
        matches!(self, Self::DualPi2(_))
    }

    /// Makes room, where this drops another packet than the one that comes.
    pub(super) fn make_room(&mut self) -> Option<(u32, u32)> {
        match self {
            Self::CoDel(_) | Self::DualPi2(_) => None,
            Self::FqCoDel(queues) => queues.drop_longest(),
        }
    }
}
