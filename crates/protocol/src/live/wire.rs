//! The datagrams of `anabranch-live/1`, `docs/live-protocol.md` has them in words.
//!
//! Every datagram begins with its kind (1 byte); integers are big endian. Counters and times are the low 32
//! bits of what the sender counts: [`expand`] finds the rest. Times are in microseconds of the sender's
//! clock.

use anabranch_units::{Duration, Rate, Time};

pub use super::stuffing::MAX_PAYLOAD;
use super::stuffing::{MAX_PACKED, has_left_out};

/// What a media datagram has in front of its payload.
pub const MEDIA_HEADER: usize = 29;
/// What a parity datagram has in front of its shard.
pub const PARITY_HEADER: usize = 28;
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
/// No datagram is longer.
pub const MAX_DATAGRAM: usize = PARITY_HEADER + MAX_SHARD;

const MEDIA: u8 = 1;
const PARITY: u8 = 2;
const PROBE: u8 = 3;
const REPORT: u8 = 4;
const ACKNOWLEDGEMENT: u8 = 5;
const MEDIA_AGAIN: u8 = 6;
const PACKED: u8 = 7;
const PACKED_AGAIN: u8 = 8;

/// What a datagram of the sender says for the control of its connection's rate (RFC 5348, section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Counts the datagrams of a connection, from zero; low 32 bits.
    pub sequence: u32,
    /// When it was sent.
    pub timestamp: u32,
    /// The sender's estimate of the round-trip time in microseconds; zero: none yet.
    pub rtt: u32,
    /// How many connections of TCP this one stands for, in parts of 64 ([`FLOWS_UNIT`]).
    pub flows: u16,
    /// Which of them this datagram belongs to.
    pub member: u16,
    /// Counts that one's datagrams, from zero; low 32 bits.
    pub member_sequence: u32,
}

