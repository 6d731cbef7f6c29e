//! Forward error correction: Reed-Solomon parity for blocks of media packets (as MULTFRC has it: n packets of
//! which k are media; any k of the n give the media).
//!
//! A block's media packets follow each other in the stream. They are sent as they are and at once; the parity
//! packets follow the last of them. To be a shard a packet gets its length and its time in front, and zeros
//! behind: all shards of a block are as long as its longest packet needs. The code is that of the crate
//! `reed-solomon-simd`.

pub mod choice;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anabranch_units::Time;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use anabranch_protocol::live::packed::MAX_PACKED;
use anabranch_protocol::live::wire::{MAX_BLOCK, MAX_SHARD, SHARD_HEADER};

/// Media packets that a decoder keeps: two of the largest blocks and what may come between, several times.
const KEPT_PACKETS: usize = 1024;
/// Blocks with parity that a decoder keeps.
const KEPT_BLOCKS: usize = 32;

/// How many packets of a block are what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Media packets (k), 1 to [`MAX_BLOCK`].
    media: u8,
    /// Parity packets (n - k), 1 to [`MAX_BLOCK`].
    parity: u8,
}

/// As it is written on the command line: n,k.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", u16::from(self.media) + u16::from(self.parity), self.media)
    }
}

/// A block that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block has 1 to {MAX_BLOCK} media packets and 1 to {MAX_BLOCK} parity packets")]
pub struct CodeError;

impl Code {
    /// So many media packets and so many parity packets.
    ///
    /// # Errors
    /// A number is out of its bounds.
    pub fn new(media: u32, parity: u32) -> Result<Self, CodeError> {
        let within = |count: u32| u8::try_from(count).ok().filter(|count| (1..=MAX_BLOCK).contains(count));
        match (within(media), within(parity)) {
            (Some(media), Some(parity)) => Ok(Self { media, parity }),
            _ => Err(CodeError),
        }
    }

    /// Media packets (k).
    pub fn media(self) -> u8 {
        self.media
    }

    /// Parity packets (n - k).
    pub fn parity(self) -> u8 {
        self.parity
    }

    /// Parity packets for a block that ends early, in the same proportion.
    fn parity_of(self, media: usize) -> usize {
        (media * usize::from(self.parity)).div_ceil(usize::from(self.media))
    }
}

/// The parity of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity {
    /// The first media packet.
    pub first: u64,
    /// How many media packets.
    pub media: u8,
    /// One for each parity packet.
    pub shards: Vec<Vec<u8>>,
}

/// Collects media packets to blocks.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    open: Option<OpenBlock>,
}

/// A block that has not got all its media packets yet.
#[derive(Clone, Debug)]
struct OpenBlock {
    code: Code,
    first: u64,
    opened: Time,
    packets: Vec<(u32, Arc<[u8]>)>,
}

impl Encoder {
    /// The next media packet of the stream, with the low bits of its time. When no block is open one is
    /// opened with this code, if there is one; a block keeps its code. Answers with the parity when the block
    /// is complete.
    pub fn push(
        &mut self,
        code: Option<Code>,
        sequence: u64,
        time: u32,
        payload: &Arc<[u8]>,
        now: Time,
    ) -> Option<Parity> {
        if self.open.is_none() {
            self.open =
                code.map(|code| OpenBlock { code, first: sequence, opened: now, packets: Vec::new() });
        }
        let block = self.open.as_mut()?;
        block.packets.push((time, payload.clone()));
        if block.packets.len() >= usize::from(block.code.media) { self.close() } else { None }
    }

    /// When the first packet of the block that is open came; `None`: none is open.
    pub fn opened(&self) -> Option<Time> {
        self.open.as_ref().map(|block| block.opened)
    }

    /// Ends the block that is open, if any, with as much parity as it has packets for.
    pub fn close(&mut self) -> Option<Parity> {
        let OpenBlock { code, first, packets, .. } = self.open.take()?;
        let media = u8::try_from(packets.len()).ok().filter(|media| *media > 0)?;
        let longest = packets.iter().map(|(_, payload)| payload.len()).max()?;
        let length = shard_length(longest);
        let parity = code.parity_of(packets.len()).min(usize::from(MAX_BLOCK));
        // Fails for no block within the bounds; a block without parity is one that cannot be repaired.
        let mut encoder = ReedSolomonEncoder::new(packets.len(), parity, length).ok()?;
        for (time, payload) in &packets {
            encoder.add_original_shard(shard(*time, payload, length)).ok()?;
        }
        let shards = encoder.encode().ok()?.recovery_iter().map(<[u8]>::to_vec).collect();
        Some(Parity { first, media, shards })
    }
}

