//! Which packets are lost, and which losses begin a loss event (RFC 5348, sections 5.1 and 5.2).

use std::collections::BTreeMap;

use anabranch_units::{Duration, Time};

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) sequence: u64,
    pub(super) time: Time,
}

/// Consecutive packets that are lost: all between two that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    before: Arrival,
    after: Arrival,
}

/// Finds lost packets: those that did not arrive although so many later ones did.
#[derive(Clone, Debug)]
pub(super) struct LossDetector {
    later_packets: usize,
    /// The newest packet below which all are judged.
    judged: Arrival,
    /// What arrived above it, fewer than `later_packets` once all holes were taken.
    above: BTreeMap<u64, Time>,
}

impl LossDetector {
    /// From the first packet on.
    pub(super) fn new(first: Arrival, later_packets: u32) -> Self {
        let later_packets = usize::try_from(later_packets).unwrap_or(usize::MAX).max(1);
        Self { later_packets, judged: first, above: BTreeMap::new() }
    }

    /// A packet arrived. `false` if it is a duplicate, or comes after it was taken for lost.
    pub(super) fn packet(&mut self, arrival: Arrival) -> bool {
        let is_new = arrival.sequence > self.judged.sequence && !self.above.contains_key(&arrival.sequence);
        if is_new {
            self.above.insert(arrival.sequence, arrival.time);
        }
        is_new
    }

    /// The next hole that is certain. Ask until there is none.
    pub(super) fn next_hole(&mut self) -> Option<Hole> {
        while let Some((&sequence, &time)) = self.above.first_key_value() {
            let (before, after) = (self.judged, Arrival { sequence, time });
            let is_hole = sequence - before.sequence > 1;
            if is_hole && self.above.len() < self.later_packets {
                return None;
            }
            self.above.pop_first();
            self.judged = after;
            if is_hole {
                return Some(Hole { before, after });
            }
        }
        None
    }
}

/// Joins the losses of one round trip to one event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEvents {
    /// When the last event began.
    began: Option<Time>,
    /// The round of the packet that showed it.
    round: u64,
}

impl LossEvents {
    /// The packets of a hole with which loss events begin: the first one ever, and each that is more than a
    /// round trip after the beginning of the event before it. At most the last `most` of them. Without a
    /// round-trip time they all belong together. With a `round`, that of the packet which shows the hole,
    /// there is one event at most, and none in the round of the one before it.
    pub(super) fn in_hole(
        &mut self,
        hole: &Hole,
        rtt: Option<Duration>,
        round: Option<u64>,
        most: usize,
    ) -> Vec<u64> {
        if round.is_some_and(|round| self.began.is_some() && round <= self.round) {
            return Vec::new();
        }
        let (first, last) = (hole.before.sequence + 1, hole.after.sequence - 1);
        let rtt = rtt.unwrap_or(Duration::MAX);
        let begin = match self.began {
            None => first,
            // More than a round trip ago even when the hole begins.
            Some(began) if hole.before.time > began + rtt => first,
            Some(began) => {
                let left = (began + rtt).since(hole.before.time);
                first.max(hole.before.sequence.saturating_add(hole.packets_beyond(left)))
            }
        };
        if begin > last {
            return Vec::new();
        }
        let step = hole.packets_beyond(rtt);
        let count = if round.is_some() { 1 } else { (last - begin) / step + 1 };
        let skipped = count.saturating_sub(u64::try_from(most).unwrap_or(u64::MAX));
        let events: Vec<u64> = (skipped..count).map(|event| begin + event * step).collect();
        if let Some(&newest) = events.last() {
            self.began = Some(hole.arrival_of(newest));
            self.round = round.unwrap_or(0);
        }
        events
    }
}

