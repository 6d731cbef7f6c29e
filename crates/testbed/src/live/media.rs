//! What is fed to a sender: the bytes of a film, and when each datagram is due.

use std::time::Duration as StdDuration;

use anabranch_units::{Bytes, Rate};

use super::{DATAGRAM, PACKET, is_stuffing};

/// A film as it is fed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// Its bytes; a datagram has the next [`DATAGRAM`] of them, the last one the rest.
    pub bytes: Vec<u8>,
    /// When each datagram is due, from the start of the feed.
    pub due: Vec<StdDuration>,
}

impl Media {
    /// A film of constant rate, with its stuffing. Its program clock references grow evenly, so that the place of
    /// a packet says when it is due.
    #[must_use]
    pub fn constant(film: Vec<u8>, rate: Rate) -> Self {
        let places = (0..film.len()).step_by(DATAGRAM);
        let due = places.map(|place| rate.time_for(Bytes::new(place as u64)).into()).collect();
        Self { bytes: film, due }
    }

    /// The same film, of this rate, without its stuffing: a packet is due where it was in the film, a datagram
    /// when its last packet is.
    #[must_use]
    pub fn without_stuffing(film: &[u8], rate: Rate) -> Self {
        let placed = film.chunks_exact(PACKET).enumerate().filter(|(_, packet)| !is_stuffing(packet));
        let (places, packets): (Vec<usize>, Vec<&[u8]>) = placed.unzip();
        let last = places.chunks(DATAGRAM / PACKET).filter_map(|places| places.last());
        let due = last.map(|place| rate.time_for(Bytes::new((place * PACKET) as u64)).into()).collect();
        Self { bytes: packets.concat(), due }
    }

    /// The bytes that are due by then.
    #[must_use]
    pub fn due_by(&self, at: StdDuration) -> usize {
        (self.due.partition_point(|due| *due <= at) * DATAGRAM).min(self.bytes.len())
    }

    /// When the last datagram is due.
    #[must_use]
    pub fn length(&self) -> StdDuration {
        self.due.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty-one packets, of which every third has something in it.
    fn film() -> Vec<u8> {
        let packet = |index: u8| {
            let mut packet = vec![index; PACKET];
            packet[..4].copy_from_slice(if index.is_multiple_of(3) {
                &[0x47, 1, 0, 0x10]
            } else {
                &[0x47, 0x1f, 0xff, 0x10]
            });
            packet
        };
        (0..21).flat_map(packet).collect()
    }

    #[test]
    fn a_constant_film_is_due_evenly() {
        // A packet in a second.
        let media = Media::constant(film(), Rate::from_bps(188 * 8));
        assert_eq!(media.due, [0, 7, 14].map(StdDuration::from_secs));
        assert_eq!((media.bytes.len(), media.length()), (21 * PACKET, StdDuration::from_secs(14)));
        assert_eq!(media.due_by(StdDuration::from_secs(7)), 2 * DATAGRAM);
        assert_eq!(media.due_by(StdDuration::from_secs(99)), 21 * PACKET);
    }

    #[test]
    fn without_stuffing_each_packet_keeps_its_time() {
        let film = film();
        let media = Media::without_stuffing(&film, Rate::from_bps(188 * 8));
        assert_eq!(media.due, [StdDuration::from_secs(18)]);
        assert_eq!(media.bytes.len(), 7 * PACKET);
        assert!(media.bytes.chunks(PACKET).zip(0..).all(|(packet, index)| packet[4] == index * 3));
        assert_eq!(media.due_by(StdDuration::from_secs(17)), 0);
    }

    #[test]
    fn nothing_is_due_of_nothing() {
        assert_eq!(Media::without_stuffing(&[], Rate::from_mbps(1)).length(), StdDuration::ZERO);
    }
}
