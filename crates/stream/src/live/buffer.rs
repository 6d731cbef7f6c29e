//! The receiver's buffer: puts packets in order and hands each on when its time has come, a latency budget after it came
//! into the sender. What has not come by then is given up.
//!
//! The clocks of the two ends are not the same. The least time between a packet's coming into the sender and its arrival, as
//! the two clocks have it, stands for the way: it is looked for in the last seconds, so that it follows clocks that drift.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Duration, Time};

use super::wire::{MAX_MAP, expand, from_micros, low_bits, micros};

/// Packets that may wait, and how far ahead of the next one they may be.
const MOST_PACKETS: u64 = 1 << 16;
/// How long the least time on the way counts, once or twice.
const OFFSET_WINDOW: Duration = Duration::from_secs(15);
/// A packet that is off by so much more than the budget tells of a clock that jumped.
const JUMP: Duration = Duration::from_secs(5);

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
    /// With their times in microseconds.
    packets: BTreeMap<u64, (i64, Arc<[u8]>)>,
    /// Microseconds of the newest packet's time, as the sender tells it.
    newest_time: Option<u64>,
    /// What is added to the sender's times, so that they go on where its clock jumped: what waits keeps its turn.
    correction: i64,
    offset: Offset,
    /// The stream ends before this packet, and is not waited for any longer than until then.
    end: Option<(u64, Time)>,
    counts: Counts,
}

/// The least difference of the receiver's and the sender's time, in microseconds, now and in the window before.
#[derive(Clone, Copy, Debug, Default)]
struct Offset {
    began: Time,
    now: Option<i64>,
    before: Option<i64>,
}

impl Offset {
    fn sample(&mut self, difference: i64, now: Time) {
        if now.since(self.began) > OFFSET_WINDOW {
            *self = Self { began: now, now: None, before: self.now };
        }
        self.now = Some(self.now.map_or(difference, |least| least.min(difference)));
    }

    fn get(&self) -> Option<i64> {
        [self.now, self.before].into_iter().flatten().min()
    }
}

impl Buffer {
    /// For a stream from packet `next` on.
    pub(super) fn new(latency: Duration, next: u64) -> Self {
        Self {
            latency,
            next,
            packets: BTreeMap::new(),
            newest_time: None,
            correction: 0,
            offset: Offset::default(),
            end: None,
            counts: Counts::default(),
        }
    }

    /// The number of a packet with these low bits.
    pub(super) fn sequence(&self, low: u32) -> u64 {
        expand(low, self.next)
    }

    /// A packet came, with the low bits of its time. `false`: it is of no use.
    pub(super) fn insert(
        &mut self,
        sequence: u64,
        time: u32,
        payload: Arc<[u8]>,
        way: Way,
        now: Time,
    ) -> bool {
        if sequence >= self.next + MOST_PACKETS {
            self.counts.too_far += 1;
            return false;
        }
        let time = self.follow_clock(time, way, now);
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
        match way {
            Way::Sent => {}
            Way::SentAgain => self.counts.recovered_by_retransmission += 1,
            Way::Calculated => self.counts.recovered_by_fec += 1,
        }
        self.packets.insert(sequence, (time, payload));
        true
    }

    /// The time of a packet with these low bits of it, also behind a jump of the sender's clock.
    fn follow_clock(&mut self, low: u32, way: Way, now: Time) -> i64 {
        let now_micros = signed(micros(now));
        let told = self.newest_time.map_or(low.into(), |newest| expand(low, newest));
        let time = signed(told).saturating_add(self.correction);
        let offset = self.offset.get();
        // As if it had just come into the sender.
        let fresh = now_micros.saturating_sub(offset.unwrap_or(0));
        let has_jumped = offset.is_some() && fresh.abs_diff(time) > (self.latency + JUMP).as_micros();
        if way == Way::Calculated {
            // It may have been sent long ago, and tells nothing of the clock now.
            return if has_jumped { fresh } else { time };
        }
        if has_jumped {
            self.counts.clock_jumps += 1;
            self.correction = fresh.saturating_sub(signed(told));
            self.newest_time = Some(told);
            return fresh;
        }
        self.newest_time = self.newest_time.max(Some(told));
        self.offset.sample(now_micros.saturating_sub(time), now);
        time
    }