impl Hole {
    /// When a packet in it would have arrived, if they came evenly (T_loss).
    fn arrival_of(&self, sequence: u64) -> Time {
        let (steps, packets) = (sequence - self.before.sequence, self.after.sequence - self.before.sequence);
        let nanos = u128::from(self.span().as_nanos()) * u128::from(steps) / u128::from(packets);
        self.before.time + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many packets, at least one, take longer than `span` to arrive.
    fn packets_beyond(&self, span: Duration) -> u64 {
        let packets = u128::from(span.as_nanos()) * u128::from(self.after.sequence - self.before.sequence);
        let whole = packets.checked_div(u128::from(self.span().as_nanos())).unwrap_or(u128::MAX);
        u64::try_from(whole).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn span(&self) -> Duration {
        self.after.time.since(self.before.time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(sequence: u64, millis: u64) -> Arrival {
        Arrival { sequence, time: Time::ZERO + Duration::from_millis(millis) }
    }

    fn hole(before: Arrival, after: Arrival) -> Hole {
        Hole { before, after }
    }

    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    #[test]
    fn three_later_packets_show_a_loss() {
        let mut detector = LossDetector::new(at(0, 0), 3);
        assert!(detector.packet(at(2, 20)) && detector.packet(at(3, 30)));
        assert_eq!(detector.next_hole(), None);
        // A late packet closes the hole.
        assert!(detector.packet(at(1, 35)));
        assert!(!detector.packet(at(1, 36)) && !detector.packet(at(3, 37)));
        assert_eq!(detector.next_hole(), None);
        // 4 and 6 are missing; 5, 7 and 8 show that 4 is lost, but only two show it of 6.
        for sequence in [5, 7, 8] {
            detector.packet(at(sequence, 10 * sequence));
        }
        assert_eq!(detector.next_hole(), Some(hole(at(3, 30), at(5, 50))));
        assert_eq!(detector.next_hole(), None);
        detector.packet(at(9, 90));
        assert_eq!(detector.next_hole(), Some(hole(at(5, 50), at(7, 70))));
        assert_eq!(detector.next_hole(), None);
        assert!(detector.above.is_empty());
        // It comes too late.
        assert!(!detector.packet(at(6, 100)));
    }

    #[test]
    fn one_later_packet_is_enough_for_ns2() {
        let mut detector = LossDetector::new(at(0, 0), 1);
        detector.packet(at(2, 20));
        assert_eq!(detector.next_hole(), Some(hole(at(0, 0), at(2, 20))));
    }

    #[test]
    fn losses_of_a_round_trip_are_one_event() {
        let mut events = LossEvents::default();
        // Packet 1, interpolated at 10 ms.
        assert_eq!(events.in_hole(&hole(at(0, 0), at(2, 20)), RTT, None, 9), [1]);
        // 11 at 110 ms is exactly a round trip later: the same event. 13 at 130 ms is another.
        assert!(events.in_hole(&hole(at(10, 100), at(12, 120)), RTT, None, 9).is_empty());
        assert_eq!(events.in_hole(&hole(at(12, 120), at(14, 140)), RTT, None, 9), [13]);
        // 17 to 39 are lost: 170 to 390 ms, an event at 240 ms and one at 350 ms.
        assert_eq!(events.in_hole(&hole(at(16, 160), at(40, 400)), RTT, None, 9), [24, 35]);
        assert_eq!(events.in_hole(&hole(at(49, 490), at(51, 510)), RTT, None, 9), [50]);
    }

    #[test]
    fn an_event_that_needs_a_report_goes_on_without() {
        let mut events = LossEvents::default();
        // Three packets, a round trip apart, are one event, and so is the next one with no report in between.
        assert_eq!(events.in_hole(&hole(at(0, 0), at(4, 800)), RTT, Some(5), 9), [1]);
        assert!(events.in_hole(&hole(at(4, 800), at(6, 1200)), RTT, Some(5), 9).is_empty());
        assert_eq!(events.in_hole(&hole(at(6, 1200), at(8, 1600)), RTT, Some(6), 9), [7]);
        // A report alone does not make an event, a round trip has to be over as well.
        assert!(events.in_hole(&hole(at(8, 1401), at(10, 1403)), RTT, Some(7), 9).is_empty());
    }

    #[test]
    fn of_many_events_the_last_are_told() {
        let mut events = LossEvents::default();
        // 10 ms a packet, so an event each 11 packets: 1, 12, ... 991.
        assert_eq!(events.in_hole(&hole(at(0, 0), at(1000, 10_000)), RTT, None, 2), [980, 991]);
        // Without a round-trip time they are one, and so are packets that arrive at once.
        assert_eq!(LossEvents::default().in_hole(&hole(at(0, 0), at(1000, 10_000)), None, None, 9), [1]);
        assert_eq!(LossEvents::default().in_hole(&hole(at(0, 5), at(1000, 5)), RTT, None, 9), [1]);
    }

    #[test]
    fn an_old_event_is_over_even_when_packets_arrive_at_once() {
        let mut events = LossEvents::default();
        assert_eq!(events.in_hole(&hole(at(0, 0), at(2, 0)), RTT, None, 9), [1]);
        assert_eq!(events.in_hole(&hole(at(5, 101), at(7, 101)), RTT, None, 9), [6]);
    }

    proptest! {
        #[test]
        fn holes_are_what_did_not_arrive(lost in prop::collection::vec(any::<bool>(), 1..100)) {
            let mut detector = LossDetector::new(at(0, 0), 3);
            let (mut found, mut sequence) = (Vec::new(), 0);
            // Three packets at the end show the last losses.
            for lost in lost.iter().chain(&[false; 3]) {
                sequence += 1;
                if !lost {
                    prop_assert!(detector.packet(at(sequence, sequence)));
                    while let Some(hole) = detector.next_hole() {
                        found.extend(hole.before.sequence + 1..hole.after.sequence);
                    }
                    prop_assert!(detector.above.len() < 3);
                }
            }
            let expected: Vec<u64> =
                (1..).zip(&lost).filter(|(_, lost)| **lost).map(|(sequence, _)| sequence).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn events_are_more_than_a_round_trip_apart(
            arrivals in prop::collection::vec((1u64..50, 1u64..200), 1..60), rtt in 1u64..500,
        ) {
            let (mut events, mut before, mut times) = (LossEvents::default(), at(0, 0), Vec::new());
            for (packets, millis) in arrivals {
                let after = Arrival {
                    sequence: before.sequence + packets,
                    time: before.time + Duration::from_millis(millis),
                };
                if packets > 1 {
                    for event in events.in_hole(&hole(before, after), Some(Duration::from_millis(rtt)), None, 1000) {
                        prop_assert!(before.sequence < event && event < after.sequence);
                        let part = (event - before.sequence) as f64 / packets as f64;
                        times.push(before.time.as_secs_f64() + part * millis as f64 / 1e3);
                    }
                }
                before = after;
            }
            for pair in times.windows(2) {
                prop_assert!(pair[1] - pair[0] > rtt as f64 / 1e3 - 1e-6);
            }
        }
    }
}
