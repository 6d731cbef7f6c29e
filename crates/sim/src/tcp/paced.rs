//! What a flow with a paced controller keeps beside the books of the others: its packets on their way one by
//! one, what they say of the path, and when the next one leaves.

use std::collections::{BTreeMap, VecDeque};

use anabranch_congestion::control::{Begin, Delivery, Pacing, Spurious};
use anabranch_congestion::delivery_rate::{DeliveryRate, SentPacket};
use anabranch_units::{Bytes, Duration, Time};

use super::doubts::Doubts;
use super::window::Window;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct OnItsWay {
    packet: SentPacket,
    /// Found lost, and not sent again yet.
    is_lost: bool,
    /// Sent more than once, so that its acknowledgement measures no round trip.
    is_again: bool,
}

/// The books of a paced flow. Positions are bytes, times nanoseconds.
#[derive(Debug)]
pub(super) struct Paced {
    pacing: Pacing,
    rate: DeliveryRate,
    /// By the first byte.
    packets: BTreeMap<u64, OnItsWay>,
    /// Bytes that were found lost and not sent again.
    missing: u64,
    /// What was sent more than once: when it was sent last, and its first byte.
    again: VecDeque<(Time, u64)>,
    doubts: Doubts,
    /// When the newest packet was sent that has arrived.
    newest: Time,
    has_begun: bool,
    /// `C.next_send_time` (draft-ietf-ccwg-bbr-06, section 5.6.2).
    next_departure: u64,
    /// Whether the departure time held back the last segment that was asked for.
    is_waiting: bool,
    /// What had been delivered when the window was full last.
    full_at: Option<Bytes>,
}

impl Paced {
    /// Those of a flow that begins, where its window's controller is paced.
    pub(super) fn of(window: &Window) -> Option<Box<Self>> {
        let pacing = window.pacing()?;
        Some(Box::new(Self {
            pacing,
            rate: DeliveryRate::default(),
            packets: BTreeMap::new(),
            missing: 0,
            again: VecDeque::new(),
            doubts: Doubts::default(),
            newest: Time::ZERO,
            has_begun: false,
            next_departure: 0,
            is_waiting: false,
            full_at: None,
        }))
    }

    /// When the segment may leave that was held back last.
    pub(super) fn departure(&self) -> Option<u64> {
        self.is_waiting.then_some(self.next_departure)
    }

    /// Whether a segment may leave now, if `has_segment` says that there is one which the window has room
    /// for.
    pub(super) fn may_depart(&mut self, now: u64, has_segment: bool) -> bool {
        self.is_waiting = has_segment && now < self.next_departure;
        has_segment && !self.is_waiting
    }

    /// Data is about to be sent.
    pub(super) fn before_sending(&mut self, now: u64, srtt: u64, window: &mut Window) {
        let begins = !self.has_begun || self.rate.is_app_limited();
        if begins && self.rate.in_flight().is_zero() {
            self.has_begun = true;
            window.on_begin(&Begin { now: Time::from_nanos(now), srtt: Duration::from_nanos(srtt) });
            self.obey(window);
        }
    }

    /// Bytes `[start, end)` leave.
    pub(super) fn sent(&mut self, start: u64, end: u64, is_again: bool, now: u64, window: &Window) {
        for (_, before) in self.cut(start, end) {
            if before.is_lost {
                self.missing -= before.packet.size.get();
            } else {
                self.rate.on_given_up(&before.packet);
            }
        }
        let size = Bytes::new(end - start);
        let packet = self.rate.on_sent(Time::from_nanos(now), size);
        self.packets.insert(start, OnItsWay { packet, is_lost: false, is_again });
        if is_again {
            self.again.push_back((packet.sent, start));
            self.doubts.sent_again(start, end, now);
        }
        self.next_departure = self.next_departure.max(now) + self.pacing.rate.time_for(size).as_nanos();
        // Another one of this size has no room any more.
        if (self.rate.in_flight() + size).get() > window.bytes() {
            self.full_at = Some(self.rate.delivered());
        }
    }

    /// Bytes `[start, end)` have arrived; `echo`: the timestamp that came with it, where everything before
    /// `end` is acknowledged and acknowledgements have timestamps.
    pub(super) fn arrived(&mut self, start: u64, end: u64, echo: Option<u32>, now: u64) {
        self.doubts.arrived(start, end, echo);
        for (_, one) in self.cut(start, end) {
            if one.is_lost {
                self.missing -= one.packet.size.get();
            }
            self.newest = self.newest.max(one.packet.sent);
            self.rate.on_delivered(Time::from_nanos(now), &one.packet, one.is_lost, !one.is_again);
        }
    }