    /// When a packet of this time is handed on.
    fn due(&self, time: i64) -> Time {
        let local = time.saturating_add(self.offset.get().unwrap_or(0));
        from_micros(u64::try_from(local).unwrap_or(0)) + self.latency
    }

    /// The next packet, if its time has come. Holes before it are given up.
    pub(super) fn pop(&mut self, now: Time) -> Option<Arc<[u8]>> {
        let (&sequence, (time, _)) = self.packets.first_key_value()?;
        if self.due(*time) > now {
            return None;
        }
        let (_, payload) = self.packets.remove(&sequence)?;
        self.counts.lost += sequence - self.next;
        self.counts.delivered += 1;
        self.next = sequence + 1;
        Some(payload)
    }

    /// When [`Self::pop`] gives a packet, or the end has come.
    pub(super) fn deadline(&self) -> Time {
        match self.packets.first_key_value() {
            Some((_, (time, _))) => self.due(*time),
            None => self.end.map_or(Time::NEVER, |(_, until)| until),
        }
    }

    /// The stream ends before packet `next`. What has not come a latency budget from now does not come any more.
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
        self.counts.lost += end.saturating_sub(self.next).min(MOST_PACKETS);
        self.next = self.next.max(end);
        true
    }

    /// What the sender is to be told: the low bits of the next packet, and which of those behind it are there.
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

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LATENCY: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn payload(number: u64) -> Arc<[u8]> {
        number.to_be_bytes().as_slice().into()
    }

    /// Packet `sequence` came into the sender at 10 ms times its number, and arrives at `millis`.
    fn insert(buffer: &mut Buffer, sequence: u64, way: Way, millis: u64) -> bool {
        buffer.insert(sequence, sequence as u32 * 10_000, payload(sequence), way, at(millis))
    }

    #[test]
    fn every_packet_waits_for_its_time() {
        let mut buffer = Buffer::new(LATENCY, 0);
        assert!(insert(&mut buffer, 0, Way::Sent, 1000));
        // The way takes 20 ms less than the first packet made believe.
        assert!(insert(&mut buffer, 1, Way::Sent, 990));
        assert_eq!(buffer.deadline(), at(1080));
        assert!(buffer.pop(at(1079)).is_none());
        assert_eq!(buffer.pop(at(1080)), Some(payload(0)));
        assert!(buffer.pop(at(1089)).is_none());
        assert_eq!(buffer.pop(at(1090)), Some(payload(1)));
    }

    #[test]
    fn a_hole_is_waited_for_until_the_packet_behind_it_is_due() {
        let mut buffer = Buffer::new(LATENCY, 0);
        for sequence in [0, 2, 4, 5] {
            insert(&mut buffer, sequence, Way::Sent, 1000 + 10 * sequence);
        }
        assert_eq!(buffer.map(), (0, vec![0b11_0101]));
        assert!(insert(&mut buffer, 1, Way::SentAgain, 1100));
        assert!(insert(&mut buffer, 3, Way::Calculated, 1100));
        assert!(!insert(&mut buffer, 3, Way::SentAgain, 1101));
        let mut delivered = Vec::new();
        for millis in 1000..1200 {
            delivered.extend(buffer.pop(at(millis)).map(|packet| (packet, millis)));
        }
        let expected: Vec<_> = (0..6).map(|number| (payload(number), 1100 + 10 * number)).collect();
        assert_eq!(delivered, expected);
        insert(&mut buffer, 7, Way::Sent, 1200);
        assert!(buffer.pop(at(1300)).is_some());
        assert!(!insert(&mut buffer, 6, Way::SentAgain, 1301));
        let counts = buffer.counts();
        assert_eq!((counts.delivered, counts.lost, counts.late, counts.duplicate), (7, 1, 1, 1));
        assert_eq!((counts.recovered_by_fec, counts.recovered_by_retransmission), (1, 1));
    }

    #[test]
    fn a_clock_that_drifts_is_followed() {
        let mut buffer = Buffer::new(LATENCY, 0);
        // The sender's clock is slow: by a thousandth, 1 ms a second.
        for second in 0..100u64 {
            let time = second as u32 * 1_000_000;
            buffer.insert(second, time, payload(second), Way::Sent, at(second * 1001));
            let due = buffer.deadline();
            assert!(due.since(at(second * 1001)) >= LATENCY - Duration::from_millis(31), "{second}");
            assert!(buffer.pop(due).is_some());
        }
        assert_eq!(buffer.counts().clock_jumps, 0);
    }

    #[test]
    fn a_clock_that_jumps_stops_nothing() {
        for jump in [3_000_000_000u32, 60_000_000] {
            let mut buffer = Buffer::new(LATENCY, 0);
            insert(&mut buffer, 0, Way::Sent, 1000);
            buffer.pop(at(1100)).unwrap();
            let time = 10_000u32.wrapping_add(jump);
            buffer.insert(1, time, payload(1), Way::Sent, at(1010));
            assert_eq!((buffer.counts().clock_jumps, buffer.deadline()), (1, at(1110)), "{jump}");
        }
    }

    #[test]
    fn the_end_is_waited_for_within_the_budget() {
        let mut buffer = Buffer::new(LATENCY, 0);
        insert(&mut buffer, 0, Way::Sent, 1000);
        buffer.end(3, at(1010));
        assert!(buffer.pop(at(1100)).is_some() && !buffer.has_ended(at(1100)));
        assert_eq!(buffer.deadline(), at(1110));
        assert!(buffer.has_ended(at(1110)));
        assert_eq!(buffer.counts().lost, 2);
        let mut whole = Buffer::new(LATENCY, 0);
        insert(&mut whole, 0, Way::Sent, 1000);
        whole.end(1, at(1010));
        whole.pop(at(1100)).unwrap();
        assert!(whole.has_ended(at(1100)));
        assert_eq!(whole.counts().lost, 0);
    }

    #[test]
    fn what_waits_when_the_clock_jumps_keeps_its_turn() {
        const HOUR: u32 = 3_600_000_000;
        for jump in [HOUR, HOUR.wrapping_neg(), 60_000_000, 60_000_000u32.wrapping_neg()] {
            let mut buffer = Buffer::new(LATENCY, 0);
            // A packet each 10 ms; 4 and 5 come from parity behind the jump, 4 with a time from before it.
            for sequence in [0, 1, 2, 3, 6, 7, 8, 9] {
                let time = sequence as u32 * 10_000 + if sequence < 5 { 0 } else { jump };
                buffer.insert(sequence, time, payload(sequence), Way::Sent, at(1000 + 10 * sequence));
            }
            buffer.insert(4, 40_000, payload(4), Way::Calculated, at(1095));
            buffer.insert(5, jump.wrapping_add(50_000), payload(5), Way::Calculated, at(1095));
            let mut delivered = Vec::new();
            for millis in 1095..1400 {
                while let Some(packet) = buffer.pop(at(millis)) {
                    delivered.push((packet, millis));
                }
            }
            let times: Vec<u64> = delivered.iter().map(|(_, millis)| *millis).collect();
            assert!(delivered.iter().map(|(packet, _)| packet.clone()).eq((0..10).map(payload)), "{jump}");
            assert_eq!(times, [1100, 1110, 1120, 1130, 1195, 1195, 1195, 1195, 1195, 1195], "{jump}");
            assert_eq!((buffer.counts().clock_jumps, buffer.counts().lost), (1, 0));
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_the_order_holds_and_memory_is_bounded(
            packets in prop::collection::vec((any::<u32>(), any::<u32>(), 0u64..100_000), 1..300),
            first in 0u64..1 << 40,
        ) {
            let mut buffer = Buffer::new(LATENCY, first);
            let (mut now, mut last) = (0, None);
            for (low, time, millis) in packets {
                now += millis;
                let sequence = buffer.sequence(low % 100_000);
                buffer.insert(sequence, time, payload(sequence), Way::Sent, at(now));
                while let Some(packet) = buffer.pop(at(now)) {
                    prop_assert!(last.replace(packet.clone()) < Some(packet));
                }
                prop_assert!(buffer.len() as u64 <= MOST_PACKETS);
            }
        }
    }
}
