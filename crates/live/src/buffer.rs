//! The receiver's buffer: puts packets in order and hands each on when its time has come, a latency budget
//! after it came into the sender ([`SenderClock`]). What has not come by then is given up.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_protocol::live::wire::{MAX_MAP, low_bits};
use anabranch_units::{Bytes, Duration, Time};

use super::clock::SenderClock;
use super::{kept_size, most_kept};

/// How far ahead of the next packet one may be.
const MOST_AHEAD: u64 = 1 << 18;

/// What became of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed on.
    pub delivered: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Had neither in time nor calculated: holes in the stream.
    pub lost: u64,
    /// Calculated from parity in time.
    pub recovered_by_fec: u64,
    /// Sent again and in time.
    pub recovered_by_retransmission: u64,
    /// Arrived after they had been given up.
    pub late: u64,
    /// Arrived when they were there already.
    pub duplicate: u64,
    /// Too far ahead of the stream to be kept.
    pub too_far: u64,
    /// How often the sender's clock jumped.
    pub clock_jumps: u64,
}

impl Counts {
    /// Both together.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            bytes: self.bytes + other.bytes,
            lost: self.lost + other.lost,
            recovered_by_fec: self.recovered_by_fec + other.recovered_by_fec,
            recovered_by_retransmission: self.recovered_by_retransmission + other.recovered_by_retransmission,
            late: self.late + other.late,
            duplicate: self.duplicate + other.duplicate,
            too_far: self.too_far + other.too_far,
            clock_jumps: self.clock_jumps + other.clock_jumps,
        }
    }
}

/// How a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Sent,
    SentAgain,
    Calculated,
}

/// Packets that wait for their time.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    latency: Duration,
    /// The next packet to be handed on.
    next: u64,
    /// With the times at which they came into the sender, as [`SenderClock::came`] tells them.
    packets: BTreeMap<u64, (i64, Arc<[u8]>)>,
    /// What they take in memory.
    size: Bytes,
    /// The stream ends before this packet, and is not waited for any longer than until then.
    end: Option<(u64, Time)>,
    counts: Counts,
}

impl Buffer {
    /// For a stream from packet `next` on.
    pub(super) fn new(latency: Duration, next: u64) -> Self {
        Self {
            latency,
            next,
            packets: BTreeMap::new(),
            size: Bytes::ZERO,
            end: None,
            counts: Counts::default(),
        }
    }

    /// The next packet to be handed on: the numbers of others are near.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// A packet is here that came into the sender then. `false`: it is of no use.
    pub(super) fn insert(&mut self, sequence: u64, came: i64, payload: Arc<[u8]>, way: Way) -> bool {
        if sequence < self.next {
            // What could be calculated has come before its packet.
            if way == Way::Sent || way == Way::SentAgain {
                self.counts.late += 1;
            }
            return false;
        }
        if self.packets.contains_key(&sequence) {
            self.counts.duplicate += 1;
            return false;
        }
        let size = self.size + kept_size(&payload);
        if sequence >= self.next.saturating_add(MOST_AHEAD) || size > most_kept(self.latency) {
            self.counts.too_far += 1;
            return false;
        }
        match way {
            Way::Sent => {}
            Way::SentAgain => self.counts.recovered_by_retransmission += 1,
            Way::Calculated => self.counts.recovered_by_fec += 1,
        }
        self.size = size;
        self.packets.insert(sequence, (came, payload));
        true
    }

    /// The next packet, if its time has come. Holes before it are given up.
    pub(super) fn pop(&mut self, clock: &SenderClock, now: Time) -> Option<Arc<[u8]>> {
        let (&sequence, (came, _)) = self.packets.first_key_value()?;
        if clock.here(*came) + self.latency > now {
            return None;
        }
        let (_, payload) = self.packets.remove(&sequence)?;
        self.size -= kept_size(&payload);
        self.counts.lost += sequence - self.next;
        self.counts.delivered += 1;
        self.next = sequence + 1;
        Some(payload)
    }

    /// When [`Self::pop`] gives a packet, or the end has come.
    pub(super) fn deadline(&self, clock: &SenderClock) -> Time {
        match self.packets.first_key_value() {
            Some((_, (came, _))) => clock.here(*came) + self.latency,
            None => self.end.map_or(Time::NEVER, |(_, until)| until),
        }
    }

    /// The stream ends before packet `next`. What has not come a latency budget from now does not come any
    /// more.
    pub(super) fn end(&mut self, next: u64, now: Time) {
        self.end.get_or_insert((next, now + self.latency));
    }

    /// Whether the stream was handed on to its end. What is missing at its tail counts as lost then.
    pub(super) fn has_ended(&mut self, now: Time) -> bool {
        let Some((end, until)) = self.end else { return false };
        if !self.packets.is_empty() || (self.next < end && now < until) {
            return false;
        }
        // A sender that speaks of an end far ahead cannot make us count what nobody sent.
        self.counts.lost += end.saturating_sub(self.next).min(MOST_AHEAD);
        self.next = self.next.max(end);
        true
    }

