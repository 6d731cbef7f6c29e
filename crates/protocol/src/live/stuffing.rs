//! Puts a stream into the parts that travel, of which null packets are left out where that is wanted, and headers
//! ([`super::packed`]).

use std::sync::Arc;

use anabranch_units::{Duration, Time};
use mpeg2ts_reader::packet::Packet;

use super::packed::{MAX_COUNT, MAX_PAYLOAD, Packed, as_it_is, is_null, pack, unpack};

/// Puts the payloads of a stream into the form in which they travel.
#[derive(Clone, Debug)]
pub struct Packer {
    leaves_out: bool,
    /// Whether headers are left out.
    shortens: bool,
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
        Self { leaves_out, shortens: true, most: MAX_PAYLOAD, open: None }
    }

    /// Whether headers are left out of what is pushed from now on; they are, as long as nothing else is said.
    pub fn set_shortens(&mut self, shortens: bool) {
        self.shortens = shortens;
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
            if is_transport {
                let parts = payload.chunks(self.most / Packet::SIZE * Packet::SIZE);
                let none = [false; MAX_COUNT];
                let pack = |part: &[u8]| pack(&none[..part.len() / Packet::SIZE], part, self.shortens);
                complete.extend(parts.map(|part| (now, pack(part))));
            } else {
                complete.extend(payload.chunks(self.most).map(|part| (now, as_it_is(part))));
            }
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
        Some((time, pack(&left_out, &bytes, self.shortens)))
    }

    /// When what waits has waited for `patience`.
    pub fn deadline(&self, patience: Duration) -> Time {
        self.open.as_ref().map_or(Time::NEVER, |open| open.time + patience)
    }
}

/// This in parts of at most `most` bytes of a stream each; `None`: it is not longer.
pub fn cut(packed: &[u8], most: usize) -> Option<Vec<Arc<[u8]>>> {
    let whole = Packed::read(packed).filter(|whole| whole.kept_bytes() > most)?;
    let mut packer = Packer::new(!whole.nulls.is_empty());
    packer.set_most(most);
    let mut parts: Vec<_> =
        unpack(packed).iter().flat_map(|payload| packer.push(payload, Time::ZERO)).collect();
    parts.extend(packer.flush());
    Some(parts.into_iter().map(|(_, part)| part).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use anabranch_units::Bytes;

    use super::super::packed::{MAX_FRONT, NULL, left_out_bytes, stream_bytes};
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

    /// Packets of two streams, each with its counter: of the second where `second` says so; units begin where `begins` does.
    fn transport(packets: &[(bool, bool)]) -> Vec<u8> {
        let mut counters = [0u8; 2];
        packets
            .iter()
            .enumerate()
            .flat_map(|(number, (second, begins))| {
                let counter = &mut counters[usize::from(*second)];
                *counter = (*counter + 1) % 16;
                let mut packet = vec![number as u8; Packet::SIZE];
                let unit = if *begins { 0x41 } else { 0x01 };
                packet[..4].copy_from_slice(&[0x47, unit, u8::from(*second), 0x10 | *counter]);
                packet
            })
            .collect()
    }

    #[test]
    fn headers_that_follow_are_left_out() {
        let mut packer = Packer::new(false);
        let mut length = |packets: &[(bool, bool)]| {
            let stream = transport(packets);
            let packed = packer.push(&stream, Time::ZERO);
            assert_eq!(
                packed.iter().flat_map(|(_, packed)| unpack(packed)).collect::<Vec<_>>().concat(),
                stream
            );
            stream.len() - packed[0].1.len()
        };
        // Six follow the first, five where a unit begins, four behind a packet of another stream: a front of two bytes
        // says that the headers of four are not there.
        assert_eq!(length(&[(false, false); 7]), 16 - 2);
        let mut packets = [(false, false); 7];
        packets[3].1 = true;
        assert_eq!(length(&packets), 16 - 2);
        packets[3] = (true, false);
        assert_eq!(length(&packets), 16 - 2);
        // Three follow.
        packets[5].1 = true;
        assert_eq!(packer.push(&transport(&packets), Time::ZERO)[0].1.len(), 1 + 7 * 188);
        packer.set_shortens(false);
        assert_eq!(packer.push(&transport(&[(false, false); 7]), Time::ZERO)[0].1.len(), 1 + 7 * 188);
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
        // Null packets that are kept are alike.
        for (leaves_out, payload, length) in
            [(true, bytes, 1 + 403), (false, stream(&[true; 5]), 2 + 5 * 188 - 16)]
        {
            let mut packer = Packer::new(leaves_out);
            let packed = packer.push(&payload, Time::ZERO);
            assert_eq!(lengths(&packed), [length]);
            assert_eq!(unpack(&packed[0].1).concat(), payload);
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
        fn headers_come_back(
            parts in prop::collection::vec(prop::collection::vec(any::<(bool, bool)>(), 1..=7), 1..30),
            most in 0usize..2000, leaves_out in any::<bool>(), shortens in any::<bool>(), cut_at in 188usize..1316,
        ) {
            let mut packer = Packer::new(leaves_out);
            packer.set_most(most);
            packer.set_shortens(shortens);
            let (mut packed, mut expected) = (Vec::new(), Vec::new());
            for part in parts {
                let payload = transport(&part);
                packed.extend(packer.push(&payload, Time::ZERO));
                expected.extend(payload);
            }
            let packed = packed.into_iter().map(|(_, packed)| packed);
            let packed: Vec<_> = packed.flat_map(|whole| cut(&whole, cut_at).unwrap_or(vec![whole])).collect();
            let came: Vec<Arc<[u8]>> = packed.iter().flat_map(|packed| unpack(packed)).collect();
            prop_assert_eq!(came.concat(), expected);
            prop_assert!(packed.iter().all(|packed| left_out_bytes(packed).is_zero()));
        }
    }
}
