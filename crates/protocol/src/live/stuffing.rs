//! Null packets of a transport stream (PID 0x1FFF, ISO/IEC 13818-1, 2.4.1) only keep its rate constant. They
//! are left out on the way, and the receiver puts them back where they were.
//!
//! A part of the stream is *packed*: a count, and when it is above zero that many packets of a transport
//! stream, of which a map says which were null packets; the others follow. A count of zero: the bytes follow
//! as they are, and in a datagram it is left out as well.

use std::sync::Arc;

use anabranch_units::{Bytes, Duration, Time};
use mpeg2ts_reader::STUFFING_PID;
use mpeg2ts_reader::packet::Packet;

/// Most bytes of a stream in one packet: seven packets of a transport stream, what everyone puts into a
/// datagram of UDP.
pub const MAX_PAYLOAD: usize = 7 * 188;

/// Most packets of a transport stream in one datagram, those that are left out included.
pub const MAX_COUNT: usize = 32;
/// Longest count and map.
pub const MAX_FRONT: usize = 1 + MAX_COUNT / 8;
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
    bytes: Vec<u8>,
}

impl Packer {
    /// With `leaves_out` null packets are left out, otherwise they travel like others.
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
        if !self.leaves_out || !is_transport {
            complete.extend(self.flush());
            let unit = if is_transport { Packet::SIZE } else { 1 };
            complete.extend(payload.chunks(self.most / unit * unit).map(|part| (now, as_it_is(part))));
            return complete;
        }
        for packet in payload.chunks_exact(Packet::SIZE) {
            let most = self.most;
            let open =
                self.open.get_or_insert_with(|| Open { time: now, left_out: Vec::new(), bytes: Vec::new() });
            let is_null = is_null(packet);
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
        if !left_out.contains(&true) {
            return Some((time, as_it_is(&bytes)));
        }
        let mut packed = vec![0; 1 + left_out.len().div_ceil(8)];
        packed[0] = u8::try_from(left_out.len()).unwrap_or(u8::MAX);
        for index in (0..left_out.len()).filter(|index| left_out[*index]) {
            packed[1 + index / 8] |= 1 << (index % 8);
        }
        packed.extend(bytes);
        Some((time, packed.into()))
    }

    /// When what waits has waited for `patience`.
    pub fn deadline(&self, patience: Duration) -> Time {
        self.open.as_ref().map_or(Time::NEVER, |open| open.time + patience)
    }
}

/// This in parts of at most `most` bytes of a stream each; `None`: it is not longer.
pub fn cut(packed: &[u8], most: usize) -> Option<Vec<Arc<[u8]>>> {
    let whole = Packed::read(packed).filter(|whole| whole.bytes.len() > most)?;
    let mut packer = Packer::new(whole.count > 0);
    packer.set_most(most);
    let mut parts: Vec<_> =
        unpack(packed).iter().flat_map(|payload| packer.push(payload, Time::ZERO)).collect();
    parts.extend(packer.flush());
    Some(parts.into_iter().map(|(_, part)| part).collect())
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
    map: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// `None`: no packer makes this.
    fn read(packed: &'a [u8]) -> Option<Self> {
        let (count, rest) = packed.split_first()?;
        let count = usize::from(*count);
        let (map, bytes) = rest.split_at_checked(count.div_ceil(8))?;
        let left_out: u32 = map.iter().map(|byte| byte.count_ones()).sum();
        let left_out = usize::try_from(left_out).ok()?;
        let is_within = count <= MAX_COUNT && bytes.len() <= MAX_PAYLOAD;
        let has_rest = if count == 0 {
            !bytes.is_empty()
        } else {
            // Bits behind the last packet are zero.
            let is_clean = map.last().is_some_and(|last| count.is_multiple_of(8) || last >> (count % 8) == 0);
            is_clean && left_out > 0 && bytes.len() == (count - left_out) * Packet::SIZE
        };
        (is_within && has_rest).then_some(Self { count, map, bytes })
    }
}

/// Whether a packer may have made this, and left null packets out.
pub fn has_left_out(packed: &[u8]) -> bool {
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

/// Bytes of the stream that were left out of this.
pub fn left_out_bytes(packed: &[u8]) -> Bytes {
    Packed::read(packed).map_or(Bytes::ZERO, |packed| match packed.count {
        0 => Bytes::ZERO,
        count => Bytes::of(count * Packet::SIZE - packed.bytes.len()),
    })
}

/// The stream again, in payloads of [`MAX_PAYLOAD`] bytes at the most; none when no packer made this.
pub fn unpack(packed: &[u8]) -> Vec<Arc<[u8]>> {
    let Some(Packed { count, map, bytes }) = Packed::read(packed) else { return Vec::new() };
    if count == 0 {
        return vec![bytes.into()];
    }
    let mut packets = bytes.chunks_exact(Packet::SIZE);
    let mut stream = Vec::with_capacity(count * Packet::SIZE);
    for index in 0..count {
        let is_left_out = map.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1);
        // There are as many packets as are not left out.
        stream.extend(if is_left_out { &NULL[..] } else { packets.next().unwrap_or(&NULL) });
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

    fn packet(number: usize) -> Vec<u8> {
        let mut packet = vec![number as u8; Packet::SIZE];
        packet[..3].copy_from_slice(&[0x47, 0x01, 0x00]);
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
        let mut packer = Packer::new(true);
        for count in 1..=7 {
            let packed = packer.push(&stream(&vec![false; count]), Time::ZERO);
            assert_eq!(lengths(&packed), [1 + count * Packet::SIZE]);
            assert_eq!(packer.deadline(Duration::ZERO), Time::NEVER);
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
        // others.
        let packed = packer.push(&stream(&half), at(3));
        assert_eq!((packed[0].0, lengths(&packed)), (at(1), vec![1 + 2 + 7 * Packet::SIZE]));
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
    fn other_streams_and_those_that_are_kept_are_as_they_are() {
        let bytes = [&[0x47, 0x1f, 0xff][..], &[7; 400]].concat();
        for (leaves_out, payload) in [(true, bytes), (false, stream(&[true; 3]))] {
            let mut packer = Packer::new(leaves_out);
            let packed = packer.push(&payload, Time::ZERO);
            assert_eq!(lengths(&packed), [1 + payload.len()]);
            assert_eq!(unpack(&packed[0].1).concat(), payload);
        }
    }

    #[test]
    fn what_no_packer_makes_is_refused() {
        let short = [&[2, 1][..], &[0; 187]].concat();
        for wrong in
            [&[][..], &[0], &[33, 255, 255, 255, 255, 1], &[8], &[1, 2], &[3, 0b1111], &[1, 0], &short]
        {
            assert!(!has_left_out(wrong) && unpack(wrong).is_empty(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn the_stream_comes_back(
            payloads in prop::collection::vec(prop::collection::vec(any::<bool>(), 1..=7), 1..60),
            most in 0usize..2000, flushes in prop::collection::vec(any::<bool>(), 60),
        ) {
            let mut packer = Packer::new(true);
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
        fn whatever_comes_is_bounded(bytes in prop::collection::vec(any::<u8>(), 0..1400)) {
            let came = unpack(&bytes);
            prop_assert_eq!(stream_bytes(&bytes), Bytes::of(came.concat().len()));
            prop_assert!(!has_left_out(&bytes) || !came.is_empty());
            prop_assert!(came.concat().len() <= MAX_COUNT * Packet::SIZE);
        }
    }
}