    /// What the sender is to be told: the low bits of the next packet, and which of those behind it are
    /// there.
    pub(super) fn map(&self) -> (u32, Vec<u8>) {
        let mut map = Vec::new();
        for sequence in self.packets.range(self.next..self.next + 8 * MAX_MAP as u64).map(|(key, _)| *key) {
            // Below the length of the map.
            let bit = usize::try_from(sequence - self.next).unwrap_or(0);
            if map.len() <= bit / 8 {
                map.resize(bit / 8 + 1, 0);
            }
            map[bit / 8] |= 1 << (bit % 8);
        }
        (low_bits(self.next), map)
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn latency(&self) -> Duration {
        self.latency
    }

    /// Packets that wait.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_protocol::live::wire::{Header, Width, micros};
    use anabranch_units::Rate;
    use proptest::prelude::*;

    use super::super::ConnectionId;
    use super::*;

    const LATENCY: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn payload(number: u64) -> Arc<[u8]> {
        number.to_be_bytes().as_slice().into()
    }

    /// A buffer and the clock by which it goes. The sender's begins a second later.
    struct Ends {
        clock: SenderClock,
        buffer: Buffer,
    }

    impl Ends {
        fn new(next: u64) -> Self {
            Self { clock: SenderClock::default(), buffer: Buffer::new(LATENCY, next) }
        }

        /// Packet `sequence` came into the sender at `time`, and leaves it at `left`.
        fn arrive(&mut self, sequence: u64, (time, left): (u32, u32), way: Way, now: Time) -> bool {
            let left = (way != Way::Calculated).then_some(left);
            if let Some(timestamp) = left {
                let header = Header { width: Width::Wide, sequence: 0, timestamp, rtt: 0, several: None };
                self.clock.arrived(ConnectionId(0), &header, true, LATENCY, now);
            }
            let came = self.clock.came(time, left, LATENCY);
            self.buffer.insert(sequence, came, payload(sequence), way)
        }

        /// The same at 10 ms times its number; when it is sent again it leaves then.
        fn insert(&mut self, sequence: u64, way: Way, millis: u64) -> bool {
            let time = sequence as u32 * 10_000;
            let left = if way == Way::SentAgain { low_bits(micros(at(millis - 1000))) } else { time };
            self.arrive(sequence, (time, left), way, at(millis))
        }

        fn pop(&mut self, now: Time) -> Option<Arc<[u8]>> {
            self.buffer.pop(&self.clock, now)
        }

        fn deadline(&self) -> Time {
            self.buffer.deadline(&self.clock)
        }
    }

    #[test]
    fn every_packet_waits_for_its_time() {
        let mut ends = Ends::new(0);
        assert!(ends.insert(0, Way::Sent, 1000));
        // The way takes 20 ms less than the first packet made believe.
        assert!(ends.insert(1, Way::Sent, 990));
        assert_eq!(ends.deadline(), at(1080));
        assert!(ends.pop(at(1079)).is_none());
        assert_eq!(ends.pop(at(1080)), Some(payload(0)));
        assert!(ends.pop(at(1089)).is_none());
        assert_eq!(ends.pop(at(1090)), Some(payload(1)));
    }

    #[test]
    fn a_hole_is_waited_for_until_the_packet_behind_it_is_due() {
        let mut ends = Ends::new(0);
        for sequence in [0, 2, 4, 5] {
            ends.insert(sequence, Way::Sent, 1000 + 10 * sequence);
        }
        assert_eq!(ends.buffer.map(), (0, vec![0b11_0101]));
        assert!(ends.insert(1, Way::SentAgain, 1100));
        assert!(ends.insert(3, Way::Calculated, 1100));
        assert!(!ends.insert(3, Way::SentAgain, 1101));
        let mut delivered = Vec::new();
        for millis in 1000..1200 {
            delivered.extend(ends.pop(at(millis)).map(|packet| (packet, millis)));
        }
        let expected: Vec<_> = (0..6).map(|number| (payload(number), 1100 + 10 * number)).collect();
        assert_eq!(delivered, expected);
        ends.insert(7, Way::Sent, 1200);
        assert!(ends.pop(at(1300)).is_some());
        assert!(!ends.insert(6, Way::SentAgain, 1301));
        let counts = ends.buffer.counts();
        assert_eq!((counts.delivered, counts.lost, counts.late, counts.duplicate), (7, 1, 1, 1));
        assert_eq!((counts.recovered_by_fec, counts.recovered_by_retransmission), (1, 1));
    }

    #[test]
    fn a_packet_that_waited_in_the_sender_is_handed_on_as_if_it_had_not() {
        let mut ends = Ends::new(0);
        ends.arrive(0, (0, 0), Way::Sent, at(1000));
        ends.arrive(1, (10_000, 70_000), Way::Sent, at(1070));
        assert_eq!((ends.pop(at(1100)), ends.deadline()), (Some(payload(0)), at(1110)));
    }

    #[test]
    fn a_clock_that_jumps_stops_nothing() {
        for jump in [3_000_000_000u32, 60_000_000] {
            let mut ends = Ends::new(0);
            ends.insert(0, Way::Sent, 1000);
            ends.pop(at(1100)).unwrap();
            let time = 10_000u32.wrapping_add(jump);
            ends.arrive(1, (time, time), Way::Sent, at(1010));
            assert_eq!((ends.clock.jumps(), ends.deadline()), (1, at(1110)), "{jump}");
        }
    }

    #[test]
    fn the_end_is_waited_for_within_the_budget() {
        let mut ends = Ends::new(0);
        ends.insert(0, Way::Sent, 1000);
        ends.buffer.end(3, at(1010));
        assert!(ends.pop(at(1100)).is_some() && !ends.buffer.has_ended(at(1100)));
        assert_eq!(ends.deadline(), at(1110));
        assert!(ends.buffer.has_ended(at(1110)));
        assert_eq!(ends.buffer.counts().lost, 2);
        let mut whole = Ends::new(0);
        whole.insert(0, Way::Sent, 1000);
        whole.buffer.end(1, at(1010));
        whole.pop(at(1100)).unwrap();
        assert!(whole.buffer.has_ended(at(1100)));
        assert_eq!(whole.buffer.counts().lost, 0);
    }

    #[test]
    fn what_waits_when_the_clock_jumps_keeps_its_turn() {
        const HOUR: u32 = 3_600_000_000;
        for jump in [HOUR, HOUR.wrapping_neg(), 60_000_000, 60_000_000u32.wrapping_neg()] {
            let mut ends = Ends::new(0);
            // A packet each 10 ms; 4 and 5 come from parity behind the jump, 4 with a time from before it.
            for sequence in [0, 1, 2, 3, 6, 7, 8, 9] {
                let before = sequence as u32 * 10_000;
                let time = before.wrapping_add(if sequence < 5 { 0 } else { jump });
                ends.arrive(sequence, (time, time), Way::Sent, at(1000 + 10 * sequence));
            }
            ends.arrive(4, (40_000, 0), Way::Calculated, at(1095));
            ends.arrive(5, (jump.wrapping_add(50_000), 0), Way::Calculated, at(1095));
            let mut delivered = Vec::new();
            for millis in 1095..1400 {
                while let Some(packet) = ends.pop(at(millis)) {
                    delivered.push((packet, millis));
                }
            }
            let times: Vec<u64> = delivered.iter().map(|(_, millis)| *millis).collect();
            assert!(delivered.iter().map(|(packet, _)| packet.clone()).eq((0..10).map(payload)), "{jump}");
            // Packet 4 counts as just come when the newest datagram left.
            assert_eq!(times, [1100, 1110, 1120, 1130, 1190, 1190, 1190, 1190, 1190, 1190], "{jump}");
            assert_eq!((ends.clock.jumps(), ends.buffer.counts().lost), (1, 0));
        }
    }

    #[test]
    fn a_minute_of_20_mbps_can_wait_and_memory_is_bounded() {
        let minute = Duration::from_secs(60);
        let mut buffer = Buffer::new(minute, 0);
        let whole: Arc<[u8]> = vec![0; 1316].into();
        let packets = Rate::from_mbps(20).amount_in(minute).get() / 1316;
        assert!((0..packets).all(|sequence| buffer.insert(sequence, 0, whole.clone(), Way::Sent)));
        while buffer.insert(buffer.len() as u64, 0, whole.clone(), Way::Sent) {}
        assert!(buffer.size <= most_kept(minute) && buffer.counts().too_far == 1);
    }

    proptest! {
        #[test]
        fn whatever_comes_the_order_holds_and_memory_is_bounded(
            packets in prop::collection::vec((any::<u32>(), any::<[u32; 2]>(), 0u64..100_000), 1..300),
            first in 0u64..1 << 40,
        ) {
            let mut ends = Ends::new(first);
            let (mut now, mut last) = (0, None);
            for (low, [time, left], millis) in packets {
                now += millis;
                let sequence = Width::Wide.expand(low % 300_000, ends.buffer.next());
                ends.arrive(sequence, (time, left), Way::Sent, at(now));
                while let Some(packet) = ends.pop(at(now)) {
                    prop_assert!(last.replace(packet.clone()) < Some(packet));
                }
                prop_assert!(ends.buffer.size <= most_kept(LATENCY));
            }
            let size = ends.buffer.packets.values().map(|(_, payload)| kept_size(payload));
            prop_assert_eq!(size.fold(Bytes::ZERO, |sum, size| sum + size), ends.buffer.size);
        }
    }
}
