//! What a path delivers (draft-ietf-ccwg-bbr-06, section 4.1, first
//! draft-cheng-iccrg-delivery-rate-estimation).
//!
//! A driver keeps a [`SentPacket`] for each packet on its way, tells [`DeliveryRate`] which of them arrived
//! and which are lost, and at the end of an acknowledgement takes a [`RateSample`]: how much was delivered
//! since the newest packet that it acknowledges was sent, and in which time. The draft's names are in
//! parentheses: C is the connection, P a packet, RS the sample.

use anabranch_units::{Bytes, Duration, Rate, Time};

/// What is noted of a packet when it is sent (section 4.1.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// What of its payload is still on its way; less than it had where a driver tells of a packet in parts.
    pub size: Bytes,
    /// When it left (`P.send_time`).
    pub sent: Time,
    /// Its place in the order of sending (`P.packet_id`).
    number: u64,
    delivered: Bytes,
    delivered_at: Time,
    first_sent: Time,
    lost: Bytes,
    in_flight: Bytes,
    is_app_limited: bool,
}

/// A packet that was found lost, as the model sees it (section 5.5.10.2, `HandleLostPacket`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// When it was found lost.
    pub now: Time,
    /// Its size (`P.size`).
    pub size: Bytes,
    /// What was in flight when it had just been sent, with it (`P.tx_in_flight`).
    pub sent_in_flight: Bytes,
    /// What was found lost since it was sent, with it (`C.lost - P.lost`).
    pub lost: Bytes,
    /// All that was delivered until now (`C.delivered`).
    pub total_delivered: Bytes,
    /// Whether the application held the sender back when it was sent (`P.is_app_limited`).
    pub is_app_limited: bool,
}

/// What an acknowledgement says of the path (section 4.1.2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// What this acknowledgement newly says to have arrived (`RS.newly_acked`).
    pub newly_acked: Bytes,
    /// What was newly found lost with it (`RS.newly_lost`).
    pub newly_lost: Bytes,
    /// The round trip of the newest packet in it that was sent only once (`RS.rtt`).
    pub rtt: Option<Duration>,
    /// The rate of delivery (`RS.delivery_rate`); zero where the interval was too short for one.
    pub rate: Rate,
    /// What was delivered since the newest packet in it was sent (`RS.delivered`).
    pub delivered: Bytes,
    /// What had been delivered when that packet was sent (`RS.prior_delivered`).
    pub prior_delivered: Bytes,
    /// All that was delivered until now (`C.delivered`).
    pub total_delivered: Bytes,
    /// What was in flight when that packet had just been sent, with it (`RS.tx_in_flight`).
    pub sent_in_flight: Bytes,
    /// What was found lost since that packet was sent (`RS.lost`).
    pub lost: Bytes,
    /// What is in flight now (`C.inflight`).
    pub in_flight: Bytes,
    /// Whether the application held the sender back when that packet was sent (`RS.is_app_limited`).
    pub is_app_limited: bool,
}

/// The estimator of a connection (section 4.1.2).
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: Bytes,
    delivered_at: Time,
    first_sent: Time,
    lost: Bytes,
    in_flight: Bytes,
    /// As soon as so much is delivered, the gap that the application left is out of the path
    /// (`C.app_limited`).
    app_limited_until: Option<Bytes>,
    /// The least round trip of the connection's life (`C.min_rtt`).
    least_rtt: Option<Duration>,
    sent_packets: u64,
    /// The newest packet that the acknowledgement delivered which is being read.
    newest: Option<SentPacket>,
    /// The newest of them that was sent only once.
    newest_timed: Option<Time>,
    newly_acked: Bytes,
    newly_lost: Bytes,
}

impl DeliveryRate {
    /// What has been delivered (`C.delivered`).
    pub fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// What is in flight: sent, and neither acknowledged nor found lost since (`C.inflight`).
    pub fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// The least round trip that was measured (`C.min_rtt`).
    pub fn least_rtt(&self) -> Option<Duration> {
        self.least_rtt
    }

    /// Whether the application holds the sender back, or did so a round trip ago.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// A packet leaves: what is to be kept of it (`OnPacketSent`, section 4.1.2.2).
    pub fn on_sent(&mut self, now: Time, size: Bytes) -> SentPacket {
        if self.in_flight.is_zero() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        self.in_flight += size;
        self.sent_packets += 1;
        SentPacket {
            size,
            sent: now,
            number: self.sent_packets,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: self.in_flight,
            is_app_limited: self.is_app_limited(),
        }
    }

