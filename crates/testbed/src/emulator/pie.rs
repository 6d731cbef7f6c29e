//! A queue under PIE (RFC 8033) in real time. The delay is the age of its oldest packet.

use std::collections::VecDeque;

use anabranch_scenario::model::Pie;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rattan_core::cells::Packet;
use rattan_core::cells::bandwidth::queue::PacketQueue;
use tokio::time::{Duration, Instant};

/// T_UPDATE.
const UPDATE: Duration = Duration::from_millis(15);
/// MAX_BURST.
const BURST: Duration = Duration::from_millis(150);
/// ALPHA and BETA, per second.
const GAINS: (f64, f64) = (0.125, 1.25);
/// Below a probability of the first the gains are divided by the second.
const SCALE: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// Of so few bytes nothing is dropped early: two mean packets.
const FEW: usize = 2 * 1500;

/// The queue. Its first packet is the oldest.
#[derive(Debug)]
pub struct PieQueue<P> {
    waiting: VecDeque<P>,
    bytes: usize,
    limit: usize,
    target: f64,
    probability: f64,
    /// The delay of the last update, in seconds.
    before: f64,
    burst: Duration,
    next_update: Option<Instant>,
    random: StdRng,
}

impl<P: Packet> PieQueue<P> {
    /// One that holds so many packets.
    pub fn new(pie: Pie, limit: usize, seed: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit,
            target: pie.target.as_secs_f64(),
            probability: 0.0,
            before: 0.0,
            burst: BURST,
            next_update: None,
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// How long the first packet has waited.
    fn delay(&self, now: Instant) -> f64 {
        let since = self.waiting.front().map(Packet::get_timestamp);
        since.map_or(0.0, |since| now.saturating_duration_since(since).as_secs_f64())
    }

    /// The updates that were due until now.
    fn update_until(&mut self, now: Instant) {
        let mut at = self.next_update.unwrap_or(now + UPDATE);
        while at <= now {
            self.update(self.delay(at));
            at += UPDATE;
        }
        self.next_update = Some(at);
    }

    fn update(&mut self, delay: f64) {
        let change = GAINS.0 * (delay - self.target) + GAINS.1 * (delay - self.before);
        let scale = SCALE.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, by)| *by);
        let change = change / scale;
        // No more than two percent at a time where it is high.
        let change = if self.probability >= 0.1 { change.min(0.02) } else { change };
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        if delay <= 0.0 && self.before <= 0.0 {
            self.probability *= 0.98;
        }
        let is_calm = self.probability <= 0.0 && delay.max(self.before) < self.target / 2.0;
        self.burst = if is_calm { BURST } else { self.burst.saturating_sub(UPDATE) };
        self.before = delay;
    }

    fn drops_early(&mut self) -> bool {
        let is_safe = self.before < self.target / 2.0 && self.probability < 0.2;
        self.burst.is_zero() && !is_safe && self.bytes > FEW && self.random.random::<f64>() < self.probability
    }
}

impl<P: Packet> PacketQueue<P> for PieQueue<P> {
    type Config = ();

    fn configure(&mut self, (): ()) {}

    fn enqueue(&mut self, packet: P) {
        self.update_until(packet.get_timestamp());
        if self.waiting.len() < self.limit && !self.drops_early() {
            self.bytes += packet.l3_length();
            self.waiting.push_back(packet);
        }
    }

    fn dequeue(&mut self) -> Option<P> {
        self.update_until(Instant::now());
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
    use rattan_core::cells::StdPacket;

    use super::*;

    #[test]
    fn the_probability_follows_the_delay() {
        let target = anabranch_units::Duration::from_millis(15);
        let mut pie = PieQueue::<StdPacket>::new(Pie { target }, 1000, 1);
        let mut last = 0.0;
        for _ in 0..2000 {
            pie.update(0.05);
            assert!(pie.probability >= last);
            last = pie.probability;
        }
        assert!(last > 0.5 && pie.burst.is_zero(), "{last}");
        (0..4000).for_each(|_| pie.update(0.005));
        assert!(pie.probability <= 0.0 && pie.burst == BURST);
    }
}
