//! Whose turn it is among queues of flows (RFC 8290, sections 4.1 and 4.2): deficit round robin by bytes, and
//! flows that begin before those that go on.

use std::collections::{BTreeMap, VecDeque};

use anabranch_units::Bytes;

/// Queues of type `Q` in turn, each of the flow that has the key `K`. What a queue does with its packets, such
/// as CoDel, is its own.
#[derive(Clone, Debug)]
pub struct FlowTurns<K, Q> {
    quantum: i64,
    flows: BTreeMap<K, Flow<Q>>,
    new: VecDeque<K>,
    old: VecDeque<K>,
}

#[derive(Clone, Debug)]
struct Flow<Q> {
    queue: Q,
    /// Bytes that it may send before it is another's turn.
    credit: i64,
}

impl<K: Ord + Copy, Q> FlowTurns<K, Q> {
    /// No queues yet. In its turn each may send `quantum` bytes.
    pub fn new(quantum: Bytes) -> Self {
        // Without a quantum no turn would ever come.
        let quantum = i64::try_from(quantum.get()).unwrap_or(i64::MAX).max(1);
        Self { quantum, flows: BTreeMap::new(), new: VecDeque::new(), old: VecDeque::new() }
    }

    /// The queue of a flow, to put a packet into; one that has none begins, and goes before those that have sent.
    pub fn queue(&mut self, flow: K, begin: impl FnOnce() -> Q) -> &mut Q {
        let flow = self.flows.entry(flow).or_insert_with(|| {
            self.new.push_back(flow);
            Flow { queue: begin(), credit: self.quantum }
        });
        &mut flow.queue
    }

    /// The queues that there are, by their flows.
    pub fn queues(&self) -> impl Iterator<Item = &Q> {
        self.flows.values().map(|flow| &flow.queue)
    }

    /// The queues in the order of their turns, as it is now.
    pub fn in_turn(&self) -> impl Iterator<Item = &Q> {
        self.new.iter().chain(&self.old).filter_map(|flow| Some(&self.flows.get(flow)?.queue))
    }

    /// The longest queue, where a packet goes to make room. The first of equals, so that it depends on nothing else.
    pub fn longest(&mut self, bytes: impl Fn(&Q) -> u64) -> Option<&mut Q> {
        let queues = self.flows.values_mut().rev().map(|flow| &mut flow.queue);
        queues.max_by_key(|queue| bytes(queue))
    }

    /// The next packet: `pop` takes one from a queue, with its size in bytes. A queue that is empty loses its turn,
    /// and its place once all others had theirs.
    pub fn pop<P>(&mut self, mut pop: impl FnMut(&mut Q) -> Option<(P, u64)>) -> Option<P> {
        loop {
            let is_new = !self.new.is_empty();
            let turn = if is_new { &mut self.new } else { &mut self.old };
            let key = turn.pop_front()?;
            let flow = self.flows.get_mut(&key)?;
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.old.push_back(key);
                continue;
            }
            match pop(&mut flow.queue) {
                Some((packet, size)) => {
                    flow.credit = flow.credit.saturating_sub_unsigned(size);
                    let turn = if is_new { &mut self.new } else { &mut self.old };
                    turn.push_front(key);
                    return Some(packet);
                }
                // Once through the old ones before it can be new again, or it would starve them.
                None if is_new => self.old.push_back(key),
                None => _ = self.flows.remove(&key),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues of packets, each its size in bytes.
    type Turns = FlowTurns<u8, VecDeque<u64>>;

    fn push(turns: &mut Turns, flow: u8, size: u64, count: usize) {
        turns.queue(flow, VecDeque::new).extend(std::iter::repeat_n(size, count));
    }

    /// The sizes of the next packets.
    fn leave(turns: &mut Turns, count: usize) -> Vec<u64> {
        let pop = |queue: &mut VecDeque<u64>| queue.pop_front().map(|size| (size, size));
        (0..count).filter_map(|_| turns.pop(pop)).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut turns = Turns::new(Bytes::new(1000));
        push(&mut turns, 1, 1000, 6);
        push(&mut turns, 2, 500, 12);
        assert_eq!(leave(&mut turns, 6), [1000, 500, 500, 1000, 500, 500]);
    }

    #[test]
    fn a_flow_that_begins_comes_first_and_then_takes_its_turn() {
        let mut turns = Turns::new(Bytes::new(4500));
        push(&mut turns, 1, 1500, 20);
        leave(&mut turns, 4);
        push(&mut turns, 2, 100, 1);
        assert_eq!(leave(&mut turns, 1), [100]);
        // Empty now, it still has a place behind the other: a packet that comes is not new again.
        leave(&mut turns, 1);
        push(&mut turns, 2, 100, 1);
        assert_ne!(leave(&mut turns, 1), [100]);
    }

    #[test]
    fn the_longest_by_bytes_makes_room_and_the_first_of_equals() {
        let mut turns = Turns::new(Bytes::new(1514));
        push(&mut turns, 1, 1000, 3);
        push(&mut turns, 2, 200, 9);
        push(&mut turns, 3, 1500, 2);
        let bytes = |queue: &VecDeque<u64>| queue.iter().sum();
        assert_eq!(turns.longest(bytes).unwrap().pop_front(), Some(1000));
        assert_eq!(turns.longest(bytes).unwrap().pop_front(), Some(1500));
    }

    #[test]
    fn all_leaves_and_nothing_stays_behind() {
        let mut turns = Turns::new(Bytes::ZERO);
        (1..9).for_each(|flow| push(&mut turns, flow, 1500, usize::from(flow)));
        assert_eq!(leave(&mut turns, 99).len(), 36);
        assert_eq!((turns.queues().count(), turns.in_turn().count()), (0, 0));
    }
}
