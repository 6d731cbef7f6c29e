//! The sequence of a member whose transport tells only when a packet was sent.

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_units::{Bytes, Time};

/// Gives the bytes that a QUIC connection sends places in a sequence, and finds them again by the time at
/// which they were sent: its congestion controller is told of acknowledgements without packet numbers.
///
/// Packets sent at the same moment are taken to be acknowledged in their order. As long as the connection's
/// own in-flight count is right, none is kept for longer than it is in flight.
#[derive(Clone, Debug, Default)]
pub struct SentTimes {
    next: u64,
    batches: VecDeque<Batch>,
}

/// What was sent at a moment and is in flight still.
#[derive(Clone, Debug)]
struct Batch {
    sent: Time,
    range: Range<u64>,
}

impl SentTimes {
    /// So much was sent. Answers its range. Times never go back: an earlier one counts as the last one.
    pub fn sent(&mut self, now: Time, bytes: Bytes) -> Range<u64> {
        let range = self.next..self.next.saturating_add(bytes.get());
        self.next = range.end;
        match self.batches.back_mut() {
            Some(last) if last.sent >= now => last.range.end = range.end,
            _ => self.batches.push_back(Batch { sent: now, range: range.clone() }),
        }
        range
    }

    /// So much of what was sent then was acknowledged. Answers its range, which is empty where nothing of it
    /// is known.
    pub fn acknowledged(&mut self, sent: Time, bytes: Bytes) -> Range<u64> {
        let place = self.batches.partition_point(|batch| batch.sent < sent);
        let Some(batch) = self.batches.get_mut(place).filter(|batch| batch.sent == sent) else { return 0..0 };
        let start = batch.range.start;
        let end = start.saturating_add(bytes.get()).min(batch.range.end);
        batch.range.start = end;
        if batch.range.is_empty() {
            self.batches.remove(place);
        }
        start..end
    }

    /// So much was lost of what was sent until then: the oldest of it. Answers the ranges.
    pub fn lost(&mut self, sent_until: Time, bytes: Bytes) -> Vec<Range<u64>> {
        let mut left = bytes.get();
        let mut lost = Vec::new();
        while left > 0
            && let Some(batch) = self.batches.front_mut().filter(|batch| batch.sent <= sent_until)
        {
            let start = batch.range.start;
            let end = start.saturating_add(left).min(batch.range.end);
            left -= end - start;
            batch.range.start = end;
            if batch.range.is_empty() {
                self.batches.pop_front();
            }
            lost.push(start..end);
        }
        lost
    }
}
