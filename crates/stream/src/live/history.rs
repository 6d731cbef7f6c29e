//! Media packets that were sent and may have to be sent again: as long as they can still come in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use units::Time;

use super::queue::Packet;
use super::wire::{Report, expand};

/// Packets that are kept.
const MOST_PACKETS: usize = 1 << 15;

/// What was sent, by its number in the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    sent: BTreeMap<u64, Packet>,
    /// What was lost and waits to be sent again.
    again: BTreeSet<u64>,
    /// Everything below was received or given up, as the receiver says.
    settled: u64,
}

impl History {
    pub(super) fn sent(&mut self, sequence: u64, packet: Packet) {
        self.sent.insert(sequence, packet);
        if self.sent.len() > MOST_PACKETS
            && let Some((oldest, _)) = self.sent.pop_first()
        {
            self.again.remove(&oldest);
        }
    }

    /// The receiver has these.
    pub(super) fn report(&mut self, report: &Report, next: u64) {
        let settled = expand(report.settled, self.settled);
        // A report that was overtaken, and one that speaks of what was not sent.
        if settled > next || settled + 8 * report.had.len() as u64 <= self.settled {
            return;
        }
        if settled > self.settled {
            self.settled = settled;
            self.sent = self.sent.split_off(&settled);
            self.again = self.again.split_off(&settled);
        }
        let had = report.had.iter().enumerate().flat_map(|(index, byte)| {
            (0..8u64).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * index as u64 + bit)
        });
        for sequence in had.map(|distance| settled + distance) {
            self.sent.remove(&sequence);
            self.again.remove(&sequence);
        }
    }

    /// A packet was lost: it waits to be sent again unless the receiver has it or it is too old.
    pub(super) fn lost(&mut self, sequence: u64) {
        if self.sent.contains_key(&sequence) {
            self.again.insert(sequence);
        }
    }

    /// Forgets packets that came into the sender before `oldest`.
    pub(super) fn expire(&mut self, oldest: Time) {
        while let Some(entry) = self.sent.first_entry()
            && entry.get().time < oldest
        {
            let (sequence, _) = entry.remove_entry();
            self.again.remove(&sequence);
        }
    }

    /// When the packet that is to be sent again next came into the sender.
    pub(super) fn next_again(&self) -> Option<(u64, Time)> {
        let sequence = *self.again.first()?;
        self.sent.get(&sequence).map(|packet| (sequence, packet.time))
    }

    /// Takes a packet that is sent again off the list.
    pub(super) fn take_again(&mut self, sequence: u64) -> Option<(Time, Arc<[u8]>)> {
        self.again.remove(&sequence);
        self.sent.get(&sequence).map(|packet| (packet.time, packet.payload.clone()))
    }

    /// Packets that wait to be sent again.
    pub(super) fn waiting(&self) -> usize {
        self.again.len()
    }

    /// Whether nothing is left that the receiver may miss.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    fn history(count: u64) -> History {
        let mut history = History::default();
        for sequence in 0..count {
            let time = Time::ZERO + Duration::from_millis(sequence);
            history.sent(sequence, Packet { time, payload: vec![0].into() });
        }
        history
    }

    fn report(settled: u32, had: &[u8]) -> Report {
        Report { settled, had: had.to_vec(), ..Report::default() }
    }

    #[test]
    fn what_the_receiver_has_is_not_sent_again() {
        let mut history = history(10);
        (0..10).for_each(|sequence| history.lost(sequence));
        history.report(&report(2, &[0b101]), 10);
        assert_eq!(history.sent.keys().copied().collect::<Vec<_>>(), [3, 5, 6, 7, 8, 9]);
        assert_eq!(history.waiting(), 6);
        // What is known is not forgotten for an old report, and nobody has what was not sent.
        history.report(&report(0, &[]), 10);
        history.report(&report(11, &[]), 10);
        assert_eq!(history.sent.len(), 6);
        history.lost(4);
        assert_eq!(history.next_again().map(|(sequence, _)| sequence), Some(3));
        assert!(history.take_again(3).is_some());
        assert_eq!(history.next_again().map(|(sequence, _)| sequence), Some(5));
        history.expire(Time::ZERO + Duration::from_millis(7));
        assert_eq!(history.next_again().map(|(sequence, _)| sequence), Some(7));
        history.report(&report(10, &[]), 10);
        assert!(history.is_empty() && history.waiting() == 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut history = history(MOST_PACKETS as u64);
        history.lost(0);
        history.sent(MOST_PACKETS as u64, Packet { time: Time::ZERO, payload: vec![0].into() });
        assert_eq!((history.sent.len(), history.waiting()), (MOST_PACKETS, 0));
    }
}