/// A whole number of two bytes, which the code's field has.
fn shard_length(payload: usize) -> usize {
    (SHARD_HEADER + payload).next_multiple_of(2).min(MAX_SHARD)
}

fn shard(time: u32, payload: &[u8], length: usize) -> Vec<u8> {
    let mut shard = Vec::with_capacity(length);
    shard.extend(u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes());
    shard.extend(time.to_be_bytes());
    shard.extend(payload);
    shard.resize(length, 0);
    shard
}

/// A media packet that was not received, but calculated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Its number in the stream.
    pub sequence: u64,
    /// The low bits of its time.
    pub time: u32,
    /// What it carries.
    pub payload: Arc<[u8]>,
}

/// A block of which parity has arrived.
#[derive(Clone, Debug)]
struct Block {
    media: u8,
    parity: u8,
    length: usize,
    shards: BTreeMap<u8, Vec<u8>>,
}

/// Keeps what arrived, and calculates what did not.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    packets: BTreeMap<u64, (u32, Arc<[u8]>)>,
    /// By their first packet.
    blocks: BTreeMap<u64, Block>,
}

/// A parity packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct ParityPacket<'a> {
    /// The block's first media packet.
    pub first: u64,
    /// Media packets of the block.
    pub media: u8,
    /// Parity packets of the block.
    pub parity: u8,
    /// Which of them this is.
    pub index: u8,
    /// What it carries.
    pub shard: &'a [u8],
}

impl Decoder {
    /// A media packet arrived. Answers with those that can be calculated now.
    pub fn media(&mut self, sequence: u64, time: u32, payload: Arc<[u8]>) -> Vec<Recovered> {
        self.keep(sequence, time, payload);
        let block = self.blocks.range(..=sequence).next_back();
        match block.filter(|(first, block)| sequence - **first < u64::from(block.media)) {
            Some((&first, _)) => self.recover(first),
            None => Vec::new(),
        }
    }

    fn keep(&mut self, sequence: u64, time: u32, payload: Arc<[u8]>) {
        self.packets.insert(sequence, (time, payload));
        while self.packets.len() > KEPT_PACKETS {
            self.packets.pop_first();
        }
    }

    /// A parity packet arrived. Answers with media packets that can be calculated now. One that contradicts
    /// its block is ignored.
    pub fn parity(&mut self, packet: &ParityPacket<'_>) -> Vec<Recovered> {
        if packet.index >= packet.parity {
            return Vec::new();
        }
        let block = self.blocks.entry(packet.first).or_insert_with(|| Block {
            media: packet.media,
            parity: packet.parity,
            length: packet.shard.len(),
            shards: BTreeMap::new(),
        });
        let fits = block.media == packet.media
            && block.parity == packet.parity
            && block.length == packet.shard.len();
        if !fits {
            return Vec::new();
        }
        block.shards.insert(packet.index, packet.shard.to_vec());
        while self.blocks.len() > KEPT_BLOCKS {
            self.blocks.pop_first();
        }
        self.recover(packet.first)
    }

    /// Calculates what is missing of a block, if that is possible. A block that is whole is forgotten.
    fn recover(&mut self, first: u64) -> Vec<Recovered> {
        let Some(block) = self.blocks.get(&first) else { return Vec::new() };
        let range = first..first.saturating_add(block.media.into());
        let arrived = self.packets.range(range).count();
        let missing = usize::from(block.media) - arrived;
        if missing > block.shards.len() {
            return Vec::new();
        }
        let recovered = if missing == 0 { Vec::new() } else { self.decode(first, block).unwrap_or_default() };
        self.blocks.remove(&first);
        for packet in &recovered {
            self.keep(packet.sequence, packet.time, packet.payload.clone());
        }
        recovered
    }

