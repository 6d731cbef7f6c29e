//! A token bucket in real time: a policer that drops what finds it empty, and a shaper that lets it wait.

use anabranch_queues::Bucket;
use anabranch_scenario::model::TokenBucket;
use rattan_core::cells::bandwidth::queue::PacketQueue;
use rattan_core::cells::{Packet, StdPacket};
use tokio::time::Instant;

use super::cell::{Look, Work};
use super::since::Since;

/// In bytes of the network layer.
fn size(packet: &StdPacket) -> u32 {
    u32::try_from(packet.l3_length()).unwrap_or(u32::MAX)
}

/// Drops what comes faster than its rate, beyond its burst.
#[derive(Debug)]
pub struct Policer {
    bucket: Bucket,
    since: Since,
}

impl Policer {
    /// One that begins with a full bucket.
    pub fn new(bucket: &TokenBucket) -> Self {
        Self { bucket: Bucket::new(bucket), since: Since::now() }
    }
}

impl Look for Policer {
    fn passes(&mut self, packet: &StdPacket) -> bool {
        self.bucket.passes(size(packet), self.since.nanos(packet.get_timestamp()))
    }
}

/// Lets what comes faster than its rate, beyond its burst, wait in a queue.
pub struct Shaper<Q> {
    bucket: Bucket,
    since: Since,
    queue: Q,
    /// The packet that leaves next, with the moment when it does.
    head: Option<StdPacket>,
}

impl<Q: PacketQueue<StdPacket> + 'static> Shaper<Q> {
    /// One that begins with a full bucket, and this queue behind the packet that leaves next.
    pub fn new(bucket: &TokenBucket, queue: Q) -> Self {
        Self { bucket: Bucket::new(bucket), since: Since::now(), queue, head: None }
    }

    fn advance(&mut self, now: Instant) {
        self.head = self.queue.dequeue();
        if let Some(head) = &mut self.head {
            let from = self.since.nanos(head.get_timestamp().max(now));
            let ready = self.bucket.take_when_ready(size(head), from);
            head.delay_until(self.since.at(ready));
        }
    }
}

impl<Q: PacketQueue<StdPacket> + 'static> Work for Shaper<Q> {
    fn take(&mut self, packet: StdPacket) {
        let now = packet.get_timestamp();
        self.queue.enqueue(packet);
        if self.head.is_none() {
            self.advance(now);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.head.as_ref().map(Packet::get_timestamp)
    }

    fn give(&mut self) -> Option<StdPacket> {
        let head = self.head.take()?;
        self.advance(head.get_timestamp());
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_units::{Bytes, Rate};
    use rattan_core::cells::bandwidth::BwType;
    use rattan_core::cells::bandwidth::queue::{DropTailQueue, DropTailQueueConfig};

    use super::*;

    const BUCKET: TokenBucket = TokenBucket { rate: Rate::from_mbps(8), burst: Bytes::new(5000) };

    /// A packet of a thousand bytes at the network layer.
    fn packet(at: Instant) -> StdPacket {
        let mut packet = StdPacket::from_raw_buffer(&[0; 1014]);
        packet.delay_until(at);
        packet
    }

    #[test]
    fn a_policer_passes_a_burst_and_then_its_rate() {
        let mut policer = Policer::new(&BUCKET);
        let start = Instant::now();
        // Four times the rate: a thousand bytes take a millisecond.
        let passed = (0..4008u64)
            .filter(|number| policer.passes(&packet(start + Duration::from_micros(number * 250))))
            .count();
        assert!((1005..=1007).contains(&passed), "{passed}");
    }

    #[test]
    fn a_shaper_lets_wait_what_its_queue_holds() {
        let queue = DropTailQueue::new(DropTailQueueConfig::new(10, None, BwType::NetworkLayer));
        let mut shaper = Shaper::new(&BUCKET, queue);
        let start = Instant::now();
        let mut left = Vec::new();
        for _ in 0..30 {
            shaper.take(packet(start));
            while shaper.next().is_some_and(|at| at <= start) {
                left.extend(shaper.give());
            }
        }
        while shaper.next().is_some() {
            left.extend(shaper.give());
        }
        let millis: Vec<_> = left
            .iter()
            .map(|packet| (packet.get_timestamp() - start + Duration::from_micros(1)).as_millis())
            .collect();
        // The burst, the one that leaves next, and the queue behind it.
        assert_eq!(millis, [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }
}