    /// Those of the bytes `[start, end)` are lost that have not arrived.
    pub(super) fn lost(&mut self, start: u64, end: u64, now: u64, window: &mut Window) {
        for (first, one) in self.packets.range_mut(start..end).filter(|(_, one)| !one.is_lost) {
            one.is_lost = true;
            self.doubts.lost(*first, first + one.packet.size.get(), one.is_again);
            self.missing += one.packet.size.get();
            window.on_packet_lost(&self.rate.on_lost(Time::from_nanos(now), &one.packet));
        }
        self.obey(window);
    }

    /// What was sent again and is lost again, bytes `[start, end)`: something has arrived that was sent
    /// later, by a quarter of the least round trip (RFC 8985, section 6.2; RFC 6675 has only the timer for
    /// this).
    pub(super) fn lost_again(&mut self, now: u64, window: &mut Window) -> Vec<(u64, u64)> {
        let reordering = self.rate.least_rtt().unwrap_or(Duration::ZERO) / 4;
        let mut found = Vec::new();
        while let Some((sent, start)) = self.again.front().copied() {
            if sent + reordering >= self.newest {
                break;
            }
            self.again.pop_front();
            // It may have arrived, or have been sent once more.
            let one = self.packets.get(&start).filter(|one| !one.is_lost && one.packet.sent == sent);
            if let Some(end) = one.map(|one| start + one.packet.size.get()) {
                self.lost(start, end, now, window);
                found.push((start, end));
            }
        }
        found
    }

    /// A loss event or a time-out begins a recovery.
    pub(super) fn recovery_begins(&mut self) {
        self.doubts.begin(self.missing > 0);
    }

    /// The receiver has had bytes `[start, end)` twice.
    pub(super) fn duplicated(&mut self, start: u64, end: u64) {
        self.doubts.duplicated(start, end);
    }

    /// Whether the last recovery turns out not to have been needed, which the controller is told then.
    pub(super) fn takes_back(&mut self, now: u64, window: &mut Window) -> bool {
        let takes_back = self.doubts.are_settled();
        if takes_back {
            let total_delivered = self.rate.delivered();
            window.on_spurious(&Spurious { now: Time::from_nanos(now), total_delivered });
            self.obey(window);
        }
        takes_back
    }

    /// An acknowledgement has been read.
    pub(super) fn acknowledged(&mut self, is_in_recovery: bool, now: u64, window: &mut Window) {
        let now = Time::from_nanos(now);
        let Some(sample) = self.rate.sample(now) else { return };
        let is_cwnd_limited = self.full_at.is_some_and(|full_at| full_at >= sample.prior_delivered);
        window.on_delivery(&Delivery { now, sample, is_in_recovery, is_cwnd_limited });
        self.obey(window);
    }

    /// Whether the application holds the sender back (section 4.1.2.4), where `has_unsent` says whether it
    /// has written more than was sent.
    pub(super) fn check_app_limited(&mut self, has_unsent: bool, window: &Window) {
        if !has_unsent && self.missing == 0 && self.rate.in_flight().get() < window.bytes() {
            self.rate.on_app_limited();
        }
    }

    /// The connection ends.
    pub(super) fn clear(&mut self) {
        for one in self.packets.values().filter(|one| !one.is_lost) {
            self.rate.on_given_up(&one.packet);
        }
        self.packets.clear();
        self.doubts.begin(false);
        self.again.clear();
        self.missing = 0;
        self.is_waiting = false;
    }

    /// Takes in how the controller wants packets to leave.
    fn obey(&mut self, window: &Window) {
        if let Some(pacing) = window.pacing() {
            self.pacing = pacing;
            if pacing.is_held_back {
                self.rate.on_app_limited();
            }
        }
    }

