//! What arrives on one connection: for the control of its rate, and so that the sender learns what was lost.

use std::collections::BTreeMap;

use anabranch_congestion::tfrc::{self, Feedback, PacketInfo};
use anabranch_protocol::live::wire::{
    FLOWS_UNIT, Header, MAX_RANGES, RateReport, Report, Several, from_micros, low_bits, micros,
};
use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Time};

use super::control::parameters;

/// How far behind the newest datagram one may be and still be new. Older ones are replays, as far as anybody
/// can tell.
const WINDOW: u64 = 1 << 14;
/// How far ahead of the newest datagram one may be.
const MOST_AHEAD: u64 = 1 << 16;
/// So many later datagrams show that one is lost (RFC 9002, section 6.1.1).
const LATER: u64 = 3;

/// The sender is told what arrived so often at least, also where a round trip takes longer: by that it knows how
/// much a path carries that has become slow.
pub(super) const TELL: Duration = Duration::from_millis(100);

/// The receiver's side of a connection.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    rate: tfrc::Receiver,
    arrived: RangeSet,
    newest: Option<u64>,
    /// The newest number of each of the connections that it stands for.
    members: BTreeMap<u8, u64>,
    /// What the control of the rate wants to be told.
    feedback: Option<Feedback>,
    /// To this datagram the sender is told of a hole with each that comes: one report may be lost, and at low
    /// rates the third datagram after a hole comes too late for another attempt.
    tell_until: Option<u64>,
    has_hole_to_tell: bool,
    /// When it was told last, and whether it is time.
    told: Time,
    is_to_tell: bool,
}

impl Arrivals {
    /// `is_published`: the control of the rate is that of RFC 5348.
    pub(super) fn new(is_published: bool) -> Self {
        Self {
            rate: tfrc::Receiver::new(parameters(is_published)),
            arrived: RangeSet::new(),
            newest: None,
            members: BTreeMap::new(),
            feedback: None,
            tell_until: None,
            has_hole_to_tell: false,
            told: Time::ZERO,
            is_to_tell: false,
        }
    }

    /// A datagram arrived. `false`: it is a duplicate, or cannot be.
    pub(super) fn datagram(&mut self, header: &Header, size: Bytes, now: Time) -> bool {
        let newest = self.newest.unwrap_or(0);
        let sequence = header.width.expand(header.sequence, newest);
        let is_in_window = sequence.saturating_add(WINDOW) > newest && sequence <= newest + MOST_AHEAD;
        if !is_in_window || self.arrived.insert(sequence..sequence + 1) == 0 {
            return false;
        }
        let expected = self.newest.map_or(0, |newest| newest + 1);
        if sequence > expected {
            self.tell_until = Some(sequence + LATER - 1);
        }
        self.newest = Some(newest.max(sequence));
        self.has_hole_to_tell |= sequence >= expected && self.tell_until.is_some_and(|last| sequence <= last);
        self.arrived.remove(0..newest.saturating_sub(WINDOW));
        let (flows, member, member_sequence) = match header.several {
            None => (1.0, 0, sequence),
            Some(Several { flows, member, member_sequence }) => {
                let near = self.members.get(&member).copied().unwrap_or(0);
                let flows = (f64::from(flows) / FLOWS_UNIT).max(1.0);
                (flows, member, header.width.expand(member_sequence, near))
            }
        };
        let newest_of_member = self.members.entry(member).or_default();
        *newest_of_member = member_sequence.max(*newest_of_member);
        let info = PacketInfo {
            sequence,
            timestamp: from_micros(header.timestamp.into()),
            rtt: (header.rtt > 0).then(|| Duration::from_micros(header.rtt.into())),
            round: 0,
            flows,
            connection: member.into(),
            connection_sequence: member_sequence,
        };
        self.feedback = self.rate.packet(&info, size, now).or(self.feedback);
        self.is_to_tell |= now.since(self.told) >= TELL;
        true
    }

    /// When [`Self::report`] has to be asked again.
    pub(super) fn deadline(&self) -> Time {
        if self.feedback.is_some() || self.has_hole_to_tell || self.is_to_tell {
            Time::ZERO
        } else {
            self.rate.deadline()
        }
    }

