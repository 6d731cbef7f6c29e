//! The form in which parts of a stream travel: without what the receiver can put back.
//!
//! Null packets of a transport stream (PID 0x1FFF, ISO/IEC 13818-1, 2.4.1) only keep its rate constant: they are left
//! out where that is wanted. Headers that follow from the packet before (module `follows`) are left out of datagrams with
//! enough of them.
//!
//! A part of the stream is *packed*: a front, and bytes. A front of one zero byte: the bytes are as they are, and in a
//! datagram that front is left out as well. Otherwise it has a count of packets of a transport stream (the low six
//! bits), whether a map of null packets follows, and whether one of packets without header. Null packets are not among
//! the bytes.

use std::sync::Arc;

use anabranch_units::Bytes;
use mpeg2ts_reader::STUFFING_PID;
use mpeg2ts_reader::packet::Packet;

use super::follows::{HEADER, following};

/// Most bytes of a stream in one packet: seven packets of a transport stream, what everyone puts into a
/// datagram of UDP.
pub const MAX_PAYLOAD: usize = 7 * 188;

/// Most packets of a transport stream in one datagram, those that are left out included.
pub const MAX_COUNT: usize = 32;
/// In a front's first byte: a map of null packets follows, a map of packets without header.
const NULLS: u8 = 0x80;
const FOLLOWERS: u8 = 0x40;
const COUNT: u8 = 0x3f;
/// So many headers are left out, or none. More could be left out of many datagrams, but then they had many lengths: a
/// detector of black holes (RFC 8899, section 4.3) takes the losses of the longer ones, of which few follow that could
/// arrive, for a path that carries less. With two lengths it hardly does.
const SHORTER: usize = 4;
/// Longest front.
pub const MAX_FRONT: usize = 1 + 2 * (MAX_COUNT / 8);
/// Most bytes that travel in one datagram for a stream.
pub const MAX_PACKED: usize = MAX_FRONT + MAX_PAYLOAD;

/// Packs packets of a transport stream, of which these were null packets that are left out; `bytes` has the others.
pub(super) fn pack(left_out: &[bool], bytes: &[u8], shortens: bool) -> Arc<[u8]> {
    let mut follows = vec![false; left_out.len()];
    let packets = || bytes.chunks_exact(Packet::SIZE).map(|packet| packet.split_first_chunk::<HEADER>());
    let kept = (0..left_out.len()).filter(|index| !left_out[*index]).skip(1);
    let pairs = packets().flatten().zip(packets().flatten().skip(1));
    let of_those = kept.zip(pairs).filter(|(_, ((before, _), (header, _)))| following(**before) == **header);
    let first: Vec<usize> = of_those.map(|(index, _)| index).take(SHORTER).collect();
    if shortens && first.len() == SHORTER {
        first.iter().for_each(|index| follows[*index] = true);
    }
    let (nulls, followers) = (left_out.contains(&true), follows.contains(&true));
    if !nulls && !followers {
        return as_it_is(bytes);
    }
    let mut packed = Vec::with_capacity(MAX_FRONT + bytes.len());
    let flags = (if nulls { NULLS } else { 0 }) | (if followers { FOLLOWERS } else { 0 });
    packed.push(flags | u8::try_from(left_out.len()).unwrap_or(u8::MAX) & COUNT);
    for bits in
        [(nulls, left_out), (followers, &follows)].into_iter().filter_map(|(has, bits)| has.then_some(bits))
    {
        packed.extend(
            bits.chunks(8).map(|eight| eight.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit))),
        );
    }
    let is_short = (0..left_out.len()).filter(|index| !left_out[*index]).map(|index| follows[index]);
    for (packet, is_short) in bytes.chunks_exact(Packet::SIZE).zip(is_short) {
        packed.extend(&packet[if is_short { HEADER } else { 0 }..]);
    }
    packed.into()
}

/// Bytes of which nothing is left out, packed.
pub fn as_it_is(bytes: &[u8]) -> Arc<[u8]> {
    std::iter::once(0).chain(bytes.iter().copied()).collect()
}

pub(super) fn is_null(packet: &[u8]) -> bool {
    Packet::try_new(packet).is_some_and(|packet| packet.pid() == STUFFING_PID)
}

