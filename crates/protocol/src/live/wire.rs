//! The datagrams of `anabranch-live/1`, `docs/live-protocol.md` has them in words.
//!
//! Every datagram begins with its kind (1 byte) and what is special in it; integers are big endian. Counters and times are
//! the low bits of what the sender counts: [`expand`] and [`Width::expand`] find the rest. Times are in microseconds of
//! the sender's clock.

use anabranch_units::{Duration, Rate, Time};

pub use super::packed::MAX_PAYLOAD;
use super::packed::{MAX_PACKED, has_left_out};

/// What a media datagram has in front of its payload as a rule: kind, sequence, timestamp, round-trip time, number, age.
pub const MEDIA_HEADER: usize = 1 + 2 + 4 + 2 + 2 + 2;
/// The most that it has: wide numbers, several connections, an age of four bytes.
pub const MAX_MEDIA_HEADER: usize = MAX_HEADER + 4 + 4;
/// The most that a parity datagram has in front of its shard.
pub const MAX_PARITY_HEADER: usize = MAX_HEADER + 4 + 3;
/// The most that is for the control of the rate, the kind included.
const MAX_HEADER: usize = 1 + 4 + 4 + 2 + 2 + 1 + 4;
/// What a packet has in front of its payload when it is a shard: its length and its time.
pub const SHARD_HEADER: usize = 6;
/// Longest shard of a block, which are all of one length, an even one.
pub const MAX_SHARD: usize = (SHARD_HEADER + MAX_PACKED).next_multiple_of(2);
/// Most media packets in a block, and most parity packets.
pub const MAX_BLOCK: u8 = 128;
/// Most ranges of packets that arrived in one report.
pub const MAX_RANGES: usize = 32;
/// Longest map of media packets in a report, a bit for each.
pub const MAX_MAP: usize = 64;
/// Parts of a connection in which their number is told.
pub const FLOWS_UNIT: f64 = 64.0;
/// Bits of a round-trip time that travel.
const MANTISSA_BITS: u32 = 12;
/// No datagram is longer.
pub const MAX_DATAGRAM: usize = MAX_PARITY_HEADER + MAX_SHARD;
const _: () = assert!(MAX_MEDIA_HEADER + MAX_PACKED <= MAX_DATAGRAM);

const MEDIA: u8 = 1;
const PARITY: u8 = 2;
const PROBE: u8 = 3;
const REPORT: u8 = 4;
const ACKNOWLEDGEMENT: u8 = 5;
/// The kind is in these bits; the others say what is special.
const KIND: u8 = 0x07;
/// Numbers have four bytes.
const WIDE: u8 = 0x08;
/// This connection stands for several, or did.
const SEVERAL: u8 = 0x10;
/// The age has four bytes.
const OLD: u8 = 0x20;
const AGAIN: u8 = 0x40;
const PACKED: u8 = 0x80;

/// How many low bits of its counters a datagram tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 16: the counters are within 2^15 of what the receiver expects.
    Narrow,
    /// 32.
    Wide,
}

impl Width {
    /// The low bits of a counter that travel.
    pub fn low(self, counter: u64) -> u32 {
        match self {
            Self::Narrow => low_bits(counter) & u32::from(u16::MAX),
            Self::Wide => low_bits(counter),
        }
    }

    /// The counter with these low bits that is nearest to `near`.
    pub fn expand(self, low: u32, near: u64) -> u64 {
        match self {
            Self::Narrow => nearest(low.wrapping_sub(low_bits(near)) & u32::from(u16::MAX), 16, near),
            Self::Wide => expand(low, near),
        }
    }
}

/// What a datagram of the sender says for the control of its connection's rate (RFC 5348, section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How many bits its counters and those of its content have.
    pub width: Width,
    /// Counts the datagrams of a connection, from zero.
    pub sequence: u32,
    /// When it was sent.
    pub timestamp: u32,
    /// The sender's estimate of the round-trip time in microseconds; zero: none yet. Its twelve highest bits travel.
    pub rtt: u32,
    /// How many connections of TCP this one stands for, and did; `None`: it is one, and was no other.
    pub several: Option<Several>,
}