    /// The report that is due, if one is, without what is known of the stream.
    pub(super) fn report(&mut self, now: Time) -> Option<Report> {
        if let Some(feedback) = self.rate.tick(now) {
            self.feedback = Some(feedback);
        }
        let has_hole_to_tell = std::mem::take(&mut self.has_hole_to_tell);
        let is_to_tell = std::mem::take(&mut self.is_to_tell);
        let feedback = self.feedback.take();
        if feedback.is_none() && !has_hole_to_tell && !is_to_tell {
            return None;
        }
        self.told = now;
        let rate = feedback.map(|feedback| RateReport {
            timestamp: low_bits(micros(feedback.timestamp)),
            delay: feedback.delay,
            receive_rate: feedback.receive_rate,
            loss_event_rate: feedback.loss_event_rate,
        });
        let arrived = self.arrived.iter().rev().take(MAX_RANGES).map(|range| {
            let length = u16::try_from(range.end - range.start).unwrap_or(u16::MAX);
            (low_bits(range.end - 1), length)
        });
        Some(Report { rate, arrived: arrived.collect(), ..Report::default() })
    }

    /// The loss event rate (p).
    pub(super) fn loss_event_rate(&self) -> f64 {
        self.rate.loss_event_rate()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_protocol::live::wire::Width;
    use proptest::prelude::*;

    use super::*;

    fn header(sequence: u64) -> Header {
        Header { width: Width::Wide, sequence: low_bits(sequence), timestamp: 7, rtt: 1000, several: None }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_hole_is_told_with_each_of_three_later_datagrams() {
        let mut arrivals = Arrivals::new(false);
        let mut told = Vec::new();
        for sequence in [0, 1, 3, 4, 5, 6] {
            assert!(arrivals.datagram(&header(sequence), Bytes::new(100), at(1)));
            if let Some(report) = arrivals.report(at(1)) {
                told.push((sequence, report));
            }
        }
        // The first datagram is reported for the rate; the loss of 2 with 5 for both.
        let numbers: Vec<u64> = told.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(numbers, [0, 3, 4, 5]);
        assert_eq!(told[1].1.arrived, [(3, 1), (1, 2)]);
        assert_eq!(told[3].1.arrived, [(5, 3), (1, 2)]);
    }

    #[test]
    fn duplicates_replays_and_leaps_are_not_new() {
        let mut arrivals = Arrivals::new(false);
        assert!(arrivals.datagram(&header(0), Bytes::new(100), at(0)));
        assert!(!arrivals.datagram(&header(0), Bytes::new(100), at(0)));
        assert!(!arrivals.datagram(&header(MOST_AHEAD + 1), Bytes::new(100), at(0)));
        assert!(arrivals.datagram(&header(MOST_AHEAD), Bytes::new(100), at(0)));
        assert!(!arrivals.datagram(&header(MOST_AHEAD - WINDOW), Bytes::new(100), at(0)));
        assert!(arrivals.datagram(&header(MOST_AHEAD - WINDOW + 1), Bytes::new(100), at(0)));
    }

    #[test]
    fn narrow_counters_go_on_beyond_their_bits() {
        let mut arrivals = Arrivals::new(false);
        // Of two connections in turn, of which the second began later.
        for sequence in 0..200_000u64 {
            let (member, number) = if sequence % 2 == 0 { (0, sequence / 2) } else { (1, sequence / 2 + 7) };
            let several = Several { flows: 128, member, member_sequence: Width::Narrow.low(number) };
            let header = Header {
                width: Width::Narrow,
                sequence: Width::Narrow.low(sequence),
                several: Some(several),
                ..header(0)
            };
            assert!(arrivals.datagram(&header, Bytes::new(100), at(sequence / 100)));
        }
        assert_eq!(arrivals.newest, Some(199_999));
        assert_eq!(arrivals.members, BTreeMap::from([(0, 99_999), (1, 100_006)]));
        // Nothing was lost.
        assert_eq!(arrivals.loss_event_rate(), 0.0);
    }

    proptest! {
        #[test]
        fn reports_tell_what_arrived(sequences in prop::collection::vec(0u64..300, 1..200)) {
            let mut arrivals = Arrivals::new(false);
            let mut expected = std::collections::BTreeSet::new();
            for sequence in sequences {
                prop_assert_eq!(
                    arrivals.datagram(&header(sequence), Bytes::new(100), at(0)), expected.insert(sequence));
            }
            let report = arrivals.report(at(5)).unwrap();
            prop_assert!(report.arrived.len() <= MAX_RANGES);
            let mut newest_first = expected.iter().rev();
            for (last, length) in report.arrived {
                for sequence in (u64::from(last) + 1 - u64::from(length)..=last.into()).rev() {
                    prop_assert_eq!(newest_first.next(), Some(&sequence));
                }
            }
        }
    }
}
