//! Flow queues with controlled delay (RFC 8290): queues of flows that take turns, each with a CoDel of its own.

use anabranch_queues::FlowTurns;

use super::codel::{CoDelQueue, Head};
use crate::model::{CoDel, FqCoDel};

/// Flows that fall into the same one share it.
const BUCKETS: u64 = 1024;

/// The queues that are in turn.
#[derive(Clone, Debug)]
pub(super) struct FlowQueues {
    codel: CoDel,
    turns: FlowTurns<u64, CoDelQueue>,
    length: usize,
}

impl FlowQueues {
    pub(super) fn new(parameters: FqCoDel) -> Self {
        Self { codel: parameters.codel, turns: FlowTurns::new(parameters.quantum), length: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, packet: Head, flow: u64) {
        // Fibonacci hashing: neighbours come far apart.
        let bucket = (flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % BUCKETS;
        self.turns.queue(bucket, || CoDelQueue::new(self.codel)).push(packet);
        self.length += 1;
    }

    /// Takes the head of the longest queue, in bytes, to make room (section 4.1).
    pub(super) fn drop_longest(&mut self) -> Option<(u32, u32)> {
        let dropped = self.turns.longest(CoDelQueue::bytes)?.drop_head();
        self.length -= usize::from(dropped.is_some());
        dropped
    }

    /// The next packet to transmit. `dropped` is told of those that go.
    pub(super) fn pop(&mut self, now: u64, mut dropped: impl FnMut(u32, u32)) -> Option<Head> {
        let length = &mut self.length;
        self.turns.pop(|queue| {
            let before = queue.len();
            let head = queue.pop(now, &mut dropped);
            *length -= before - queue.len();
            head.map(|head| (head, u64::from(head.size)))
        })
    }
}

#[cfg(test)]
mod tests {
    use anabranch_queues::Codepoint;
    use anabranch_units::{Bytes, Duration};

    use super::*;

    #[test]
    fn room_is_made_in_the_longest_queue_and_nothing_is_lost_count_of() {
        let codel =
            CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false };
        let packet = |packet, size| Head { packet, size, came: 0, ecn: Codepoint::NotEct, is_marked: false };
        let mut queues = FlowQueues::new(FqCoDel { codel, quantum: Bytes::new(1514) });
        for _ in 0..5 {
            queues.push(packet(1, 1500), 1);
        }
        queues.push(packet(2, 100), 2);
        assert_eq!(queues.drop_longest(), Some((1, 1500)));
        assert_eq!(queues.len(), 5);
        let left = std::iter::from_fn(|| queues.pop(0, |_, _| panic!("a drop")));
        assert_eq!(left.count(), 5);
        assert_eq!((queues.len(), queues.drop_longest()), (0, None));
    }
}
