//! What of a transport stream (ISO/IEC 13818-1, 2.4.3) does not travel, because the receiver can put it back: null
//! packets (PID 0x1FFF), which only keep its rate constant, and headers that follow from the one before.
//!
//! A part of the stream is *packed*: a count, and when it is above zero that many packets of a transport
//! stream. A map says which were null packets, another one which of the others have a header that follows: that
//! of the packet before them in the part, without its start of a unit, and counted on. The others follow, without
//! these headers. A count of zero: the bytes follow as they are, and in a datagram it is left out as well.

use std::sync::Arc;

use anabranch_units::{Bytes, Duration, Time};
use mpeg2ts_reader::STUFFING_PID;
use mpeg2ts_reader::packet::Packet;

/// Most bytes of a stream in one packet: seven packets of a transport stream, what everyone puts into a
/// datagram of UDP.
pub const MAX_PAYLOAD: usize = 7 * 188;

/// Most packets of a transport stream in one datagram, those that are left out included.
pub const MAX_COUNT: usize = 32;
/// Longest count and maps: no more than seven packets are not left out.
pub const MAX_FRONT: usize = 1 + MAX_COUNT / 8 + 1;
/// Most bytes that travel in one datagram for a stream.
pub const MAX_PACKED: usize = MAX_FRONT + MAX_PAYLOAD;

/// Puts the payloads of a stream into the form in which they travel.
#[derive(Clone, Debug)]
pub struct Packer {
    leaves_out: bool,
    /// Most bytes of packets in one datagram.
    most: usize,
    open: Option<Open>,
}

/// A datagram's packets, which may become more.
#[derive(Clone, Debug)]
struct Open {
    /// When the first of them came.
    time: Time,
    /// Whether each is left out.
    left_out: Vec<bool>,
    /// The others.
    bytes: Vec<u8>,
}

/// A packet's header: the byte of synchronisation, flags and PID, and the continuity counter.
type Head = [u8; HEAD];
const HEAD: usize = 4;

impl Packer {
    /// With `leaves_out` null packets are left out, otherwise they travel like others. Headers are left out in any
    /// case.
    pub fn new(leaves_out: bool) -> Self {
        Self { leaves_out, most: MAX_PAYLOAD, open: None }
    }

    /// A datagram takes no more than so many bytes of a stream.
    pub fn set_most(&mut self, most: usize) {
        self.most = most.clamp(Packet::SIZE, MAX_PAYLOAD);
    }

    /// Most bytes of a stream that a datagram takes.
    pub fn most(&self) -> usize {
        self.most
    }

    /// More of the stream. Answers with what is complete, each with the time at which its first bytes came.
    pub fn push(&mut self, payload: &[u8], now: Time) -> Vec<(Time, Arc<[u8]>)> {
        let mut complete = Vec::new();
        let is_transport = payload.len().is_multiple_of(Packet::SIZE)
            && payload.iter().step_by(Packet::SIZE).all(|byte| Packet::is_sync_byte(*byte));
        if !is_transport {
            complete.extend(self.flush());
            complete.extend(payload.chunks(self.most).map(|part| (now, as_it_is(part))));
            return complete;
        }
        for packet in payload.chunks_exact(Packet::SIZE) {
            let most = self.most;
            let open =
                self.open.get_or_insert_with(|| Open { time: now, left_out: Vec::new(), bytes: Vec::new() });
            let is_null = self.leaves_out && is_null(packet);
            open.left_out.push(is_null);
            if !is_null {
                open.bytes.extend(packet);
            }
            if open.left_out.len() >= MAX_COUNT || open.bytes.len() + Packet::SIZE > most {
                complete.extend(self.flush());
            }
        }
        // Without stuffing nothing waits.
        if self.open.as_ref().is_some_and(|open| !open.left_out.contains(&true)) {
            complete.extend(self.flush());
        }
        complete
    }

    /// What waits for more to come with it.
    pub fn flush(&mut self) -> Option<(Time, Arc<[u8]>)> {
        let Open { time, left_out, bytes } = self.open.take()?;
        let heads: Vec<&[u8]> = bytes.chunks_exact(Packet::SIZE).map(|packet| &packet[..HEAD]).collect();
        let follows: Vec<bool> =
            (0..heads.len()).map(|index| index > 0 && follows(heads[index - 1]) == heads[index]).collect();
        if !left_out.contains(&true) && !follows.contains(&true) {
            return Some((time, as_it_is(&bytes)));
        }
        let mut packed = vec![u8::try_from(left_out.len()).unwrap_or(u8::MAX)];
        packed.extend(map(&left_out));
        packed.extend(map(&follows));
        for (packet, follows) in bytes.chunks_exact(Packet::SIZE).zip(follows) {
            packed.extend(&packet[if follows { HEAD } else { 0 }..]);
        }
        Some((time, packed.into()))
    }

