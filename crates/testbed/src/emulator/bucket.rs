//! A token bucket in real time: a policer that drops what finds it empty, and a shaper that lets it wait.

use anabranch_scenario::model::TokenBucket;
use rattan_core::cells::bandwidth::queue::PacketQueue;
use rattan_core::cells::{Packet, StdPacket};
use tokio::time::{Duration, Instant};

use super::cell::{Look, Work};

/// The bucket at work, in bytes of the network layer.
#[derive(Debug)]
struct Bucket {
    bytes_per_second: f64,
    most: f64,
    tokens: f64,
    counted: Option<Instant>,
}

impl Bucket {
    /// A full one.
    fn new(bucket: &TokenBucket) -> Self {
        let most = bucket.burst.as_f64();
        Self { bytes_per_second: bucket.rate.bytes_per_second(), most, tokens: most, counted: None }
    }

    fn fill(&mut self, now: Instant) {
        if let Some(since) = self.counted {
            let brought = now.saturating_duration_since(since).as_secs_f64() * self.bytes_per_second;
            self.tokens = (self.tokens + brought).min(self.most);
        }
        self.counted = self.counted.max(Some(now));
    }

    fn takes(&mut self, size: f64, now: Instant) -> bool {
        self.fill(now);
        let has_enough = self.tokens >= size;
        if has_enough {
            self.tokens -= size;
        }
        has_enough
    }

    /// When so much is there, from `now` on; it is taken then.
    fn take_when_ready(&mut self, size: f64, now: Instant) -> Instant {
        let now = self.counted.map_or(now, |counted| counted.max(now));
        self.fill(now);
        let size = size.min(self.most);
        let missing = (size - self.tokens).max(0.0) / self.bytes_per_second;
        let ready = now + Duration::from_secs_f64(missing);
        self.fill(ready);
        self.tokens -= size;
        ready
    }
}

fn size(packet: &StdPacket) -> f64 {
    anabranch_units::Bytes::of(packet.l3_length()).as_f64()
}

/// Drops what comes faster than its rate, beyond its burst.
#[derive(Debug)]
pub struct Policer(Bucket);

impl Policer {
    /// One that begins with a full bucket.
    pub fn new(bucket: &TokenBucket) -> Self {
        Self(Bucket::new(bucket))
    }
}

impl Look for Policer {
    fn passes(&mut self, packet: &StdPacket) -> bool {
        self.0.takes(size(packet), packet.get_timestamp())
    }
}

/// Lets what comes faster than its rate, beyond its burst, wait in a queue.
pub struct Shaper<Q> {
    bucket: Bucket,
    queue: Q,
    /// The packet that leaves next, with the moment when it does.
    head: Option<StdPacket>,
}

impl<Q: PacketQueue<StdPacket> + 'static> Shaper<Q> {
    /// One that begins with a full bucket, and this queue behind the packet that leaves next.
    pub fn new(bucket: &TokenBucket, queue: Q) -> Self {
        Self { bucket: Bucket::new(bucket), queue, head: None }
    }

    fn advance(&mut self, now: Instant) {
        self.head = self.queue.dequeue();
        if let Some(head) = &mut self.head {
            let from = head.get_timestamp().max(now);
            let ready = self.bucket.take_when_ready(size(head), from);
            head.delay_until(ready);
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
