//! Queues of flows in turn by bytes, each with CoDel (RFC 8290): the scheduler around the emulator's CoDel.

use anabranch_queues::FlowTurns;
use anabranch_units::Bytes;
use rattan_core::cells::Packet;
use rattan_core::cells::bandwidth::queue::{CoDelQueue, CoDelQueueConfig, PacketQueue};

/// Addresses, protocol and ports of an IPv4 packet.
type Key = [u8; 13];

/// Where in an Ethernet frame the addresses of an IPv4 packet are, and its protocol.
const ADDRESSES: std::ops::Range<usize> = 26..34;
const PROTOCOL: usize = 23;

/// The queues.
#[derive(Debug)]
pub struct FlowQueues<P> {
    codel: CoDelQueueConfig,
    limit: usize,
    turns: FlowTurns<Key, CoDelQueue<P>>,
}

impl<P: Packet> FlowQueues<P> {
    /// So many packets in all, and so many bytes in a turn.
    pub fn new(codel: CoDelQueueConfig, quantum: Bytes, limit: usize) -> Self {
        Self { codel, limit, turns: FlowTurns::new(quantum) }
    }

    /// The longest loses its head. CoDel's queue tells its length in packets.
    fn make_room(&mut self) {
        let longest = self.turns.longest(|queue| Bytes::of(queue.length()).get());
        _ = longest.and_then(CoDelQueue::dequeue);
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
        let queue = self.turns.queue(key(packet.as_slice()), || CoDelQueue::new(self.codel.clone()));
        queue.enqueue(packet);
    }

    fn dequeue(&mut self) -> Option<P> {
        self.turns.pop(|queue| {
            let packet = queue.dequeue()?;
            let size = Bytes::of(packet.l3_length()).get();
            Some((packet, size))
        })
    }

    fn is_empty(&self) -> bool {
        self.turns.queues().all(PacketQueue::is_empty)
    }

    fn get_front_size(&self) -> Option<usize> {
        self.turns.in_turn().filter_map(PacketQueue::get_front_size).next()
    }

    fn length(&self) -> usize {
        self.turns.queues().map(PacketQueue::length).sum()
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
        let mut queues = FlowQueues::new(CoDelQueueConfig::default(), Bytes::new(1000), 100);
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
        let mut queues = FlowQueues::new(CoDelQueueConfig::default(), Bytes::new(1500), 10);
        (0..20).for_each(|_| queues.enqueue(packet(1, 1000)));
        (0..3).for_each(|_| queues.enqueue(packet(2, 1000)));
        assert_eq!(queues.length(), 10);
        let left: Vec<_> =
            std::iter::from_fn(|| queues.dequeue()).map(|packet| packet.as_slice()[37]).collect();
        assert_eq!(left.iter().filter(|flow| **flow == 2).count(), 3, "{left:?}");
    }
}