    /// When what waits has waited for `patience`.
    pub fn deadline(&self, patience: Duration) -> Time {
        self.open.as_ref().map_or(Time::NEVER, |open| open.time + patience)
    }
}

/// This in parts of at most `most` bytes of a stream each; `None`: it is not longer.
pub fn cut(packed: &[u8], most: usize) -> Option<Vec<Arc<[u8]>>> {
    let length = |whole: &Packed<'_>| match whole.count {
        0 => whole.bytes.len(),
        _ => whole.follows.count * Packet::SIZE,
    };
    let whole = Packed::read(packed).filter(|whole| length(whole) > most)?;
    let mut packer = Packer::new(whole.left_out.ones() > 0);
    packer.set_most(most);
    let mut parts: Vec<_> =
        unpack(packed).iter().flat_map(|payload| packer.push(payload, Time::ZERO)).collect();
    parts.extend(packer.flush());
    Some(parts.into_iter().map(|(_, part)| part).collect())
}

/// A bit for each, the first in the lowest one of the first byte.
fn map(bits: &[bool]) -> impl Iterator<Item = u8> {
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.chunks(8).map(byte)
}

/// The header of a packet that goes on with what is in the one before, whose header this is. The counter of null
/// packets means nothing.
fn follows(before: &[u8]) -> Head {
    const UNIT_STARTS: u8 = 0x40;
    const SCRAMBLING: u8 = 0xc0;
    const PAYLOAD_ALONE: u8 = 0x10;
    let Some(&[sync, flags, pid, last]) = before.first_chunk() else { return [0; HEAD] };
    let is_null = u16::from_be_bytes([flags, pid]) & 0x1fff == u16::from(STUFFING_PID);
    let counter = if is_null { last } else { last.wrapping_add(1) } & 0x0f;
    [sync, flags & !UNIT_STARTS, pid, last & SCRAMBLING | PAYLOAD_ALONE | counter]
}

/// Bytes of which nothing is left out, packed.
pub fn as_it_is(bytes: &[u8]) -> Arc<[u8]> {
    std::iter::once(0).chain(bytes.iter().copied()).collect()
}

fn is_null(packet: &[u8]) -> bool {
    Packet::try_new(packet).is_some_and(|packet| packet.pid() == STUFFING_PID)
}

/// What travelled, looked at.
struct Packed<'a> {
    count: usize,
    left_out: Map<'a>,
    follows: Map<'a>,
    bytes: &'a [u8],
}

/// A bit for each of so many.
#[derive(Clone, Copy)]
struct Map<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Map<'a> {
    /// Splits it off. Bits behind the last one are zero.
    fn read(bytes: &'a [u8], count: usize) -> Option<(Self, &'a [u8])> {
        let (bytes, rest) = bytes.split_at_checked(count.div_ceil(8))?;
        let is_clean = bytes.last().is_none_or(|last| count.is_multiple_of(8) || last >> (count % 8) == 0);
        is_clean.then_some((Self { bytes, count }, rest))
    }

    fn bits(self) -> impl Iterator<Item = bool> {
        (0..self.count)
            .map(move |index| self.bytes.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1))
    }

    fn ones(self) -> usize {
        self.bits().filter(|bit| *bit).count()
    }
}

impl<'a> Packed<'a> {
    /// `None`: no packer makes this.
    fn read(packed: &'a [u8]) -> Option<Self> {
        let (count, rest) = packed.split_first()?;
        let count = usize::from(*count);
        let (left_out, rest) = Map::read(rest, count)?;
        let (follows, bytes) = Map::read(rest, count - left_out.ones())?;
        let is_right = if count == 0 {
            (1..=MAX_PAYLOAD).contains(&bytes.len())
        } else {
            let travels = follows.count * Packet::SIZE;
            count <= MAX_COUNT
                && travels <= MAX_PAYLOAD
                && left_out.ones() + follows.ones() > 0
                && follows.bits().next() != Some(true)
                && bytes.len() == travels - follows.ones() * HEAD
        };
        is_right.then_some(Self { count, left_out, follows, bytes })
    }
}

/// Whether a packer may have made this, and left something out.
pub fn is_packed(packed: &[u8]) -> bool {
    Packed::read(packed).is_some_and(|packed| packed.count > 0)
}

/// What a datagram carries of this: the bytes of the stream where nothing was left out, and otherwise this.
pub fn payload(packed: &[u8]) -> &[u8] {
    match packed.split_first() {
        Some((0, bytes)) => bytes,
        _ => packed,
    }
}