/// A connection that stands for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Several {
    /// How many connections of TCP, in parts of 64 ([`FLOWS_UNIT`]).
    pub flows: u16,
    /// Which of them this datagram belongs to.
    pub member: u8,
    /// Counts that one's datagrams, from zero.
    pub member_sequence: u32,
}

/// What a datagram of the sender brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A packet of the stream.
    Media {
        /// Counts the packets of the stream; as many low bits as its header says.
        sequence: u32,
        /// When it came into the sender.
        time: u32,
        /// Whether it was sent before.
        is_again: bool,
        /// Whether something was left out of the payload.
        is_packed: bool,
        /// 1 to [`MAX_PAYLOAD`] bytes of the stream, or what [`super::packed`] made of them.
        payload: &'a [u8],
    },
    /// A parity packet of a block.
    Parity {
        /// The block's first media packet; low 32 bits.
        first: u32,
        /// Media packets in the block, 1 to [`MAX_BLOCK`].
        media: u8,
        /// Parity packets of the block, 1 to [`MAX_BLOCK`].
        parity: u8,
        /// Which of them this is.
        index: u8,
        /// Above [`SHARD_HEADER`], to [`MAX_SHARD`] bytes, an even number.
        shard: &'a [u8],
    },
    /// Nothing: it asks for a report.
    Probe,
}

/// How fast data arrives, for the control of the rate (RFC 5348, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateReport {
    /// The timestamp of the newest datagram.
    pub timestamp: u32,
    /// How long the receiver has had it.
    pub delay: Duration,
    /// X_recv.
    pub receive_rate: Rate,
    /// p, from zero to one.
    pub loss_event_rate: f64,
}

/// What a receiver reports on a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// For the control of the rate; a mere acknowledgement has none.
    pub rate: Option<RateReport>,
    /// Runs of datagrams of this connection that arrived: the last of each, low 32 bits, and how many. Newest
    /// first, at most [`MAX_RANGES`].
    pub arrived: Vec<(u32, u16)>,
    /// All media packets below are had or given up; low 32 bits.
    pub settled: u32,
    /// A bit for each media packet from there on, the first in the lowest bit of the first byte: whether it
    /// is had. At most [`MAX_MAP`] bytes.
    pub had: Vec<u8>,
}

/// A datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Datagram<'a> {
    /// From the sender.
    Data(Header, Content<'a>),
    /// From the receiver.
    Report(Report),
}

/// Why bytes are no datagram of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// No such kind in this version.
    #[error("datagram of unknown kind")]
    Kind,
    /// Shorter than its kind needs, or longer than it may be.
    #[error("datagram of an impossible length")]
    Length,
    /// A number that cannot be.
    #[error("datagram with an impossible number")]
    Number,
}

impl<'a> Datagram<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is none of this protocol.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DatagramError> {
        if bytes.len() > MAX_DATAGRAM {
            return Err(DatagramError::Length);
        }
        let mut input = Input(bytes);
        let first = input.u8()?;
        let (kind, flags) = (first & KIND, first & !KIND);
        let known = match kind {
            MEDIA => WIDE | SEVERAL | OLD | AGAIN | PACKED,
            PARITY | PROBE => WIDE | SEVERAL,
            _ => 0,
        };
        if flags & !known > 0 {
            return Err(DatagramError::Kind);
        }
        if matches!(kind, REPORT | ACKNOWLEDGEMENT) {
            return Ok(Self::Report(input.report(kind == REPORT)?));
        }
        if !matches!(kind, MEDIA | PARITY | PROBE) {
            return Err(DatagramError::Kind);
        }
        let header = input.header(flags)?;
        let content = match kind {
            MEDIA => input.media(flags, &header)?,
            PARITY => input.parity()?,
            _ => {
                input.end()?;
                Content::Probe
            }
        };
        Ok(Self::Data(header, content))
    }
}

