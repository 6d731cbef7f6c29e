//! The parity of a stream: which code its blocks have, when they end, and what of it waits to leave.

use std::collections::VecDeque;

use units::{Duration, Rate, Ratio, Time};

use super::super::control::packet_size;
use super::super::fec::choice::{Limits, Losses, choose};
use super::super::fec::{Code, Encoder, Parity};
use super::super::queue::Packet;
use super::super::wire::{low_bits, micros};
use super::Fec;

/// Parity packets that wait.
const MOST_PARITY: usize = 512;
/// How often a code is chosen anew.
const CHOICE_INTERVAL: Duration = Duration::from_millis(500);
/// Parity takes no more of what the rate leaves free, and no more than there is media.
const MOST_OF_ROOM: f64 = 0.9;

/// A parity packet that waits.
#[derive(Clone, Debug)]
pub(super) struct ParityPacket {
    /// When the block's first and last packet came into the sender.
    pub(super) first_time: Time,
    last_time: Time,
    pub(super) first: u64,
    pub(super) media: u8,
    pub(super) parity: u8,
    pub(super) index: u8,
    pub(super) shard: Vec<u8>,
}

/// What the choice of a code depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    pub(super) losses: Losses,
    pub(super) latency: Duration,
    pub(super) rtt: Option<Duration>,
    /// How long a packet waits on the way at the moment, besides the shortest way.
    pub(super) queueing: Duration,
    pub(super) retransmit: bool,
    /// What may be sent, with headers.
    pub(super) allowed: Rate,
}

/// Makes parity.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    fec: Fec,
    encoder: Encoder,
    waiting: VecDeque<ParityPacket>,
    /// When the first and the last packet of the block that is open came into the sender.
    first_time: Time,
    last_time: Time,
    /// For `Fec::Auto`: the code of the next block.
    chosen: Option<Code>,
    last_choice: Option<Time>,
    /// Media packets since the last choice.
    packets: u64,
    /// The mean time between media packets.
    interval: Option<Duration>,
}

impl Protection {
    pub(super) fn new(fec: Fec) -> Self {
        Self {
            fec,
            encoder: Encoder::default(),
            waiting: VecDeque::new(),
            first_time: Time::ZERO,
            last_time: Time::ZERO,
            chosen: None,
            last_choice: None,
            packets: 0,
            interval: None,
        }
    }

    /// The code of the next block; `None`: it gets no parity.
    pub(super) fn code(&self) -> Option<Code> {
        match self.fec {
            Fec::Off => None,
            Fec::Fixed(code) => Some(code),
            Fec::Auto => self.chosen,
        }
    }

    /// Parity packets that wait to leave.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn front(&self) -> Option<&ParityPacket> {
        self.waiting.front()
    }

    pub(super) fn pop(&mut self) -> Option<ParityPacket> {
        self.waiting.pop_front()
    }

    /// A media packet leaves for the first time.
    pub(super) fn protect(&mut self, sequence: u64, packet: &Packet, now: Time) {
        self.packets += 1;
        if self.encoder.opened().is_none() {
            self.first_time = packet.time;
        }
        self.last_time = packet.time;
        let time = low_bits(micros(packet.time));
        let parity = self.encoder.push(self.code(), sequence, time, &packet.payload, now);
        self.queue(parity);
    }

    /// When the block that is open has to end, with fewer packets than it may have: its parity has to come in time for its
    /// first packet.
    pub(super) fn deadline(&self, latency: Duration, queueing: Duration) -> Time {
        let Some(opened) = self.encoder.opened() else { return Time::NEVER };
        let in_time = self.first_time + (latency - queueing) * 3 / 4;
        // A packet that has waited for long does not make a block of its own.
        (opened + latency / 2).min(in_time).max(opened + latency / 8)
    }

    /// Ends the block that is open.
    pub(super) fn close(&mut self) {
        let parity = self.encoder.close();
        self.queue(parity);
    }

    /// Forgets parity of blocks whose last packet came into the sender before `oldest`.
    pub(super) fn expire(&mut self, oldest: Time) {
        while self.waiting.front().is_some_and(|packet| packet.last_time < oldest) {
            self.waiting.pop_front();
        }
    }

    /// Whether [`Self::choose`] has something to decide.
    pub(super) fn is_to_choose(&self, now: Time) -> bool {
        self.fec == Fec::Auto && self.last_choice.is_none_or(|last| now.since(last) >= CHOICE_INTERVAL)
    }

    /// Decides on the code of the next blocks.
    pub(super) fn choose(&mut self, situation: &Situation, now: Time) {
        let since = self.last_choice.replace(now).map(|last| now.since(last));
        let packets = std::mem::take(&mut self.packets);
        if let Some(since) = since.filter(|_| packets > 0) {
            let measured = since / packets;
            self.interval = Some(self.interval.map_or(measured, |before| (before + measured) / 2));
        }
        let Some(interval) = self.interval else { return };
        let media = Rate::of(packet_size(), interval);
        let again = if situation.retransmit { situation.losses.rate } else { 0.0 };
        let room = (situation.allowed.ratio_to(media) - 1.0 - again) * MOST_OF_ROOM;
        let share = Ratio::from_f64(room.min(1.0));
        let Situation { latency, queueing, rtt, retransmit, losses, .. } = *situation;
        self.chosen = choose(losses, Limits::new(latency - queueing, interval, rtt, retransmit, share));
    }

    fn queue(&mut self, parity: Option<Parity>) {
        let Some(Parity { first, media, shards }) = parity else { return };
        let parity = u8::try_from(shards.len()).unwrap_or(u8::MAX);
        let (first_time, last_time) = (self.first_time, self.last_time);
        self.waiting.extend((0..parity).zip(shards).map(|(index, shard)| ParityPacket {
            first_time,
            last_time,
            first,
            media,
            parity,
            index,
            shard,
        }));
        while self.waiting.len() > MOST_PARITY {
            self.waiting.pop_front();
        }
    }
}
