//! An encoder, a live sender that tells it a rate, a link whose capacity changes, and a live receiver, in
//! virtual time.

use anabranch_live::{
    ConnectionId, Fec, PACKET_OVERHEAD, Receiver, Scheme, Sender, SenderStatus, Settings, UplinkId,
};
use anabranch_testkit::Events;
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::link::Link;

const ID: ConnectionId = ConnectionId(0);
pub const PAYLOAD: usize = 1316;
/// Pictures come so often, a key frame every two seconds, which is three times as large as others.
const PICTURE: Duration = Duration::from_millis(40);
const PICTURES: u64 = 50;
const KEY: u64 = 3;
/// The rule is asked so often, and what it says is in the pictures so much later.
const ASKED: Duration = Duration::from_millis(50);
const LAG: Duration = Duration::from_millis(150);
/// Rates of the encoder.
pub const LEAST: Rate = Rate::from_kbps(200);
const START: Rate = Rate::from_kbps(800);

/// Which rate the encoder takes.
pub trait Rule {
    /// From what the sender tells.
    fn rate(&mut self, status: &SenderStatus, now: Time) -> Rate;
}

/// The rate that the sender tells.
pub struct Told;

impl Rule for Told {
    fn rate(&mut self, status: &SenderStatus, _: Time) -> Rate {
        status.fitting_rate
    }
}

/// A link.
#[derive(Clone, Debug)]
pub struct Path {
    pub rtt: Duration,
    pub queue: usize,
    pub loss: f64,
    /// The capacity from each of these times on, in the order of time.
    pub capacity: Vec<(Duration, Rate)>,
    pub most: Rate,
}

impl Path {
    /// Bytes that it carries between two times.
    pub fn carries(&self, from: Duration, to: Duration) -> Bytes {
        let ends = self.capacity.iter().skip(1).map(|(time, _)| *time).chain([Duration::MAX]);
        let parts = self.capacity.iter().zip(ends);
        parts.fold(Bytes::ZERO, |sum, ((begins, rate), ends)| {
            sum + rate.amount_in(ends.min(to) - (*begins).max(from))
        })
    }
}

enum Event {
    ToReceiver(Vec<u8>),
    ToSender(Vec<u8>),
    Picture(u64),
    Ask,
    Encode(Rate),
    Capacity(Rate),
}

/// A packet that came into the sender.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub at: Duration,
    pub size: Bytes,
    pub has_come: bool,
}

/// What came of a run: times are since the film began.
#[derive(Debug, Default)]
pub struct Outcome {
    pub packets: Vec<Packet>,
    /// What the encoder made, at each change.
    pub rates: Vec<(Duration, Rate)>,
}

impl Outcome {
    /// Packets of a time, and those of them that are missing.
    pub fn missing(&self, from: Duration, to: Duration) -> (usize, usize) {
        let of = || self.packets.iter().filter(move |packet| from <= packet.at && packet.at < to);
        (of().count(), of().filter(|packet| !packet.has_come).count())
    }

    /// Bytes that came, with the headers of one datagram each.
    pub fn came(&self, from: Duration, to: Duration) -> Bytes {
        let of = self.packets.iter().filter(|packet| packet.has_come && from <= packet.at && packet.at < to);
        of.fold(Bytes::ZERO, |sum, packet| sum + packet.size + HEADERS)
    }

    /// What the encoder made in the mean of a time.
    pub fn made(&self, from: Duration, to: Duration) -> Rate {
        let of = self.packets.iter().filter(|packet| from <= packet.at && packet.at < to);
        Rate::of(of.fold(Bytes::ZERO, |sum, packet| sum + packet.size), to - from)
    }

    /// What the encoder makes at a time.
    pub fn rate_at(&self, time: Duration) -> Rate {
        let before = self.rates.iter().rev().find(|(at, _)| *at <= time);
        before.map_or(Rate::ZERO, |(_, rate)| *rate)
    }
}