/// The rest of a datagram.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DatagramError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(DatagramError::Length)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, DatagramError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, DatagramError> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, DatagramError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, DatagramError> {
        self.take().map(u64::from_be_bytes)
    }

    fn end(&self) -> Result<(), DatagramError> {
        if self.0.is_empty() { Ok(()) } else { Err(DatagramError::Length) }
    }

    fn counter(&mut self, width: Width) -> Result<u32, DatagramError> {
        match width {
            Width::Narrow => self.u16().map(u32::from),
            Width::Wide => self.u32(),
        }
    }

    fn header(&mut self, flags: u8) -> Result<Header, DatagramError> {
        let width = if flags & WIDE > 0 { Width::Wide } else { Width::Narrow };
        let (sequence, timestamp, short) = (self.counter(width)?, self.u32()?, self.u16()?);
        let several = if flags & SEVERAL > 0 {
            let (flows, member, member_sequence) = (self.u16()?, self.u8()?, self.counter(width)?);
            Some(Several { flows, member, member_sequence })
        } else {
            None
        };
        let rtt = round_trip(short);
        // Each time has one form.
        if short_round_trip(rtt) != short {
            return Err(DatagramError::Number);
        }
        Ok(Header { width, sequence, timestamp, rtt, several })
    }

    fn media(&mut self, flags: u8, header: &Header) -> Result<Content<'a>, DatagramError> {
        let (is_again, is_packed) = (flags & AGAIN > 0, flags & PACKED > 0);
        let sequence = self.counter(header.width)?;
        let age = if flags & OLD > 0 { self.u32()? } else { self.u16()?.into() };
        if flags & OLD > 0 && u16::try_from(age).is_ok() {
            return Err(DatagramError::Number);
        }
        let time = header.timestamp.wrapping_sub(age);
        let most = if is_packed { MAX_PACKED } else { MAX_PAYLOAD };
        if !(1..=most).contains(&self.0.len()) {
            return Err(DatagramError::Length);
        }
        if is_packed && !has_left_out(self.0) {
            return Err(DatagramError::Number);
        }
        Ok(Content::Media { sequence, time, is_again, is_packed, payload: self.0 })
    }

    fn parity(&mut self) -> Result<Content<'a>, DatagramError> {
        let (first, media, parity, index) = (self.u32()?, self.u8()?, self.u8()?, self.u8()?);
        let is_block = (1..=MAX_BLOCK).contains(&media) && (1..=MAX_BLOCK).contains(&parity);
        if !is_block || index >= parity {
            return Err(DatagramError::Number);
        }
        if !(SHARD_HEADER + 1..=MAX_SHARD).contains(&self.0.len()) || !self.0.len().is_multiple_of(2) {
            return Err(DatagramError::Length);
        }
        Ok(Content::Parity { first, media, parity, index, shard: self.0 })
    }

    fn report(&mut self, has_rate: bool) -> Result<Report, DatagramError> {
        let rate = if has_rate { Some(self.rate()?) } else { None };
        let count = usize::from(self.u8()?);
        if count > MAX_RANGES {
            return Err(DatagramError::Number);
        }
        let mut arrived = Vec::with_capacity(count);
        for _ in 0..count {
            let (last, length) = (self.u32()?, self.u16()?);
            if length == 0 {
                return Err(DatagramError::Number);
            }
            arrived.push((last, length));
        }
        let settled = self.u32()?;
        if self.0.len() > MAX_MAP {
            return Err(DatagramError::Length);
        }
        Ok(Report { rate, arrived, settled, had: self.0.to_vec() })
    }

    fn rate(&mut self) -> Result<RateReport, DatagramError> {
        let (timestamp, delay) = (self.u32()?, Duration::from_micros(self.u32()?.into()));
        let receive_rate = Rate::from_bps(self.u64()?);
        let loss_event_rate = f64::from_bits(self.u64()?);
        if !(0.0..=1.0).contains(&loss_event_rate) {
            return Err(DatagramError::Number);
        }
        Ok(RateReport { timestamp, delay, receive_rate, loss_event_rate })
    }
}