    /// A packet has arrived (`UpdateRateSample`, section 4.1.2.3). `was_lost`: it had been found lost and was
    /// not sent again. `is_timed`: it was sent only once, so that its round trip is certain.
    pub fn on_delivered(&mut self, now: Time, packet: &SentPacket, was_lost: bool, is_timed: bool) {
        if !was_lost {
            self.in_flight -= packet.size;
        }
        self.delivered += packet.size;
        self.newly_acked += packet.size;
        self.delivered_at = now;
        // `IsNewestPacket`
        if self.newest.is_none_or(|newest| (packet.sent, packet.number) > (newest.sent, newest.number)) {
            self.newest = Some(*packet);
            self.first_sent = packet.sent;
        }
        if is_timed {
            self.newest_timed = self.newest_timed.max(Some(packet.sent));
        }
    }

    /// A packet is found lost.
    pub fn on_lost(&mut self, now: Time, packet: &SentPacket) -> LostPacket {
        self.on_given_up(packet);
        self.on_marked(now, packet)
    }

    /// A packet was marked by a queue (ECN) and has arrived: for the model it is as one that is lost. The draft
    /// asks for an answer as to congestion, and leaves open which (section "ECN").
    pub fn on_marked(&mut self, now: Time, packet: &SentPacket) -> LostPacket {
        self.lost += packet.size;
        self.newly_lost += packet.size;
        LostPacket {
            now,
            size: packet.size,
            sent_in_flight: packet.in_flight,
            lost: self.lost - packet.lost,
            total_delivered: self.delivered,
            is_app_limited: packet.is_app_limited,
        }
    }

    /// A packet counts no more, and is not lost: it is about to be sent again, or its connection ends.
    pub fn on_given_up(&mut self, packet: &SentPacket) {
        self.in_flight -= packet.size;
    }

    /// The sender could send more, and has nothing to send; or it holds itself back, and what is delivered
    /// says nothing of the path (`MarkConnectionAppLimited`, section 4.1.2.4).
    pub fn on_app_limited(&mut self) {
        self.app_limited_until = Some((self.delivered + self.in_flight).max(Bytes::new(1)));
    }