/// Of a datagram with media, with the number that is in the payload here.
pub const HEADERS: Bytes = Bytes::new(35 + 58);

/// Runs an encoder by a rule for so long.
pub fn run(path: &Path, latency: Duration, rule: &mut dyn Rule, length: Duration, seed: u64) -> Outcome {
    let settings = Settings {
        latency,
        retransmit: true,
        fec: Fec::Off,
        leave_out_stuffing: false,
        scheme: Scheme::AUTO,
        is_published: false,
    };
    let (mut sender, mut receiver) = (Sender::new(settings), Receiver::new(latency, 0));
    assert!(sender.connection_up(ID, UplinkId(0), path.rtt) && receiver.connection_up(ID));
    let link = |loss, queue, seed| Link::new(path.capacity[0].1, path.rtt / 2, queue, (loss, 1.0), seed);
    let (mut data, mut reports) = (link(path.loss, path.queue, seed), link(0.0, 1000, seed + 1));
    let mut events = Events::default();
    // Not at the epoch, and connected before the film begins.
    let start = Time::ZERO + Duration::from_secs(3);
    let mut now = Time::ZERO + Duration::from_secs(1);
    events.put(start, Event::Picture(0));
    events.put(start, Event::Ask);
    for (time, rate) in &path.capacity {
        events.put(start + *time, Event::Capacity(*rate));
    }
    let (mut rate, mut outcome) = (START, Outcome::default());
    let end = start + length + latency + path.rtt * 2;
    loop {
        while let Some((_, datagram)) = sender.transmit(now) {
            if let Some(arrival) = data.send(Bytes::of(datagram.len()) + PACKET_OVERHEAD, now) {
                events.put(arrival, Event::ToReceiver(datagram));
            }
        }
        while let Some((_, datagram)) = receiver.transmit(now) {
            if let Some(arrival) = reports.send(Bytes::of(datagram.len()) + PACKET_OVERHEAD, now) {
                events.put(arrival, Event::ToSender(datagram));
            }
        }
        while let Some(payload) = receiver.deliver(now) {
            let number = payload[..8].iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
            outcome.packets[number].has_come = true;
        }
        let next = events.next().min(sender.deadline(now)).min(receiver.deadline()).max(now);
        if next > end {
            return outcome;
        }
        now = next;
        let at = now.since(start);
        match events.due(now) {
            None => {}
            Some(Event::ToReceiver(datagram)) => assert_eq!(receiver.receive(ID, &datagram, now), Ok(())),
            Some(Event::ToSender(datagram)) => assert_eq!(sender.receive(ID, &datagram, now), Ok(())),
            Some(Event::Picture(number)) => {
                let weight = if number % PICTURES == 0 { KEY } else { 1 };
                let group = rate.amount_in(PICTURE * PICTURES);
                let size = Bytes::new(group.get() * weight / (PICTURES + KEY - 1));
                let mut left = size.as_usize().max(PAYLOAD / 7);
                while left > 0 {
                    let length = left.clamp(8, PAYLOAD);
                    let mut payload = vec![0; length];
                    payload[..8].copy_from_slice(&(outcome.packets.len() as u64).to_be_bytes());
                    outcome.packets.push(Packet { at, size: Bytes::of(length), has_come: false });
                    sender.push(&payload, now);
                    left = left.saturating_sub(PAYLOAD);
                }
                if at < length {
                    events.put(now + PICTURE, Event::Picture(number + 1));
                }
            }
            Some(Event::Ask) => {
                let told = rule.rate(&sender.status(), now);
                events.put(now + LAG, Event::Encode(told));
                events.put(now + ASKED, Event::Ask);
            }
            Some(Event::Encode(told)) => {
                rate = if told.is_zero() && at < Duration::from_secs(1) {
                    rate
                } else {
                    told.clamp(LEAST, path.most)
                };
                outcome.rates.push((at, rate));
            }
            Some(Event::Capacity(rate)) => data.rate = rate,
        }
    }
}