    /// `None` when the packets contradict each other.
    fn decode(&self, first: u64, block: &Block) -> Option<Vec<Recovered>> {
        let (media, parity) = (usize::from(block.media), usize::from(block.parity));
        let mut decoder = ReedSolomonDecoder::new(media, parity, block.length).ok()?;
        let range = first..first.saturating_add(block.media.into());
        for (sequence, (time, payload)) in self.packets.range(range) {
            if shard_length(payload.len()) > block.length {
                return None;
            }
            let index = usize::try_from(sequence - first).ok()?;
            decoder.add_original_shard(index, shard(*time, payload, block.length)).ok()?;
        }
        for (index, shard) in &block.shards {
            decoder.add_recovery_shard((*index).into(), shard).ok()?;
        }
        let decoded = decoder.decode().ok()?;
        let packets = decoded.restored_original_iter().map(|(index, shard)| {
            let (length, rest) = shard.split_first_chunk()?;
            let (time, rest) = rest.split_first_chunk()?;
            let length = usize::from(u16::from_be_bytes(*length));
            let payload = rest.get(..length).filter(|_| (1..=MAX_PACKED).contains(&length))?;
            let sequence = first.saturating_add(u64::try_from(index).ok()?);
            Some(Recovered { sequence, time: u32::from_be_bytes(*time), payload: payload.into() })
        });
        packets.collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet<'a>(parity: &'a Parity, index: usize) -> ParityPacket<'a> {
        ParityPacket {
            first: parity.first,
            media: parity.media,
            parity: parity.shards.len() as u8,
            index: index as u8,
            shard: &parity.shards[index],
        }
    }

    fn payload(sequence: u64, length: usize) -> Arc<[u8]> {
        (0..length).map(|byte| (sequence as usize * 31 + byte * 7) as u8).collect()
    }

    proptest! {
        /// Any k of the n packets, in any order, give the media.
        #[test]
        fn as_many_packets_as_there_is_media_are_enough(
            media in 1u8..=60, parity in 1u8..=40, first in 0u64..1 << 40,
            lengths in prop::collection::vec(1usize..=MAX_PACKED, 60),
            order in Just((0usize..100).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let code = Code::new(media.into(), parity.into()).unwrap();
            let mut encoder = Encoder::default();
            let (mut packets, mut made) = (Vec::new(), None);
            for index in 0..u64::from(media) {
                prop_assert!(made.is_none());
                let payload = payload(index, lengths[index as usize]);
                made = encoder.push(Some(code), first + index, index as u32, &payload, Time::ZERO);
                packets.push(payload);
            }
            let made = made.unwrap();
            prop_assert_eq!(made.shards.len(), usize::from(parity));
            let total = usize::from(media) + usize::from(parity);
            let come: Vec<usize> = order.into_iter().filter(|index| *index < total).take(media.into()).collect();
            let (mut decoder, mut had) = (Decoder::default(), BTreeMap::new());
            for index in come {
                let recovered = if let Some(payload) = packets.get(index) {
                    had.insert(first + index as u64, payload.clone());
                    decoder.media(first + index as u64, index as u32, payload.clone())
                } else {
                    decoder.parity(&packet(&made, index - packets.len()))
                };
                for packet in recovered {
                    prop_assert_eq!(u64::from(packet.time), packet.sequence - first);
                    prop_assert!(had.insert(packet.sequence, packet.payload).is_none());
                }
            }
            let expected = (first..).zip(packets).collect::<BTreeMap<_, _>>();
            prop_assert_eq!(had, expected);
        }

        #[test]
        fn parity_that_is_not_true_does_no_harm(
            packets in prop::collection::vec(
                (0u64..40, 1u8..=20, 1u8..=20, 0u8..20, prop::collection::vec(any::<u8>(), 8..20)), 0..200),
        ) {
            let mut decoder = Decoder::default();
            for (first, media, parity, index, shard) in packets {
                decoder.media(first * 2, 1, shard.clone().into());
                let shard = &shard[..shard.len() & !1];
                for packet in decoder.parity(&ParityPacket { first, media, parity, index, shard }) {
                    prop_assert!((1..=MAX_PACKED).contains(&packet.payload.len()));
                }
            }
            prop_assert!(decoder.blocks.len() <= KEPT_BLOCKS && decoder.packets.len() <= KEPT_PACKETS);
        }
    }

    #[test]
    fn a_block_that_ends_early_has_parity_in_proportion() {
        let code = Code::new(50, 11).unwrap();
        let mut encoder = Encoder::default();
        assert!(encoder.close().is_none());
        for sequence in 0..10 {
            assert!(encoder.push(Some(code), sequence, 0, &payload(sequence, 100), Time::ZERO).is_none());
        }
        assert_eq!(encoder.opened(), Some(Time::ZERO));
        let parity = encoder.close().unwrap();
        assert_eq!((parity.first, parity.media, parity.shards.len()), (0, 10, 3));
        assert_eq!(encoder.opened(), None);
    }

    #[test]
    fn impossible_codes_are_refused() {
        for (media, parity) in [(0, 1), (1, 0), (129, 1), (1, 129)] {
            assert_eq!(Code::new(media, parity), Err(CodeError));
        }
    }

    #[test]
    fn nothing_is_kept_for_ever() {
        let mut decoder = Decoder::default();
        for number in 0..5000 {
            decoder.media(number * 10, 0, payload(number, 10));
            decoder.parity(&ParityPacket {
                first: number * 10,
                media: 9,
                parity: 2,
                index: 0,
                shard: &[0; 16],
            });
        }
        assert_eq!((decoder.packets.len(), decoder.blocks.len()), (KEPT_PACKETS, KEPT_BLOCKS));
    }
}
