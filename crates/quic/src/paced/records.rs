//! What was sent, packet by packet, where a transport names none of them.
//!
//! It tells of an acknowledged packet when that was sent and how large it was, in the order of sending where
//! several left at once; and of losses how much was lost and when the newest of it was sent. As a packet is
//! lost only with everything sent before it that has not arrived (RFC 9002, section 6.1), the oldest ones are
//! meant.

use std::collections::VecDeque;

use anabranch_congestion::delivery_rate::{DeliveryRate, LostPacket, RateSample, SentPacket};
use anabranch_units::{Bytes, Time};

/// The packets of a connection on their way, and the books of what its path delivers.
#[derive(Debug, Default)]
pub(super) struct Records {
    rate: DeliveryRate,
    /// In the order of sending. One of no size has arrived or is lost.
    packets: VecDeque<SentPacket>,
    /// The newest one that has arrived.
    newest: Option<SentPacket>,
}

impl Records {
    pub(super) fn in_flight(&self) -> Bytes {
        self.rate.in_flight()
    }

    pub(super) fn delivered(&self) -> Bytes {
        self.rate.delivered()
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.rate.is_app_limited()
    }

    pub(super) fn on_app_limited(&mut self) {
        self.rate.on_app_limited();
    }

    /// The end of an acknowledgement.
    pub(super) fn sample(&mut self, now: Time) -> Option<RateSample> {
        self.rate.sample(now)
    }

    pub(super) fn sent(&mut self, now: Time, size: Bytes) {
        self.packets.push_back(self.rate.on_sent(now, size));
    }

    /// So much of what was sent then has arrived.
    pub(super) fn arrived(&mut self, now: Time, sent: Time, bytes: Bytes) {
        let first = self.packets.partition_point(|packet| packet.sent < sent);
        for packet in self.take(first, sent, bytes) {
            self.rate.on_delivered(now, &packet, false, true);
            if self.newest.is_none_or(|newest| packet.sent >= newest.sent) {
                self.newest = Some(packet);
            }
        }
    }

    /// So much is lost of what was sent until then.
    pub(super) fn lost(&mut self, now: Time, sent: Time, bytes: Bytes) -> Vec<LostPacket> {
        self.take(0, sent, bytes).iter().map(|packet| self.rate.on_lost(now, packet)).collect()
    }

    /// The newest packet that has arrived was marked.
    pub(super) fn marked(&mut self, now: Time) -> Option<LostPacket> {
        self.newest.as_ref().map(|packet| self.rate.on_marked(now, packet))
    }

    /// No more than this is in flight. What is beyond it was given up with the handshake, and is never
    /// acknowledged: packets that are small enough, the oldest first.
    pub(super) fn forget_beyond(&mut self, in_flight: Bytes) {
        let mut beyond = self.in_flight() - in_flight;
        for packet in &mut self.packets {
            if beyond.is_zero() {
                break;
            }
            if packet.size <= beyond {
                self.rate.on_given_up(packet);
                beyond -= packet.size;
                packet.size = Bytes::ZERO;
            }
        }
        self.tidy();
    }

    /// Takes so much out of the books, from the packet at `first` to those sent at `last`.
    fn take(&mut self, first: usize, last: Time, mut bytes: Bytes) -> Vec<SentPacket> {
        let mut taken = Vec::new();
        for packet in self.packets.range_mut(first..).take_while(|packet| packet.sent <= last) {
            if bytes.is_zero() {
                break;
            }
            let size = packet.size.min(bytes);
            if size.is_zero() {
                continue;
            }
            let mut part = *packet;
            part.size = size;
            taken.push(part);
            packet.size -= size;
            bytes -= size;
        }
        self.tidy();
        taken
    }

    fn tidy(&mut self) {
        while self.packets.pop_front_if(|packet| packet.size.is_zero()).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Duration, Rate};

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    const PACKET: Bytes = Bytes::new(1000);

    #[test]
    fn packets_are_found_again_by_when_they_were_sent() {
        let mut records = Records::default();
        for millis in [0, 10, 20, 20, 20, 30] {
            records.sent(at(millis), PACKET);
        }
        records.arrived(at(110), at(10), PACKET);
        records.arrived(at(120), at(20), PACKET);
        records.arrived(at(120), at(20), PACKET);
        let sample = records.sample(at(120)).unwrap();
        assert_eq!((sample.newly_acked, sample.in_flight), (PACKET * 3, PACKET * 3));
        assert_eq!(
            (sample.rtt, sample.rate),
            (Some(Duration::from_millis(100)), Rate::of(PACKET * 3, Duration::from_millis(120)))
        );
        // The first and what is left of the third time: the newest is not among them.
        let lost = records.lost(at(121), at(20), PACKET * 2);
        assert_eq!(lost.iter().map(|packet| packet.sent_in_flight).collect::<Vec<_>>(), [PACKET, PACKET * 5]);
        assert_eq!((records.in_flight(), records.packets.len()), (PACKET, 1));
        // What nobody sent is not in the books.
        records.arrived(at(130), at(25), PACKET);
        records.arrived(at(130), at(10), PACKET);
        assert_eq!(records.sample(at(130)), None);
    }

    #[test]
    fn packets_that_are_never_acknowledged_are_forgotten() {
        let mut records = Records::default();
        for size in [1000, 40, 1000, 40, 1000] {
            records.sent(at(0), Bytes::new(size));
        }
        records.arrived(at(100), at(0), PACKET);
        records.forget_beyond(PACKET * 2);
        assert_eq!(records.in_flight(), PACKET * 2);
        records.arrived(at(101), at(0), PACKET * 2);
        assert_eq!((records.in_flight(), records.packets.len()), (Bytes::ZERO, 0));
        assert_eq!(records.sample(at(101)).unwrap().newly_acked, PACKET * 3);
    }

    #[test]
    fn a_mark_is_as_a_loss_of_what_has_arrived() {
        let mut records = Records::default();
        assert_eq!(records.marked(at(0)), None);
        records.sent(at(0), PACKET);
        records.sent(at(1), PACKET);
        records.arrived(at(100), at(0), PACKET);
        let marked = records.marked(at(100)).unwrap();
        assert_eq!((marked.lost, marked.sent_in_flight, marked.size), (PACKET, PACKET, PACKET));
        assert_eq!(records.in_flight(), PACKET);
    }
}
