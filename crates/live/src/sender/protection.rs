//! The parity of a stream: which code its blocks have, when they end, and what of it waits to leave.

use std::collections::VecDeque;

use anabranch_protocol::live::wire::{low_bits, micros};
use anabranch_units::{Duration, Rate, Ratio, Time};

use super::super::bursts::Recent;
use super::super::control::packet_size;
use super::super::fec::choice::{BLOCK, Limits, Losses, choose};
use super::super::fec::{Code, Encoder, Parity};
use super::super::queue::Packet;

/// Whether and how parity is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fec {
    /// None.
    #[default]
    Off,
    /// Blocks of this code.
    Fixed(Code),
    /// As much as the losses that are measured ask for ([`crate::fec::choice`]).
    Auto,
}

/// Parity packets that wait.
const MOST_PARITY: usize = 4096;
/// How often a code is chosen anew.
const CHOICE_INTERVAL: Duration = Duration::from_millis(500);
/// Parity takes no more of what the rate leaves free.
const MOST_OF_ROOM: f64 = 0.9;
/// Most parity packets for a media packet.
const MOST_SHARE_ALONE: f64 = 1.0;
/// The same beside others, with all saved that can be. A block of one packet or two needs several: while
/// others keep a queue full it takes about every second packet of a slow stream.
const MOST_SHARE_BESIDE: f64 = 3.0;

/// Parity leaves within this part of what is left of the time.
const MOST_OF_REST: Ratio = Ratio::new(4, 5);

/// A parity packet that waits.
#[derive(Clone, Debug)]
pub(super) struct WaitingParity {
    /// When the block's first and last packet came into the sender.
    pub(super) first_time: Time,
    last_time: Time,
    pub(super) first: u64,
    pub(super) media: u8,
    pub(super) parity: u8,
    pub(super) index: u8,
    pub(super) shard: Vec<u8>,
}

/// How it is beside others that fill the queue; both from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// The part of the losses that is known too late to send anything again.
    pub(super) late: f64,
    /// What is left of what the stream saved of its rate.
    pub(super) saved: f64,
}

/// What the choice of a code depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    pub(super) losses: Losses,
    pub(super) recent: &'a Recent,
    /// Within so long a packet has to leave.
    pub(super) time: Duration,
    /// The round trip without a queue: one that the stream fills itself passes, and parity would only make it
    /// longer.
    pub(super) rtt: Option<Duration>,
    pub(super) retransmit: bool,
    /// Where others fill the queue.
    pub(super) beside: Option<Beside>,
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
    waiting: VecDeque<WaitingParity>,
    later: VecDeque<(Time, WaitingParity)>,
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

    pub(super) fn front(&self) -> Option<&WaitingParity> {
        self.waiting.front()
    }

    pub(super) fn pop(&mut self) -> Option<WaitingParity> {
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

    /// When the block that is open has to end, with fewer packets than it may have: its parity has to come in
    /// time for its first packet.
    pub(super) fn deadline(&self, latency: Duration) -> Time {
        let Some(opened) = self.encoder.opened() else { return Time::NEVER };
        // A packet that has waited for long does not make a block of its own.
        (opened + latency / 2).min(self.first_time + self.time * BLOCK).max(opened + latency / 8)
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
        let Situation { time, rtt, retransmit, losses, recent, beside, .. } = *situation;
        // What parity takes from the savings beside others the media lack later.
        let most = beside.map_or(MOST_SHARE_ALONE, |beside| MOST_SHARE_BESIDE * beside.saved);
        let share = Ratio::from_f64(room.min(most));
        let limits = Limits::new(time, interval, rtt.filter(|_| retransmit), share);
        let limits = match beside.filter(|_| retransmit) {
            Some(Beside { late, .. }) => Limits { attempts: limits.attempts.max(1), late, ..limits },
            None => limits,
        };
        let most_lost = |packets: usize| recent.most_lost(packets);
        self.chosen = choose(losses, most_lost, limits);
        let needed = choose(losses, most_lost, Limits { share: Ratio::from_f64(most), ..limits });
        self.lacking = needed.map_or(Rate::ZERO, |needed| {
            let lacking = needed.parity().saturating_sub(self.chosen.map_or(0, Code::parity));
            media * Ratio::new(lacking.into(), needed.media().max(1).into())
        });
    }

    /// The rate that parity needs besides what is sent.
    pub(super) fn lacking(&self) -> Rate {
        self.lacking
    }

    /// The parity of a block leaves evenly: what takes some packets in a row, such as a queue that is full
    /// beside a TCP flow, then hardly takes all of it, and it does not fill the queue itself. That of a fixed
    /// code leaves in as long a time as its media did, any other in all that is left: a block may be as short
    /// as a packet.
    fn queue(&mut self, parity: Option<Parity>, opened: Time, now: Time) {
        let Some(Parity { first, media, shards }) = parity else { return };
        let parity = u8::try_from(shards.len()).unwrap_or(u8::MAX);
        let (first_time, last_time) = (self.first_time, self.last_time);
        let left = (first_time + self.time).since(now) * MOST_OF_REST;
        let span = if self.fec == Fec::Auto { left } else { left.min(now.since(opened)) };
        let spacing = span / u64::from(parity.max(1));
        self.later.extend((0..parity).zip(shards).map(|(index, shard)| {
            let leaves = now + spacing * (u64::from(index) + 1);
            (leaves, WaitingParity { first_time, last_time, first, media, parity, index, shard })
        }));
        while self.later.len() > MOST_PARITY {
            self.later.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