/// What travelled, looked at.
pub(super) struct Packed<'a> {
    /// Packets of a transport stream; zero: the bytes are as they are.
    count: usize,
    /// Maps of null packets and of packets without header, a bit for each packet, the first in the lowest bit of the
    /// first byte; empty: there is none.
    pub(super) nulls: &'a [u8],
    followers: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// `None`: no packer makes this.
    pub(super) fn read(packed: &'a [u8]) -> Option<Self> {
        let (first, rest) = packed.split_first()?;
        let count = usize::from(first & COUNT);
        let map = |flag| if first & flag > 0 { count.div_ceil(8) } else { 0 };
        let (nulls, rest) = rest.split_at_checked(map(NULLS))?;
        let (followers, bytes) = rest.split_at_checked(map(FOLLOWERS))?;
        let packed = Self { count, nulls, followers, bytes };
        let is_whole = if *first == 0 { !bytes.is_empty() } else { packed.is_consistent() };
        (is_whole && packed.kept_bytes() <= MAX_PAYLOAD).then_some(packed)
    }

    /// Whether the maps are such as a packer makes, and the bytes as many as they say.
    fn is_consistent(&self) -> bool {
        // Bits behind the last packet are zero, and a map that is there says something.
        let is_clean = |map: &[u8]| {
            map.is_empty() || (ones(map) > 0 && (self.count..map.len() * 8).all(|index| !bit(map, index)))
        };
        let first_kept = (0..self.count).find(|index| !bit(self.nulls, *index));
        let has_header = (0..self.count)
            .filter(|index| bit(self.followers, *index))
            .all(|index| !bit(self.nulls, index) && first_kept.is_some_and(|first| first < index));
        let kept = self.count.saturating_sub(ones(self.nulls)) * Packet::SIZE;
        let is_something = !self.nulls.is_empty() || !self.followers.is_empty();
        (1..=MAX_COUNT).contains(&self.count)
            && is_something
            && is_clean(self.nulls)
            && is_clean(self.followers)
            && has_header
            && self.bytes.len() + ones(self.followers) * HEADER == kept
    }

    /// Bytes of the stream without null packets, headers included.
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes.len() + ones(self.followers) * HEADER
    }
}

/// Whether the bit of this packet is set; it is not in a map that is not there.
fn bit(map: &[u8], index: usize) -> bool {
    map.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

fn ones(map: &[u8]) -> usize {
    // Four bytes at the most.
    map.iter().map(|byte| byte.count_ones()).sum::<u32>() as usize
}

/// Whether a packer may have made this, and left something out.
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

/// Bytes of null packets that were left out of this.
pub fn left_out_bytes(packed: &[u8]) -> Bytes {
    Packed::read(packed).map_or(Bytes::ZERO, |packed| Bytes::of(ones(packed.nulls) * Packet::SIZE))
}

/// The stream again, in payloads of [`MAX_PAYLOAD`] bytes at the most; none when no packer made this.
pub fn unpack(packed: &[u8]) -> Vec<Arc<[u8]>> {
    let Some(packed) = Packed::read(packed) else { return Vec::new() };
    if packed.count == 0 {
        return vec![packed.bytes.into()];
    }
    let mut stream: Vec<u8> = Vec::with_capacity(packed.count * Packet::SIZE);
    let (mut rest, mut header) = (packed.bytes, [0; HEADER]);
    for index in 0..packed.count {
        if bit(packed.nulls, index) {
            stream.extend(NULL);
            continue;
        }
        header = if bit(packed.followers, index) {
            following(header)
        } else {
            // The bytes are as many as the maps say, here and below.
            let (own, behind) = rest.split_first_chunk().unwrap_or((&[0; HEADER], &[]));
            rest = behind;
            *own
        };
        let (body, behind) = rest.split_at_checked(Packet::SIZE - HEADER).unwrap_or_default();
        rest = behind;
        stream.extend(header.iter().chain(body));
    }
    stream.chunks(MAX_PAYLOAD).map(Arc::from).collect()
}

/// A null packet as it is put back. Its bytes mean nothing.
pub(super) const NULL: [u8; Packet::SIZE] = {
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

    #[test]
    fn what_no_packer_makes_is_refused() {
        let short = [&[0x82, 1][..], &[0; 187]].concat();
        // A packet without header that is the only one, that is the first, that is a null packet.
        let only = [&[0x41, 1][..], &[0; 184]].concat();
        let begins = [&[0x42, 1][..], &[0; 372]].concat();
        let both = [&[0xc3, 2, 6][..], &[0; 368]].concat();
        for wrong in [
            &[][..],
            &[0],
            &[0x21, 1],
            &[8],
            &[1, 2],
            &[0x83, 0b1111],
            &[0x81, 0],
            &short,
            &only,
            &begins,
            &both,
        ] {
            assert!(!has_left_out(wrong) && unpack(wrong).is_empty(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_bounded(bytes in prop::collection::vec(any::<u8>(), 0..1400)) {
            let came = unpack(&bytes);
            prop_assert_eq!(stream_bytes(&bytes), Bytes::of(came.concat().len()));
            prop_assert!(!has_left_out(&bytes) || !came.is_empty());
            prop_assert!(came.concat().len() <= MAX_COUNT * Packet::SIZE);
        }
    }
}
