//! A sender's side of a group: what it was granted, and what the group has to hear of.

use std::collections::VecDeque;

/// Bytes `[start, end)` that the group has to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Acknowledged(u64, u64),
    /// Acknowledged by SACK before the loss event that is told next: no window grows by a duplicate
    /// acknowledgement (RFC 5681, section 3.2).
    Sacked(u64, u64),
    Lost(u64, u64),
    TimedOut,
}

/// What a group lets a sender do, and what it does not know yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Grants {
    /// What it was granted and has not sent.
    pub allowance: u64,
    /// What was acknowledged and lost since the group was told, in order.
    notes: Vec<Note>,
    /// The timer ran out since the group was told.
    pub has_timed_out: bool,
    /// Where segments that were sent once and are not acknowledged end, and when they were sent.
    sent: VecDeque<(u64, u64)>,
    /// The round trip that was measured last, until the group hears of it.
    rtt: Option<u64>,
}

impl Grants {
    /// Something that the group has to hear of.
    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// A new segment was sent.
    pub(super) fn sent(&mut self, end: u64, now: u64) {
        self.sent.push_back((end, now));
    }

    /// Everything up to `end`, or a part of it that ends there, has arrived. The round trip is that of the segment
    /// that came last, for which its receiver waited least, as Linux and QUIC have it (RFC 9002, section 5.1).
    pub(super) fn acknowledged(&mut self, end: u64, now: u64) {
        let mut newest = None;
        while let Some(first) = self.sent.front().filter(|first| first.0 <= end) {
            newest = Some(*first);
            self.sent.pop_front();
        }
        if let Some((_, sent)) = newest.filter(|newest| newest.0 == end) {
            self.rtt = Some(now - sent);
        }
    }

    /// The round trip that was measured last, once.
    pub(super) fn take_rtt(&mut self) -> Option<u64> {
        self.rtt.take()
    }

    /// What the group has to hear of; a time-out comes last.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.notes);
        if std::mem::take(&mut self.has_timed_out) {
            notes.push(Note::TimedOut);
        }
        notes
    }
}