/// Bytes of the stream that this stands for; nothing when no packer made it.
pub fn stream_bytes(packed: &[u8]) -> Bytes {
    Packed::read(packed).map_or(Bytes::ZERO, |packed| {
        Bytes::of(if packed.count == 0 { packed.bytes.len() } else { packed.count * Packet::SIZE })
    })
}

/// Bytes of null packets that were left out of this.
pub fn left_out_bytes(packed: &[u8]) -> Bytes {
    Packed::read(packed).map_or(Bytes::ZERO, |packed| Bytes::of(packed.left_out.ones() * Packet::SIZE))
}

/// The stream again, in payloads of [`MAX_PAYLOAD`] bytes at the most; none when no packer made this.
pub fn unpack(packed: &[u8]) -> Vec<Arc<[u8]>> {
    let Some(Packed { count, left_out, follows: headless, bytes }) = Packed::read(packed) else {
        return Vec::new();
    };
    if count == 0 {
        return vec![bytes.into()];
    }
    let mut stream = Vec::with_capacity(count * Packet::SIZE);
    let (mut headless, mut bytes, mut head) = (headless.bits(), bytes, Head::default());
    for is_left_out in left_out.bits() {
        if is_left_out {
            stream.extend(NULL);
            continue;
        }
        let begins = stream.len();
        let missing = if headless.next() == Some(true) { HEAD } else { 0 };
        stream.extend(&follows(&head)[..missing]);
        // There are as many bytes as the maps say.
        let (packet, rest) = bytes.split_at_checked(Packet::SIZE - missing).unwrap_or((bytes, &[]));
        stream.extend(packet);
        bytes = rest;
        head = stream[begins..].first_chunk().copied().unwrap_or_default();
    }
    stream.chunks(MAX_PAYLOAD).map(Arc::from).collect()
}

