//! Queues of flows in turn by bytes, each with CoDel (RFC 8290): the scheduler around the emulator's CoDel.

use std::collections::{BTreeMap, VecDeque};

use rattan_core::cells::Packet;
use rattan_core::cells::bandwidth::queue::{CoDelQueue, CoDelQueueConfig, PacketQueue};

/// Addresses, protocol and ports of an IPv4 packet.
type Key = [u8; 13];

/// Where in an Ethernet frame the addresses of an IPv4 packet are, and its protocol.
const ADDRESSES: std::ops::Range<usize> = 26..34;
const PROTOCOL: usize = 23;

#[derive(Debug)]
struct Flow<P> {
    queue: CoDelQueue<P>,
    /// What it may send in its turn, in bytes.
    credit: i64,
}

/// The queues. A flow that has none begins a new one, and goes before those that have sent.
#[derive(Debug)]
pub struct FlowQueues<P> {
    codel: CoDelQueueConfig,
    quantum: i64,
    limit: usize,
    flows: BTreeMap<Key, Flow<P>>,
    new: VecDeque<Key>,
    old: VecDeque<Key>,
}

impl<P: Packet> FlowQueues<P> {
    /// So many packets in all, and so many bytes in a turn.
    pub fn new(codel: CoDelQueueConfig, quantum: i64, limit: usize) -> Self {
        let (flows, new, old) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { codel, quantum, limit, flows, new, old }
    }

    /// The longest loses its head.
    fn make_room(&mut self) {
        let longest = self.flows.values_mut().max_by_key(|flow| flow.queue.length());
        _ = longest.and_then(|flow| flow.queue.dequeue());
    }

    fn take_turn(&mut self) -> Option<(Key, bool)> {
        let new = self.new.pop_front().map(|key| (key, true));
        new.or_else(|| self.old.pop_front().map(|key| (key, false)))
    }
}

/// To which flow a frame belongs; what is no IPv4 is one.
fn key(frame: &[u8]) -> Key {
    let mut key = [0; 13];
    let read = || Some((frame.get(ADDRESSES)?, frame.get(PROTOCOL)?, frame.get(14)? & 15));
    let Some((addresses, protocol, words)) = read() else { return key };
    key[..8].copy_from_slice(addresses);
    key[8] = *protocol;
    let transport = 14 + usize::from(words) * 4;
    if let Some(ports) = frame.get(transport..transport + 4) {
        key[9..].copy_from_slice(ports);
    }
    key
}

impl<P: Packet> PacketQueue<P> for FlowQueues<P> {
    type Config = ();

    fn configure(&mut self, (): ()) {}

    fn enqueue(&mut self, packet: P) {
        if self.length() >= self.limit {
            self.make_room();
        }
        let key = key(packet.as_slice());
        let flow = self.flows.entry(key).or_insert_with(|| {
            self.new.push_back(key);
            Flow { queue: CoDelQueue::new(self.codel.clone()), credit: self.quantum }
        });
        flow.queue.enqueue(packet);
    }

    fn dequeue(&mut self) -> Option<P> {
        while let Some((key, is_new)) = self.take_turn() {
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.old.push_back(key);
                continue;
            }
            if let Some(packet) = flow.queue.dequeue() {
                flow.credit -= i64::try_from(packet.l3_length()).unwrap_or(i64::MAX);
                let list = if is_new { &mut self.new } else { &mut self.old };
                list.push_front(key);
                return Some(packet);
            }
            if is_new && !self.old.is_empty() {
                // So that a flow cannot stay new for ever.
                self.old.push_back(key);
            } else {
                self.flows.remove(&key);
            }
        }
        None
    }

    fn is_empty(&self) -> bool {
        self.flows.values().all(|flow| flow.queue.is_empty())
    }

    fn get_front_size(&self) -> Option<usize> {
        let order = self.new.iter().chain(&self.old);
        order.filter_map(|key| self.flows.get(key)?.queue.get_front_size()).next()
    }

    fn length(&self) -> usize {
        self.flows.values().map(|flow| flow.queue.length()).sum()
    }
}

#[cfg(test)]
mod tests {
    use rattan_core::cells::StdPacket;

    use super::*;

    /// A datagram of this flow with so many bytes at the network layer.
    fn packet(flow: u8, bytes: usize) -> StdPacket {
        let mut frame = vec![0; 14 + bytes];
        frame[14] = 0x45;
        frame[PROTOCOL] = 17;
        frame[37] = flow;
        StdPacket::from_raw_buffer(&frame)
    }

    #[test]
    fn flows_take_turns_and_a_new_one_goes_first() {
        let mut queues = FlowQueues::new(CoDelQueueConfig::default(), 1000, 100);
        (0..6).for_each(|_| queues.enqueue(packet(1, 1000)));
        (0..12).for_each(|_| queues.enqueue(packet(2, 500)));
        let mut order = |count: usize| -> Vec<u8> {
            (0..count).map(|_| queues.dequeue().unwrap().as_slice()[37]).collect()
        };
        assert_eq!(order(6), [1, 2, 2, 1, 2, 2]);
        queues.enqueue(packet(3, 100));
        assert_eq!(queues.dequeue().unwrap().as_slice()[37], 3);
        assert_eq!(queues.length(), 12);
    }

    #[test]
    fn the_longest_queue_makes_room() {
        let mut queues = FlowQueues::new(CoDelQueueConfig::default(), 1500, 10);
        (0..20).for_each(|_| queues.enqueue(packet(1, 1000)));
        (0..3).for_each(|_| queues.enqueue(packet(2, 1000)));
        assert_eq!(queues.length(), 10);
        let left: Vec<_> =
            std::iter::from_fn(|| queues.dequeue()).map(|packet| packet.as_slice()[37]).collect();
        assert_eq!(left.iter().filter(|flow| **flow == 2).count(), 3, "{left:?}");
    }
}
