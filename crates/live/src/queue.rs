//! Packets that came into the sender and have not left yet. When the network is slower than they come, the
//! newest are kept: the oldest are dropped once they could not come in time any more.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_units::{Bytes, Duration, Time};

use anabranch_protocol::live::packed::stream_bytes;
use anabranch_protocol::live::stuffing::cut;

/// A packet of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// When it came into the sender.
    pub(super) time: Time,
    /// As it travels.
    pub(super) payload: Arc<[u8]>,
}

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    packets: VecDeque<Packet>,
    size: Bytes,
    dropped_packets: u64,
    dropped: Bytes,
}

impl Queue {
    /// One more. No more than `most` bytes wait, however long they may.
    pub(super) fn push(&mut self, packet: Packet, most: Bytes) {
        self.size += Bytes::of(packet.payload.len());
        self.packets.push_back(packet);
        while self.size > most {
            self.drop_oldest();
        }
    }

    /// These leave before all others; the first of them first. No more than `most` bytes wait.
    pub(super) fn push_before(&mut self, packets: impl DoubleEndedIterator<Item = Packet>, most: Bytes) {
        for packet in packets.rev() {
            self.size += Bytes::of(packet.payload.len());
            self.packets.push_front(packet);
        }
        while self.size > most {
            self.drop_oldest();
        }
    }

    /// Drops what has waited for longer than `limit`.
    pub(super) fn expire(&mut self, limit: Duration, now: Time) {
        while self.packets.front().is_some_and(|packet| now.since(packet.time) > limit) {
            self.drop_oldest();
        }
    }

    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.size -= Bytes::of(packet.payload.len());
        Some(packet)
    }

    /// The packet that leaves next becomes several where a datagram takes no more than `most` bytes of a
    /// stream.
    pub(super) fn cut_front(&mut self, most: usize) {
        let Some(parts) = self.packets.front().and_then(|packet| cut(&packet.payload, most)) else { return };
        let Some(Packet { time, .. }) = self.pop() else { return };
        for payload in parts.into_iter().rev() {
            self.size += Bytes::of(payload.len());
            self.packets.push_front(Packet { time, payload });
        }
    }

    /// The packet that leaves next.
    pub(super) fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Bytes that wait.
    pub(super) fn size(&self) -> Bytes {
        self.size
    }

    /// Packets that were dropped, and the bytes of the stream in them.
    pub(super) fn dropped(&self) -> (u64, Bytes) {
        (self.dropped_packets, self.dropped)
    }

    fn drop_oldest(&mut self) {
        if let Some(packet) = self.pop() {
            self.dropped_packets += 1;
            self.dropped += stream_bytes(&packet.payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Bytes = Bytes::mib(64);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn packet(millis: u64, length: usize) -> Packet {
        Packet { time: at(millis), payload: vec![0; length].into() }
    }

    #[test]
    fn the_newest_are_kept() {
        let mut queue = Queue::default();
        for millis in 0..10 {
            queue.push(packet(millis, 100), MOST);
        }
        queue.expire(Duration::from_millis(3), at(10));
        assert_eq!((queue.len(), queue.size(), queue.dropped()), (3, Bytes::new(300), (7, Bytes::new(693))));
        assert_eq!(queue.pop(), Some(packet(7, 100)));
    }

    #[test]
    fn what_is_too_long_for_the_path_leaves_in_parts() {
        let mut queue = Queue::default();
        let bytes: Vec<u8> = (0..100).collect();
        let payload = |bytes: &[u8]| anabranch_protocol::live::packed::as_it_is(bytes);
        queue.push(Packet { time: at(1), payload: payload(&bytes) }, Bytes::mib(1));
        queue.push(Packet { time: at(2), payload: payload(&bytes[..8]) }, Bytes::mib(1));
        queue.cut_front(100);
        assert_eq!(queue.len(), 2);
        // No less than a packet of a transport stream is asked for.
        queue.cut_front(40);
        assert_eq!((queue.len(), queue.size()), (2, Bytes::new(110)));
        let long: Vec<u8> = bytes.iter().copied().cycle().take(500).collect();
        let mut queue = Queue::default();
        queue.push(Packet { time: at(1), payload: payload(&long) }, Bytes::mib(1));
        queue.cut_front(200);
        assert_eq!((queue.len(), queue.size()), (3, Bytes::new(503)));
        for part in long.chunks(200) {
            assert_eq!(queue.pop(), Some(Packet { time: at(1), payload: payload(part) }));
        }
        assert_eq!((queue.size(), queue.dropped().0), (Bytes::ZERO, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut queue = Queue::default();
        for _ in 0..100 {
            queue.push(packet(0, 1 << 20), MOST);
        }
        assert_eq!((queue.size(), queue.dropped().0), (MOST, 36));
    }
}