/// A null packet as it is put back. Its bytes mean nothing.
const NULL: [u8; Packet::SIZE] = {
    let mut packet = [0xff; Packet::SIZE];
    packet[0] = 0x47;
    packet[1] = 0x1f;
    packet[3] = 0x10;
    packet
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packets of a stream; the first, and every fifth one, begins a unit.
    fn packet(number: usize) -> Vec<u8> {
        let mut packet = vec![number as u8; Packet::SIZE];
        let starts = if number.is_multiple_of(5) { 0x40 } else { 0 };
        packet[..HEAD].copy_from_slice(&[0x47, 0x01 | starts, 0x00, 0x10 | (number as u8 & 15)]);
        packet
    }

    /// A stream whose packets are null packets where this says so.
    fn stream(nulls: &[bool]) -> Vec<u8> {
        let packets = nulls.iter().enumerate();
        packets.flat_map(|(number, is_null)| if *is_null { NULL.to_vec() } else { packet(number) }).collect()
    }

    fn lengths(packed: &[(Time, Arc<[u8]>)]) -> Vec<usize> {
        packed.iter().map(|(_, packed)| packed.len()).collect()
    }

    #[test]
    fn without_stuffing_nothing_waits() {
        for leaves_out in [false, true] {
            let mut packer = Packer::new(leaves_out);
            for count in 1..=7 {
                let packed = packer.push(&stream(&vec![false; count]), Time::ZERO);
                // The first header travels, and that of the sixth packet, which begins a unit.
                let left_out = count - 1 - usize::from(count > 5);
                let front = if left_out > 0 { 3 } else { 1 };
                assert_eq!(lengths(&packed), [front + count * Packet::SIZE - left_out * HEAD]);
                assert_eq!(packer.deadline(Duration::ZERO), Time::NEVER);
            }
        }
    }

    #[test]
    fn datagrams_are_filled_with_what_is_left() {
        let mut packer = Packer::new(true);
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let half: Vec<bool> = (0..7).map(|number| number % 2 == 0).collect();
        assert!(packer.push(&stream(&half), at(1)).is_empty());
        assert!(packer.push(&stream(&half), at(2)).is_empty());
        // The seventh packet that is no stuffing completes it; behind it one stuffing packet waits with three
        // others. Packets are counted on by two, so that no header follows.
        let packed = packer.push(&stream(&half), at(3));
        assert_eq!((packed[0].0, lengths(&packed)), (at(1), vec![1 + 2 + 1 + 7 * Packet::SIZE]));
        assert_eq!(packer.deadline(Duration::from_millis(20)), at(23));
        let rest = packer.flush().unwrap();
        assert_eq!((stream_bytes(&rest.1).get(), left_out_bytes(&rest.1).get()), (5 * 188, 3 * 188));
        assert!(packer.flush().is_none());
    }

    #[test]
    fn a_stream_of_stuffing_is_nearly_nothing() {
        let mut packer = Packer::new(true);
        let packed: Vec<_> = (0..32).flat_map(|_| packer.push(&stream(&[true; 7]), Time::ZERO)).collect();
        assert_eq!(lengths(&packed), [5; 7]);
        assert!(packed.iter().all(|(_, packed)| unpack(packed).concat() == stream(&[true; 32])));
    }

    #[test]
    fn other_streams_are_as_they_are() {
        let payload = [&[0x47, 0x1f, 0xff][..], &[7; 400]].concat();
        let packed = Packer::new(true).push(&payload, Time::ZERO);
        assert_eq!(lengths(&packed), [1 + payload.len()]);
        assert_eq!(unpack(&packed[0].1).concat(), payload);
    }

    #[test]
    fn what_stuffing_holds_is_kept_where_it_is_not_left_out() {
        let mut payload = stream(&[true; 3]);
        payload[HEAD..Packet::SIZE].fill(9);
        let packed = Packer::new(false).push(&payload, Time::ZERO);
        assert_eq!(lengths(&packed), [3 + payload.len() - 2 * HEAD]);
        assert_eq!(unpack(&packed[0].1).concat(), payload);
        assert!(left_out_bytes(&packed[0].1).is_zero());
        let parts = cut(&packed[0].1, 2 * Packet::SIZE).unwrap();
        assert_eq!(parts.iter().flat_map(|part| unpack(part)).collect::<Vec<_>>().concat(), payload);
    }

    #[test]
    fn what_no_packer_makes_is_refused() {
        let short = [&[2, 1, 0][..], &[0; 187]].concat();
        // The first header follows from nothing.
        let first = [&[2, 0, 1][..], &[0; 372]].concat();
        // Nothing is left out.
        let whole = [&[1, 0, 0][..], &[0; 188]].concat();
        let many = [&[8, 0, 0b1111_1110][..], &[0; 8 * 188 - 28]].concat();
        for wrong in [
            &[][..],
            &[0],
            &[33, 255, 255, 255, 255, 1],
            &[8],
            &[1, 2],
            &[3, 0b1111],
            &[1, 0],
            &[2, 0b101],
            &short,
            &first,
            &whole,
            &many,
        ] {
            assert!(!is_packed(wrong) && unpack(wrong).is_empty(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn the_stream_comes_back(
            payloads in prop::collection::vec(prop::collection::vec(any::<bool>(), 1..=7), 1..60),
            most in 0usize..2000, flushes in prop::collection::vec(any::<bool>(), 60), leaves_out: bool,
        ) {
            let mut packer = Packer::new(leaves_out);
            packer.set_most(most);
            let (mut packed, mut expected) = (Vec::new(), Vec::new());
            for (nulls, flush) in payloads.iter().zip(flushes) {
                let payload = stream(nulls);
                packed.extend(packer.push(&payload, Time::ZERO));
                expected.extend(payload);
                if flush {
                    packed.extend(packer.flush());
                }
            }
            packed.extend(packer.flush());
            let limit = MAX_FRONT + most.clamp(Packet::SIZE, MAX_PAYLOAD);
            prop_assert!(packed.iter().all(|(_, packed)| packed.len() <= limit && !unpack(packed).is_empty()));
            let came: Vec<Arc<[u8]>> = packed.iter().flat_map(|(_, packed)| unpack(packed)).collect();
            prop_assert!(came.iter().all(|payload| payload.len() <= MAX_PAYLOAD));
            prop_assert_eq!(came.concat(), expected.clone());
            let all: Bytes = packed.iter().map(|(_, packed)| stream_bytes(packed)).sum();
            prop_assert_eq!(all, Bytes::of(expected.len()));
        }

        #[test]
        fn any_headers_come_back(heads in prop::collection::vec((0x40u8..0x43, 0u8..2, 0u8..=255), 1..=7), most in 0usize..2000) {
            let packet = |(index, (flags, pid, last)): (usize, &(u8, u8, u8))| {
                let mut packet = vec![index as u8; Packet::SIZE];
                packet[..HEAD].copy_from_slice(&[0x47, *flags, *pid, *last]);
                packet
            };
            let payload: Vec<u8> = heads.iter().enumerate().flat_map(packet).collect();
            let mut packer = Packer::new(false);
            packer.set_most(most);
            let packed = packer.push(&payload, Time::ZERO);
            let came: Vec<Arc<[u8]>> = packed.iter().flat_map(|(_, packed)| unpack(packed)).collect();
            prop_assert_eq!(came.concat(), payload);
        }

        #[test]
        fn whatever_comes_is_bounded(bytes in prop::collection::vec(any::<u8>(), 0..1400)) {
            let came = unpack(&bytes);
            prop_assert_eq!(stream_bytes(&bytes), Bytes::of(came.concat().len()));
            prop_assert!(!is_packed(&bytes) || !came.is_empty());
            prop_assert!(came.concat().len() <= MAX_COUNT * Packet::SIZE);
        }
    }
}