/// The bytes of a datagram of the sender. A payload or shard beyond its bounds gives a datagram that no
/// receiver takes.
pub fn encode_data(header: Header, content: Content<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MAX_DATAGRAM);
    let (kind, age) = match content {
        Content::Media { time, is_again, is_packed, .. } => {
            let age = header.timestamp.wrapping_sub(time);
            let of = |is: bool, flag| if is { flag } else { 0 };
            let special = of(u16::try_from(age).is_err(), OLD) | of(is_again, AGAIN) | of(is_packed, PACKED);
            (MEDIA | special, age)
        }
        Content::Parity { .. } => (PARITY, 0),
        Content::Probe => (PROBE, 0),
    };
    let wide = if header.width == Width::Wide { WIDE } else { 0 };
    bytes.push(kind | wide | if header.several.is_some() { SEVERAL } else { 0 });
    let counter = |bytes: &mut Vec<u8>, counter: u32| match (header.width, counter.to_be_bytes()) {
        (Width::Narrow, [_, _, low @ ..]) => bytes.extend(low),
        (Width::Wide, all) => bytes.extend(all),
    };
    counter(&mut bytes, header.sequence);
    bytes.extend(header.timestamp.to_be_bytes());
    bytes.extend(short_round_trip(header.rtt).to_be_bytes());
    if let Some(Several { flows, member, member_sequence }) = header.several {
        bytes.extend(flows.to_be_bytes());
        bytes.push(member);
        counter(&mut bytes, member_sequence);
    }
    match content {
        Content::Media { sequence, payload, .. } => {
            counter(&mut bytes, sequence);
            match u16::try_from(age) {
                Ok(age) => bytes.extend(age.to_be_bytes()),
                Err(_) => bytes.extend(age.to_be_bytes()),
            }
            bytes.extend(payload);
        }
        Content::Parity { first, media, parity, index, shard } => {
            bytes.extend(first.to_be_bytes());
            bytes.extend([media, parity, index]);
            bytes.extend(shard);
        }
        Content::Probe => {}
    }
    bytes
}

/// A round-trip time as it travels: twelve bits, and by how many they are to be shifted in four; the longest that this
/// tells where it is longer.
fn short_round_trip(micros: u32) -> u16 {
    let shift = (u32::BITS - micros.leading_zeros()).saturating_sub(MANTISSA_BITS);
    match (u16::try_from(shift), u16::try_from(micros >> shift)) {
        (Ok(shift), Ok(mantissa)) if shift < 1 << (u16::BITS - MANTISSA_BITS) => {
            shift << MANTISSA_BITS | mantissa
        }
        _ => u16::MAX,
    }
}

/// The round-trip time in microseconds that this tells.
fn round_trip(short: u16) -> u32 {
    u32::from(short & ((1 << MANTISSA_BITS) - 1)) << (short >> MANTISSA_BITS)
}

/// The bytes of a report, of which no more ranges and no longer map than a receiver may send are taken.
pub fn encode_report(report: &Report) -> Vec<u8> {
    let mut bytes = vec![if report.rate.is_some() { REPORT } else { ACKNOWLEDGEMENT }];
    if let Some(rate) = &report.rate {
        bytes.extend(rate.timestamp.to_be_bytes());
        bytes.extend(u32::try_from(rate.delay.as_micros()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(rate.receive_rate.as_bps().to_be_bytes());
        bytes.extend(rate.loss_event_rate.to_bits().to_be_bytes());
    }
    let ranges = report.arrived.len().min(MAX_RANGES);
    bytes.push(u8::try_from(ranges).unwrap_or(u8::MAX));
    for (last, length) in &report.arrived[..ranges] {
        bytes.extend(last.to_be_bytes());
        bytes.extend(length.to_be_bytes());
    }
    bytes.extend(report.settled.to_be_bytes());
    bytes.extend(&report.had[..report.had.len().min(MAX_MAP)]);
    bytes
}

/// The counter with these low 32 bits that is nearest to `near`.
pub fn expand(low: u32, near: u64) -> u64 {
    nearest(low.wrapping_sub(low_bits(near)), 32, near)
}

/// The counter that is so much ahead of `near`, in so many low bits, or behind it where that is nearer.
fn nearest(ahead: u32, bits: u32, near: u64) -> u64 {
    let (ahead, turn) = (u64::from(ahead), 1 << bits);
    if ahead < turn / 2 {
        near.saturating_add(ahead)
    } else {
        // Before the first there is none: it can only be ahead.
        near.checked_sub(turn - ahead).unwrap_or(near.saturating_add(ahead))
    }
}

/// The low 32 bits of a counter.
pub fn low_bits(counter: u64) -> u32 {
    // Cannot fail: the mask leaves 32 bits.
    u32::try_from(counter & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// Whole microseconds of a time; the low 32 bits of them travel.
pub fn micros(time: Time) -> u64 {
    time.since(Time::ZERO).as_micros()
}

/// The time of so many microseconds.
pub fn from_micros(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests;
