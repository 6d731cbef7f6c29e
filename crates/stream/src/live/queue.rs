//! Packets that came into the sender and have not left yet. When the network is slower than they come, the newest are
//! kept: the oldest are dropped once they could not come in time any more.

use std::collections::VecDeque;
use std::sync::Arc;

use units::{Bytes, Duration, Time};

use super::stuffing::stream_bytes;

/// No more waits, however long it may.
const MOST: Bytes = Bytes::mib(64);

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
    pub(super) fn push(&mut self, packet: Packet) {
        self.size += Bytes::of(packet.payload.len());
        self.packets.push_back(packet);
        while self.size > MOST {
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
            queue.push(packet(millis, 100));
        }
        queue.expire(Duration::from_millis(3), at(10));
        assert_eq!((queue.len(), queue.size(), queue.dropped()), (3, Bytes::new(300), (7, Bytes::new(693))));
        assert_eq!(queue.pop(), Some(packet(7, 100)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut queue = Queue::default();
        for _ in 0..100 {
            queue.push(packet(0, 1 << 20));
        }
        assert_eq!((queue.size(), queue.dropped().0), (MOST, 36));
    }
}