    /// The end of an acknowledgement (`GenerateRateSample`, section 4.1.2.3); `None` where it delivered
    /// nothing, and then what was found lost is told with the next one.
    pub fn sample(&mut self, now: Time) -> Option<RateSample> {
        let rtt = self.newest_timed.take().map(|sent| now.since(sent));
        if let Some(rtt) = rtt {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let newest = self.newest.take()?;
        let newly_acked = std::mem::take(&mut self.newly_acked);
        let newly_lost = std::mem::take(&mut self.newly_lost);
        let delivered = self.delivered - newest.delivered;
        let interval = newest.sent.since(newest.first_sent).max(self.delivered_at.since(newest.delivered_at));
        // Where less than the least round trip lies between, something was acknowledged that had been sent
        // twice.
        let is_reliable = self.least_rtt.is_some_and(|least| interval >= least);
        Some(RateSample {
            newly_acked,
            newly_lost,
            rtt,
            rate: if is_reliable { Rate::of(delivered, interval) } else { Rate::ZERO },
            delivered,
            prior_delivered: newest.delivered,
            total_delivered: self.delivered,
            sent_in_flight: newest.in_flight,
            lost: self.lost - newest.lost,
            in_flight: self.in_flight,
            is_app_limited: newest.is_app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1000);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Packets sent at these times in milliseconds.
    fn sent(rate: &mut DeliveryRate, times: &[u64]) -> Vec<SentPacket> {
        times.iter().map(|time| rate.on_sent(at(*time), SIZE)).collect()
    }

    fn acknowledged(rate: &mut DeliveryRate, time: u64, packets: &[SentPacket]) -> RateSample {
        packets.iter().for_each(|packet| rate.on_delivered(at(time), packet, false, true));
        rate.sample(at(time)).unwrap()
    }

    #[test]
    fn the_rate_is_that_at_which_a_bottleneck_lets_packets_through() {
        let mut rate = DeliveryRate::default();
        // Ten packets at once; the bottleneck lets one through each 10 ms, the round trip is 100 ms.
        let packets = sent(&mut rate, &[0; 10]);
        assert_eq!(rate.in_flight(), SIZE * 10);
        let mut last = None;
        for (packet, time) in packets.iter().zip((110..).step_by(10)) {
            let sample = acknowledged(&mut rate, time, &[*packet]);
            assert_eq!((sample.rtt, sample.newly_acked), (Some(Duration::from_millis(time)), SIZE));
            last = Some(sample);
        }
        // All of them between the sending and 200 ms.
        let last = last.unwrap();
        assert_eq!((last.delivered, last.rate), (SIZE * 10, Rate::of(SIZE * 10, Duration::from_millis(200))));
        // A packet sent now begins with the last acknowledgement.
        let more = sent(&mut rate, &[200, 210, 220]);
        let samples =
            [310, 320, 330].map(|time| acknowledged(&mut rate, time, &[more[(time as usize - 310) / 10]]));
        assert_eq!(samples[2].delivered, SIZE * 3);
        assert_eq!(samples[2].rate, Rate::of(SIZE * 3, Duration::from_millis(130)));
    }

    #[test]
    fn acknowledgements_that_come_at_once_do_not_beat_the_rate_of_sending() {
        let mut rate = DeliveryRate::default();
        let packets = sent(&mut rate, &[0, 10, 20, 30, 40]);
        acknowledged(&mut rate, 100, &packets[..1]);
        // Sent 10 ms apart from 0 on; acknowledged in one piece, 100 ms late.
        let late = sent(&mut rate, &[100, 150, 200, 250]);
        let all: Vec<_> = packets[1..].iter().chain(&late).copied().collect();
        let sample = acknowledged(&mut rate, 350, &all);
        // Since the sending of the last one's predecessor in the books, at 0: 250 ms; since the last
        // acknowledgement, at 100: 250 ms.
        assert_eq!(sample.rate, Rate::of(SIZE * 8, Duration::from_millis(250)));
    }

    #[test]
    fn a_gap_that_the_application_left_marks_a_round_trip() {
        let mut rate = DeliveryRate::default();
        let packets = sent(&mut rate, &[0, 1]);
        rate.on_app_limited();
        let marked = sent(&mut rate, &[2, 3]);
        assert!(!acknowledged(&mut rate, 100, &packets).is_app_limited);
        let free = sent(&mut rate, &[101]);
        assert!(acknowledged(&mut rate, 102, &marked[..1]).is_app_limited);
        // The gap is out of the path; what was sent before that was known is marked still.
        assert!(!rate.is_app_limited());
        assert!(acknowledged(&mut rate, 201, &free).is_app_limited);
        let after = sent(&mut rate, &[202]);
        assert!(!acknowledged(&mut rate, 302, &after).is_app_limited);
    }

    #[test]
    fn losses_are_counted_from_the_sending_of_each_packet() {
        let mut rate = DeliveryRate::default();
        let packets = sent(&mut rate, &[0, 1, 2, 3]);
        rate.on_delivered(at(100), &packets[3], false, true);
        let first = rate.on_lost(at(100), &packets[0]);
        assert_eq!((first.lost, first.sent_in_flight, first.total_delivered), (SIZE, SIZE, SIZE));
        let second = rate.on_lost(at(100), &packets[1]);
        assert_eq!((second.lost, second.sent_in_flight), (SIZE * 2, SIZE * 2));
        let sample = rate.sample(at(100)).unwrap();
        assert_eq!((sample.lost, sample.newly_lost, sample.sent_in_flight), (SIZE * 2, SIZE * 2, SIZE * 4));
        assert_eq!((sample.in_flight, rate.in_flight()), (SIZE, SIZE));
        // Sent again: what was lost before is not of its time.
        let again = sent(&mut rate, &[101]);
        rate.on_delivered(at(201), &again[0], false, false);
        let sample = rate.sample(at(201)).unwrap();
        assert_eq!((sample.lost, sample.rtt), (Bytes::ZERO, None));
        // What was lost and has arrived after all was in flight no more.
        rate.on_delivered(at(202), &packets[1], true, false);
        assert_eq!(rate.in_flight(), SIZE);
    }

    #[test]
    fn less_than_the_least_round_trip_gives_no_rate() {
        let mut rate = DeliveryRate::default();
        let packets = sent(&mut rate, &[0]);
        acknowledged(&mut rate, 100, &packets);
        // Sent twice; the answer to the first comes 5 ms after the second.
        let twice = sent(&mut rate, &[100]);
        rate.on_given_up(&twice[0]);
        let again = sent(&mut rate, &[195]);
        rate.on_delivered(at(200), &again[0], false, false);
        let sample = rate.sample(at(200)).unwrap();
        assert_eq!((sample.rate, sample.delivered), (Rate::ZERO, SIZE));
        assert_eq!(rate.sample(at(201)), None);
    }
}
