//! Packet substitution records: which virtual flow stands for what a member sent (section 3.3).

use std::collections::VecDeque;
use std::ops::Range;

use super::names::VirtualId;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// In the member's sequence.
    start: u64,
    end: u64,
    /// The virtual flow, and the packet's place in its sequence.
    pub flow: VirtualId,
    pub place: u64,
}

impl Record {
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// Those of a member: what it has in flight, no byte twice, in the order of its sequence. As many as packets
/// in flight, which the group's windows bound. What is new comes at the end, and what goes is mostly at the
/// front.
#[derive(Clone, Debug, Default)]
pub(super) struct Records(VecDeque<Record>);

impl Records {
    /// Writes one down; nothing in `range` may be there yet.
    pub(super) fn add(&mut self, range: Range<u64>, flow: VirtualId, place: u64) {
        let record = Record { start: range.start, end: range.end, flow, place };
        match self.0.back() {
            Some(last) if last.start > range.start => {
                let at = self.0.partition_point(|before| before.start < range.start);
                self.0.insert(at, record);
            }
            _ => self.0.push_back(record),
        }
    }

    /// Takes out what lies in a range, to the end of `taken`; of records that lie in it partly, that part.
    pub(super) fn take(&mut self, range: Range<u64>, taken: &mut Vec<Record>) {
        // Mostly it is the oldest that goes, as a whole, and no other need be read.
        let is_in = |record: &mut Record| record.start >= range.start && record.end <= range.end;
        while let Some(oldest) = self.0.pop_front_if(is_in) {
            taken.push(oldest);
        }
        let Some((oldest, newest)) = self.0.front().zip(self.0.back()) else { return };
        if range.start >= range.end || newest.end <= range.start || oldest.start >= range.end {
            return;
        }
        let first = self.0.partition_point(|record| record.end <= range.start);
        let after = self.0.partition_point(|record| record.start < range.end);
        if first >= after {
            return;
        }
        let (before, behind) = (self.0[first], self.0[after - 1]);
        taken.extend(self.0.drain(first..after).map(|record| Record {
            start: record.start.max(range.start),
            end: record.end.min(range.end),
            ..record
        }));
        if behind.end > range.end {
            self.0.insert(first, Record { start: range.end, ..behind });
        }
        if before.start < range.start {
            self.0.insert(first, Record { end: range.start, ..before });
        }
    }

    /// From where to where so many of the oldest bytes are; `None` where there are none.
    pub(super) fn oldest(&self, bytes: u64) -> Option<Range<u64>> {
        let start = self.0.front()?.start;
        let mut left = bytes;
        for record in &self.0 {
            if record.bytes() >= left {
                return Some(start..record.start.saturating_add(left));
            }
            left -= record.bytes();
        }
        Some(start..u64::MAX)
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a number for every byte.
        #[test]
        fn they_know_who_sent_what(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 1u64..12), 0..40),
        ) {
            let mut records = Records::default();
            let mut bytes = [None; 80];
            for (place, (is_sent, start, length)) in steps.into_iter().enumerate() {
                let range = start..start + length;
                let expected: Vec<_> = range.clone().filter_map(|at| bytes[at as usize].take()).collect();
                let mut taken = Vec::new();
                records.take(range.clone(), &mut taken);
                let told: Vec<_> =
                    taken.iter().flat_map(|record| (record.start..record.end).map(|_| record.place)).collect();
                prop_assert_eq!(told, expected);
                if is_sent {
                    records.add(range.clone(), VirtualId(0), place as u64);
                    range.for_each(|at| bytes[at as usize] = Some(place as u64));
                }
            }
            // The oldest bytes are the first ones.
            let mut some = Vec::new();
            if let Some(range) = records.oldest(17) {
                records.take(range, &mut some);
            }
            let taken: u64 = some.iter().map(Record::bytes).sum();
            let known = bytes.iter().flatten().count() as u64;
            prop_assert_eq!(taken, known.min(17));
            bytes.iter_mut().filter(|byte| byte.is_some()).take(taken as usize).for_each(|byte| *byte = None);
            let left: u64 = records.take_all().iter().map(Record::bytes).sum();
            prop_assert_eq!(left, bytes.iter().flatten().count() as u64);
        }
    }
}
