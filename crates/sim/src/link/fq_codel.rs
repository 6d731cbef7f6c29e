//! Flow queues with controlled delay (RFC 8290, section 4): deficit round robin over queues of flows, each
//! with a CoDel of its own, and flows that begin before those that go on.

use std::collections::{BTreeMap, VecDeque};

use super::codel::{CoDelQueue, Head};
use crate::model::{CoDel, FqCoDel};

/// Flows that fall into the same one share it.
const BUCKETS: u64 = 1024;

/// The queues that are in turn.
#[derive(Clone, Debug)]
pub(super) struct FlowQueues {
    codel: CoDel,
    quantum: i64,
    flows: BTreeMap<u64, FlowQueue>,
    new: VecDeque<u64>,
    old: VecDeque<u64>,
    length: usize,
}

#[derive(Clone, Debug)]
struct FlowQueue {
    queue: CoDelQueue,
    /// Bytes that it may send before it is another's turn.
    credit: i64,
}

impl FlowQueues {
    pub(super) fn new(parameters: FqCoDel) -> Self {
        Self {
            codel: parameters.codel,
            quantum: i64::try_from(parameters.quantum.get()).unwrap_or(i64::MAX),
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            length: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, packet: u32, size: u32, flow: u64, now: u64) {
        // Fibonacci hashing: neighbours come far apart.
        let bucket = (flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % BUCKETS;
        let queue = self.flows.entry(bucket).or_insert_with(|| {
            self.new.push_back(bucket);
            FlowQueue { queue: CoDelQueue::new(self.codel), credit: self.quantum }
        });
        queue.queue.push(packet, size, now);
        self.length += 1;
    }

    /// Takes the head of the longest queue, in bytes, to make room (section 4.1).
    pub(super) fn drop_longest(&mut self) -> Option<(u32, u32)> {
        // The first of equals, so that it does not depend on anything else.
        let longest = self.flows.values_mut().rev().max_by_key(|flow| flow.queue.bytes())?;
        let dropped = longest.queue.drop_head();
        self.length -= usize::from(dropped.is_some());
        dropped
    }

    /// The next packet to transmit. `dropped` is told of those that go.
    pub(super) fn pop(&mut self, now: u64, mut dropped: impl FnMut(u32, u32)) -> Option<Head> {
        loop {
            let is_new = !self.new.is_empty();
            let turn = if is_new { &mut self.new } else { &mut self.old };
            let bucket = turn.pop_front()?;
            let flow = self.flows.get_mut(&bucket)?;
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.old.push_back(bucket);
                continue;
            }
            let before = flow.queue.len();
            let head = flow.queue.pop(now, &mut dropped);
            self.length -= before - flow.queue.len();
            match head {
                Some(head) => {
                    flow.credit -= i64::from(head.size);
                    let turn = if is_new { &mut self.new } else { &mut self.old };
                    turn.push_front(bucket);
                    return Some(head);
                }
                // Once through the old ones before it can be new again, or it would starve them.
                None if is_new => self.old.push_back(bucket),
                None => _ = self.flows.remove(&bucket),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Bytes, Duration};

    use super::*;

    fn queues() -> FlowQueues {
        let codel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
        FlowQueues::new(FqCoDel { codel, quantum: Bytes::new(1514) })
    }

    /// Which flows' packets leave, a packet's name being that of its flow.
    fn leave(queues: &mut FlowQueues, count: usize) -> Vec<u32> {
        (0..count).filter_map(|_| queues.pop(0, |_, _| panic!("a drop"))).map(|head| head.packet).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut queues = queues();
        for _ in 0..30 {
            queues.push(1, 1500, 1, 0);
        }
        for _ in 0..90 {
            queues.push(2, 500, 2, 0);
        }
        let left = leave(&mut queues, 60);
        let bytes = |flow, size| left.iter().filter(|packet| **packet == flow).count() * size;
        let (first, second) = (bytes(1, 1500), bytes(2, 500));
        assert!(first.abs_diff(second) <= 3028, "{first} {second}");
    }

    #[test]
    fn a_flow_that_begins_comes_first_and_then_takes_its_turn() {
        let mut queues = queues();
        for _ in 0..20 {
            queues.push(1, 1500, 1, 0);
        }
        leave(&mut queues, 4);
        queues.push(2, 100, 2, 0);
        assert_eq!(leave(&mut queues, 2).iter().filter(|packet| **packet == 2).count(), 1);
    }

    #[test]
    fn room_is_made_in_the_longest_queue_and_nothing_is_lost_count_of() {
        let mut queues = queues();
        for _ in 0..5 {
            queues.push(1, 1500, 1, 0);
        }
        queues.push(2, 100, 2, 0);
        assert_eq!(queues.drop_longest(), Some((1, 1500)));
        assert_eq!(queues.len(), 5);
        assert_eq!(leave(&mut queues, 9).len(), 5);
        assert_eq!((queues.len(), queues.drop_longest()), (0, None));
    }
}
