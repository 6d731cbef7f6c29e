//! A queue under PIE (RFC 8033) in real time. The delay is the age of its oldest packet.

use std::collections::VecDeque;

use anabranch_queues::{Codepoint, PieState, Verdict};
use anabranch_scenario::model::Pie;
use anabranch_scenario::random::Random;
use rattan_core::cells::Packet;
use rattan_core::cells::bandwidth::queue::PacketQueue;
use tokio::time::Instant;

use super::since::Since;

/// Of so few bytes nothing is dropped early: two mean packets.
const FEW: usize = 2 * 1500;

/// The queue. Its first packet is the oldest.
#[derive(Debug)]
pub struct PieQueue<P> {
    waiting: VecDeque<P>,
    bytes: usize,
    limit: usize,
    state: PieState,
    random: Random,
    since: Since,
}

impl<P: Packet> PieQueue<P> {
    /// One that holds so many packets.
    pub fn new(pie: Pie, limit: usize, seed: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit,
            state: PieState::new(pie),
            random: Random::new(seed, 0),
            since: Since::now(),
        }
    }

    /// How long the first packet has waited at a moment.
    fn delay(&self) -> impl Fn(u64) -> u64 + use<P> {
        let came = self.waiting.front().map(|packet| self.since.nanos(packet.get_timestamp()));
        move |at| came.map_or(0, |came| at.saturating_sub(came))
    }
}

impl<P: Packet> PacketQueue<P> for PieQueue<P> {
    type Config = ();

    fn configure(&mut self, (): ()) {}

    fn enqueue(&mut self, packet: P) {
        let now = self.since.nanos(packet.get_timestamp());
        let (is_short, delay) = (self.bytes <= FEW, self.delay());
        if self.waiting.len() >= self.limit {
            return;
        }
        // The header's codepoint is not read: a scenario that asks for marks is refused.
        let verdict = self.state.judge(Codepoint::NotEct, is_short, now, delay, &mut self.random);
        if verdict != Verdict::Dropped {
            self.bytes += packet.l3_length();
            self.waiting.push_back(packet);
        }
    }

    fn dequeue(&mut self) -> Option<P> {
        self.state.update(self.since.nanos(Instant::now()), self.delay());
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.l3_length();
        Some(packet)
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn get_front_size(&self) -> Option<usize> {
        self.waiting.front().map(Packet::l3_length)
    }

    fn length(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rattan_core::cells::StdPacket;

    use super::*;

    /// Offers a packet a millisecond; how many stay while one in two milliseconds leaves if `is_slow`, else all do.
    async fn kept(is_slow: bool) -> usize {
        let target = anabranch_units::Duration::from_millis(15);
        let mut queue = PieQueue::<StdPacket>::new(Pie { target, ecn: false }, 100_000, 1);
        let mut left = 0;
        for number in 0..4000 {
            let mut packet = StdPacket::from_raw_buffer(&[0; 1514]);
            packet.delay_until(Instant::now());
            queue.enqueue(packet);
            if !is_slow || number % 2 == 0 {
                left += usize::from(queue.dequeue().is_some());
            }
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        left + queue.length()
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_leave_is_dropped_until_the_delay_is_short() {
        assert_eq!(kept(false).await, 4000);
        // Half of it can leave. What stays beyond that is the queue that its start has built.
        let kept = kept(true).await;
        assert!((2000..2600).contains(&kept), "{kept}");
    }
}