/// What a datagram of the sender brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A packet of the stream.
    Media {
        /// Counts the packets of the stream; low 32 bits.
        sequence: u32,
        /// When it came into the sender.
        time: u32,
        /// Whether it was sent before.
        is_again: bool,
        /// Whether null packets were left out of the payload.
        is_packed: bool,
        /// 1 to [`MAX_PAYLOAD`] bytes of the stream, or what [`super::stuffing`] made of them.
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
        let kind = input.u8()?;
        match kind {
            MEDIA | MEDIA_AGAIN | PACKED | PACKED_AGAIN | PARITY | PROBE => {
                let header = Header {
                    sequence: input.u32()?,
                    timestamp: input.u32()?,
                    rtt: input.u32()?,
                    flows: input.u16()?,
                    member: input.u16()?,
                    member_sequence: input.u32()?,
                };
                let content = match kind {
                    MEDIA | MEDIA_AGAIN => input.media(kind == MEDIA_AGAIN, false)?,
                    PACKED | PACKED_AGAIN => input.media(kind == PACKED_AGAIN, true)?,
                    PARITY => input.parity()?,
                    _ => {
                        input.end()?;
                        Content::Probe
                    }
                };
                Ok(Self::Data(header, content))
            }
            REPORT | ACKNOWLEDGEMENT => Ok(Self::Report(input.report(kind == REPORT)?)),
            _ => Err(DatagramError::Kind),
        }
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

    fn media(&mut self, is_again: bool, is_packed: bool) -> Result<Content<'a>, DatagramError> {
        let (sequence, time) = (self.u32()?, self.u32()?);
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
    let kind = match content {
        Content::Media { is_again: false, is_packed: false, .. } => MEDIA,
        Content::Media { is_again: true, is_packed: false, .. } => MEDIA_AGAIN,
        Content::Media { is_again: false, is_packed: true, .. } => PACKED,
        Content::Media { is_again: true, is_packed: true, .. } => PACKED_AGAIN,
        Content::Parity { .. } => PARITY,
        Content::Probe => PROBE,
    };
    bytes.push(kind);
    for number in [header.sequence, header.timestamp, header.rtt] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(header.flows.to_be_bytes());
    bytes.extend(header.member.to_be_bytes());
    bytes.extend(header.member_sequence.to_be_bytes());
    match content {
        Content::Media { sequence, time, payload, .. } => {
            bytes.extend(sequence.to_be_bytes());
            bytes.extend(time.to_be_bytes());
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
    let ahead = low.wrapping_sub(low_bits(near));
    if ahead < 1 << 31 {
        near.saturating_add(ahead.into())
    } else {
        // Before the first there is none: it can only be ahead.
        near.checked_sub((ahead.wrapping_neg()).into()).unwrap_or(near.saturating_add(ahead.into()))
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report() -> impl Strategy<Value = Report> {
        let rate = (any::<u32>(), any::<u32>(), any::<u64>(), 0.0..=1.0f64).prop_map(
            |(timestamp, delay, rate, loss_event_rate)| RateReport {
                timestamp,
                delay: Duration::from_micros(delay.into()),
                receive_rate: Rate::from_bps(rate),
                loss_event_rate,
            },
        );
        (
            proptest::option::of(rate),
            prop::collection::vec((any::<u32>(), 1..=u16::MAX), 0..=MAX_RANGES),
            any::<u32>(),
            prop::collection::vec(any::<u8>(), 0..=MAX_MAP),
        )
            .prop_map(|(rate, arrived, settled, had)| Report { rate, arrived, settled, had })
    }

    fn header() -> impl Strategy<Value = Header> {
        (any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>()).prop_map(
            |(sequence, timestamp, rtt, flows, member)| Header {
                sequence,
                timestamp,
                rtt,
                flows,
                member,
                member_sequence: rtt ^ sequence,
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_arrives_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            if let Ok(Datagram::Report(report)) = Datagram::decode(&bytes) {
                prop_assert!(report.arrived.len() <= MAX_RANGES && report.had.len() <= MAX_MAP);
            }
        }

        #[test]
        fn a_report_comes_back(report in report()) {
            let bytes = encode_report(&report);
            prop_assert_eq!(Datagram::decode(&bytes), Ok(Datagram::Report(report)));
        }

        #[test]
        fn data_comes_back(
            header in header(), sequence in any::<u32>(), time in any::<u32>(),
            payload in prop::collection::vec(any::<u8>(), 1..=MAX_PAYLOAD),
            media in 1..=MAX_BLOCK, parity in 1..=MAX_BLOCK,
            shard in prop::collection::vec(any::<[u8; 2]>(), 4..=MAX_SHARD / 2),
        ) {
            let shard = shard.concat();
            let packed = [&[3, 0b101][..], &[7; 188]].concat();
            for content in [
                Content::Media { sequence, time, is_again: false, is_packed: false, payload: &payload },
                Content::Media { sequence, time, is_again: true, is_packed: false, payload: &payload },
                Content::Media { sequence, time, is_again: false, is_packed: true, payload: &packed },
                Content::Media { sequence, time, is_again: true, is_packed: true, payload: &packed },
                Content::Parity { first: sequence, media, parity, index: parity - 1, shard: &shard },
                Content::Probe,
            ] {
                let bytes = encode_data(header, content);
                prop_assert_eq!(Datagram::decode(&bytes), Ok(Datagram::Data(header, content)));
            }
        }

        #[test]
        fn a_counter_is_found_again(counter in any::<u64>(), distance in -0x7fff_ffff_i64..0x7fff_ffff) {
            let near = counter.saturating_add_signed(distance);
            prop_assert_eq!(expand(low_bits(counter), near), counter);
        }
    }

    #[test]
    fn impossible_datagrams_are_refused() {
        let header = Header { sequence: 1, timestamp: 2, rtt: 3, flows: 64, member: 0, member_sequence: 1 };
        let of = |content| encode_data(header, content);
        let media =
            |payload| of(Content::Media { sequence: 0, time: 0, is_again: false, is_packed: false, payload });
        let packed =
            |payload| of(Content::Media { sequence: 0, time: 0, is_again: false, is_packed: true, payload });
        assert_eq!(Datagram::decode(&[]), Err(DatagramError::Length));
        assert_eq!(Datagram::decode(&[9; 30]), Err(DatagramError::Kind));
        assert_eq!(Datagram::decode(&media(&[])), Err(DatagramError::Length));
        assert_eq!(Datagram::decode(&media(&[0; MAX_PAYLOAD + 1])), Err(DatagramError::Length));
        assert_eq!(Datagram::decode(&packed(&[0; MAX_PACKED + 1])), Err(DatagramError::Length));
        for wrong in [&[0][..], &[0, 1], &[1, 0], &[33; 200]] {
            assert_eq!(Datagram::decode(&packed(wrong)), Err(DatagramError::Number));
        }
        let parity =
            |media, parity, index, shard| of(Content::Parity { first: 0, media, parity, index, shard });
        for (media, count, index) in [(0, 1, 0), (1, 0, 0), (129, 1, 0), (1, 129, 0), (5, 2, 2)] {
            let wrong = parity(media, count, index, &[0; 8]);
            assert_eq!(Datagram::decode(&wrong), Err(DatagramError::Number));
        }
        for shard in [&[0; 6][..], &[0; 9], &[0; MAX_SHARD + 2]] {
            assert_eq!(Datagram::decode(&parity(5, 2, 1, shard)), Err(DatagramError::Length));
        }
        let mut probe = of(Content::Probe);
        probe.push(0);
        assert_eq!(Datagram::decode(&probe), Err(DatagramError::Length));
        let rate = |loss_event_rate| {
            let rate =
                RateReport { timestamp: 0, delay: Duration::ZERO, receive_rate: Rate::ZERO, loss_event_rate };
            encode_report(&Report { rate: Some(rate), ..Report::default() })
        };
        for wrong in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert_eq!(Datagram::decode(&rate(wrong)), Err(DatagramError::Number));
        }
        let mut ranges = encode_report(&Report::default());
        ranges[1] = 33;
        assert_eq!(Datagram::decode(&ranges), Err(DatagramError::Number));
        let empty_range = encode_report(&Report { arrived: vec![(1, 0)], ..Report::default() });
        assert_eq!(Datagram::decode(&empty_range), Err(DatagramError::Number));
    }
}