    /// Takes out what bytes `[start, end)` are of packets on their way; what else a packet has stays.
    fn cut(&mut self, start: u64, end: u64) -> Vec<(u64, OnItsWay)> {
        let first = self.packets.range(..start).next_back().map(|(first, _)| *first);
        let from =
            first.filter(|first| first + self.packets[first].packet.size.get() > start).unwrap_or(start);
        let touched: Vec<_> =
            self.packets.range(from..end.max(from)).map(|(first, one)| (*first, *one)).collect();
        let part = |one: &OnItsWay, from: u64, to: u64| {
            let mut part = *one;
            part.packet.size = Bytes::new(to - from);
            part
        };
        let mut taken = Vec::with_capacity(touched.len());
        for (first, one) in touched {
            let last = first + one.packet.size.get();
            self.packets.remove(&first);
            if first < start {
                self.packets.insert(first, part(&one, first, start));
            }
            if last > end {
                self.packets.insert(end, part(&one, end, last));
            }
            let (from, to) = (first.max(start), last.min(end));
            taken.push((from, part(&one, from, to)));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use anabranch_congestion::control::Timeout;

    use super::*;
    use crate::model::{Congestion, Tcp};

    const SEGMENT: u64 = 1460;

    fn paced() -> (Box<Paced>, Window) {
        let window = Window::new(&Tcp { congestion: Congestion::Bbr, ..Tcp::DEPLOYED }, 1);
        (Paced::of(&window).unwrap(), window)
    }

    #[test]
    fn bytes_are_on_their_way_once_wherever_packets_were_cut() {
        let (mut paced, mut window) = paced();
        paced.sent(0, 1000, false, 0, &window);
        paced.sent(1000, 1500, false, 0, &window);
        paced.sent(1500, 2000, false, 0, &window);
        assert_eq!(paced.rate.in_flight(), Bytes::new(2000));
        paced.lost(0, 1000, 10, &mut window);
        assert_eq!((paced.rate.in_flight().get(), paced.missing), (1000, 1000));
        // Sent again in one piece that is larger than the one that was lost.
        paced.sent(0, 1200, true, 20, &window);
        assert_eq!((paced.rate.in_flight().get(), paced.missing), (2000, 0));
        paced.arrived(1100, 1700, None, 30);
        assert_eq!((paced.rate.in_flight().get(), paced.rate.delivered().get()), (1400, 600));
        // What has arrived does so once, and is not lost afterwards.
        paced.arrived(0, 1700, None, 40);
        paced.lost(0, 1700, 40, &mut window);
        assert_eq!(
            (paced.rate.in_flight().get(), paced.rate.delivered().get(), paced.missing),
            (300, 1700, 0)
        );
        paced.clear();
        assert_eq!(paced.rate.in_flight(), Bytes::ZERO);
    }

    #[test]
    fn a_window_comes_back_when_what_a_time_out_took_for_lost_arrives() {
        for is_lost in [false, true] {
            let (mut paced, mut window) = paced();
            paced.before_sending(0, 100_000_000, &mut window);
            (0..4).for_each(|one| paced.sent(one * SEGMENT, (one + 1) * SEGMENT, false, 1_000_000, &window));
            let before = window.bytes();
            let (now, flight) = (Time::from_nanos(300_000_000), paced.rate.in_flight());
            window.on_timeout(&Timeout { now, flight, is_repeated: false });
            paced.recovery_begins();
            paced.lost(0, 4 * SEGMENT, now.as_nanos(), &mut window);
            assert_eq!(window.bytes(), SEGMENT);
            paced.sent(0, SEGMENT, true, 300_000_000, &window);
            // The timestamp of the first copy, or of the second one.
            let echo = if is_lost { 300_000 } else { 1000 };
            paced.arrived(0, 2 * SEGMENT, Some(echo), 310_000_000);
            assert!(!paced.takes_back(310_000_000, &mut window));
            paced.arrived(2 * SEGMENT, 4 * SEGMENT, Some(1000), 320_000_000);
            assert_eq!(paced.takes_back(320_000_000, &mut window), !is_lost);
            assert_eq!(window.bytes(), if is_lost { SEGMENT } else { before });
        }
    }

    #[test]
    fn packets_leave_at_the_pacing_rate() {
        let (mut paced, mut window) = paced();
        // Ten segments in 100 ms at a gain of 2.77.
        paced.before_sending(0, 100_000_000, &mut window);
        let rate = paced.pacing.rate.as_f64();
        assert!((rate / (2.77 * 10.0 * 1460.0 * 8.0 / 0.1) - 1.0).abs() < 1e-9, "{rate}");
        let mut now = 0;
        for number in 0..10 {
            assert!(paced.may_depart(now, true));
            paced.sent(number * SEGMENT, (number + 1) * SEGMENT, false, now, &window);
            assert!(!paced.may_depart(now, true));
            now = paced.departure().unwrap();
        }
        let expected = 10.0 * 1460.0 * 8.0 / rate;
        assert!((now as f64 * 1e-9 / expected - 1.0).abs() < 1e-6, "{now}");
        // After a rest nothing is made up for.
        assert!(paced.may_depart(now * 3, true));
        paced.sent(10 * SEGMENT, 11 * SEGMENT, false, now * 3, &window);
        assert!(!paced.may_depart(now * 3, true));
        // What has no segment waits for none.
        assert!(!paced.may_depart(now * 3, false) && paced.departure().is_none());
    }
}
