//! The parity of a stream: which code its blocks have, when they end, and what of it waits to leave.

use std::collections::VecDeque;

use units::{Duration, Rate, Ratio, Time};

use super::super::bursts::Recent;
use super::super::control::packet_size;
use super::super::fec::choice::{BLOCK, Limits, Losses, choose};
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

/// The media of a block of a fixed code leaves within this part of the time that there is.
const MOST_OF_BLOCK: Ratio = Ratio::new(3, 4);
/// Parity leaves within this part of what is left of the time.
const MOST_OF_REST: Ratio = Ratio::new(4, 5);

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
pub(super) struct Situation<'a> {
    pub(super) losses: Losses,
    pub(super) recent: &'a Recent,
    /// Within so long a packet has to leave.
    pub(super) time: Duration,
    /// The round trip when packets are lost.
    pub(super) rtt: Option<Duration>,
    pub(super) retransmit: bool,
    /// What may be sent, with headers, and what of it what waits has to have.
    pub(super) allowed: Rate,
    pub(super) catch_up: Rate,
}

/// Makes parity.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    fec: Fec,
    encoder: Encoder,
    /// Parity whose time to leave has come, and parity that leaves later.
    waiting: VecDeque<ParityPacket>,
    later: VecDeque<(Time, ParityPacket)>,
    /// When the first and the last packet of the block that is open came into the sender.
    first_time: Time,
    last_time: Time,
    /// Within so long a packet has to leave.
    time: Duration,
    /// For `Fec::Auto`: the code of the next block.
    chosen: Option<Code>,
    /// The rate of the parity that there is no room for.
    lacking: Rate,
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
            later: VecDeque::new(),
            first_time: Time::ZERO,
            last_time: Time::ZERO,
            time: Duration::ZERO,
            chosen: None,
            lacking: Rate::ZERO,
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

    /// Parity packets that wait to leave now.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn front(&self) -> Option<&ParityPacket> {
        self.waiting.front()
    }

    pub(super) fn pop(&mut self) -> Option<ParityPacket> {
        self.waiting.pop_front()
    }

    /// Packets come in time that leave within `time` of when they came into the sender.
    pub(super) fn set_time(&mut self, time: Duration) {
        self.time = time;
    }

    /// Parity whose time has come waits to leave.
    pub(super) fn tick(&mut self, now: Time) {
        while let Some((_, packet)) = self.later.pop_front_if(|(leaves, _)| *leaves <= now) {
            self.waiting.push_back(packet);
        }
        while self.waiting.len() > MOST_PARITY {
            self.waiting.pop_front();
        }
    }

    /// A media packet leaves for the first time.
    pub(super) fn protect(&mut self, sequence: u64, packet: &Packet, now: Time) {
        self.packets += 1;
        if self.encoder.opened().is_none() {
            self.first_time = packet.time;
        }
        self.last_time = packet.time;
        let time = low_bits(micros(packet.time));
        let opened = self.encoder.opened().unwrap_or(now);
        let parity = self.encoder.push(self.code(), sequence, time, &packet.payload, now);
        self.queue(parity, opened, now);
    }

    /// When the next parity leaves.
    pub(super) fn next_leaves(&self) -> Time {
        self.later.front().map_or(Time::NEVER, |(leaves, _)| *leaves)
    }

    /// When the block that is open has to end, with fewer packets than it may have: its parity has to come in time for its
    /// first packet.
    pub(super) fn deadline(&self, latency: Duration) -> Time {
        let Some(opened) = self.encoder.opened() else { return Time::NEVER };
        let part = if self.fec == Fec::Auto { BLOCK } else { MOST_OF_BLOCK };
        // A packet that has waited for long does not make a block of its own.
        (opened + latency / 2).min(self.first_time + self.time * part).max(opened + latency / 8)
    }

    /// Ends the block that is open.
    pub(super) fn close(&mut self, now: Time) {
        let opened = self.encoder.opened().unwrap_or(now);
        let parity = self.encoder.close();
        self.queue(parity, opened, now);
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
    pub(super) fn choose(&mut self, situation: &Situation<'_>, now: Time) {
        let since = self.last_choice.replace(now).map(|last| now.since(last));
        let packets = std::mem::take(&mut self.packets);
        if let Some(since) = since.filter(|_| packets > 0) {
            let measured = since / packets;
            self.interval = Some(self.interval.map_or(measured, |before| (before + measured) / 2));
        }
        let Some(interval) = self.interval else { return };
        let media = Rate::of(packet_size(), interval);
        let again = if situation.retransmit { situation.losses.rate } else { 0.0 };
        let room = ((situation.allowed - situation.catch_up).ratio_to(media) - 1.0 - again) * MOST_OF_ROOM;
        let share = Ratio::from_f64(room.min(1.0));
        let Situation { time, rtt, retransmit, losses, recent, .. } = *situation;
        let limits = Limits::new(time, interval, rtt.filter(|_| retransmit), share);
        let most_lost = |packets: usize| recent.most_lost(packets);
        self.chosen = choose(losses, most_lost, limits);
        let needed = choose(losses, most_lost, Limits { share: Ratio::ONE, ..limits });
        self.lacking = needed.map_or(Rate::ZERO, |needed| {
            let lacking = needed.parity().saturating_sub(self.chosen.map_or(0, Code::parity));
            media * Ratio::new(lacking.into(), needed.media().max(1).into())
        });
    }

    /// The rate that parity needs besides what is sent.
    pub(super) fn lacking(&self) -> Rate {
        self.lacking
    }

    /// The parity of a block leaves in as long a time as its media did: what takes some packets in a row, such as a queue that is full
    /// beside a TCP flow, then hardly takes all of it, and it does not fill the queue itself.
    fn queue(&mut self, parity: Option<Parity>, opened: Time, now: Time) {
        let Some(Parity { first, media, shards }) = parity else { return };
        let parity = u8::try_from(shards.len()).unwrap_or(u8::MAX);
        let (first_time, last_time) = (self.first_time, self.last_time);
        let left = (first_time + self.time).since(now) * MOST_OF_REST;
        let spacing = now.since(opened).min(left) / u64::from(parity.max(1));
        self.later.extend((0..parity).zip(shards).map(|(index, shard)| {
            let leaves = now + spacing * (u64::from(index) + 1);
            (leaves, ParityPacket { first_time, last_time, first, media, parity, index, shard })
        }));
        while self.later.len() > MOST_PARITY {
            self.later.pop_front();
        }
    }
}
