//! What a sender notes for the group that decides what it may send: its controller is not asked.

use super::sender::{Phase, Sender};

/// A sender's side of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    /// What it was granted and has not sent.
    pub allowance: u64,
    /// What was acknowledged and lost since the group was told, in order.
    notes: Vec<Note>,
    /// The timer ran out since the group was told.
    pub has_timed_out: bool,
}

/// Bytes `[start, end)` that the group has to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Acknowledged(u64, u64),
    Lost(u64, u64),
    TimedOut,
}

impl Share {
    /// What counts as its window, for the samples.
    pub(super) fn window(&self, pipe: u64) -> u64 {
        pipe + self.allowance
    }
}

impl Sender {
    /// Whether a group decides what may be sent.
    pub(crate) fn is_shared(&self) -> bool {
        self.share.is_some()
    }

    pub(super) fn note_acknowledged(&mut self, start: u64, end: u64) {
        if let Some(share) = &mut self.share {
            share.notes.push(Note::Acknowledged(start, end));
        }
    }

    /// Everything without a SACK from what was sent again to `end` is lost.
    pub(super) fn note_lost(&mut self, end: u64) {
        let (start, end) = (self.retransmitted_to.max(self.oldest), end.min(self.next));
        if let Some(share) = &mut self.share
            && start < end
        {
            share.notes.push(Note::Lost(start, end));
        }
    }

    /// What the group has to hear of.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        let Some(share) = &mut self.share else { return Vec::new() };
        let mut notes = std::mem::take(&mut share.notes);
        if std::mem::take(&mut share.has_timed_out) {
            notes.push(Note::TimedOut);
        }
        notes
    }

    /// The round trip that the last acknowledgement measured, once.
    pub(crate) fn take_rtt(&mut self) -> Option<u64> {
        self.latest_rtt.take()
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn segment(&self) -> u64 {
        self.segment
    }

    /// What the group lets it send now.
    pub(crate) fn set_allowance(&mut self, bytes: u64) {
        if let Some(share) = &mut self.share {
            share.allowance = bytes;
        }
    }

    /// How much it could send now if it were allowed, in whole segments.
    pub(crate) fn could_send(&self) -> u64 {
        let lost = match self.phase {
            Phase::Closed => return 0,
            Phase::Open => 0,
            // One more to rescue the end of what was sent.
            Phase::Recovery { .. } => self.missing_below(self.lost_below) + self.segment,
            Phase::Loss { point } => self.missing_below(point),
        };
        let new = self.written.min(self.edge).saturating_sub(self.next);
        (lost + new).div_ceil(self.segment) * self.segment
    }

    /// Lost and not sent again.
    fn missing_below(&self, limit: u64) -> u64 {
        let from = self.retransmitted_to.max(self.oldest);
        if from < limit { self.board.missing_in(from, limit) } else { 0 }
    }

    /// Everything that was written has arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.oldest >= self.written
    }

    /// Whether a segment may go. The first one of a recovery needs no credit, as it needs no window (RFC 6675, section 5, step 4.3).
    pub(super) fn is_granted(&self) -> bool {
        self.share.as_ref().is_none_or(|share| share.allowance >= self.segment) || self.urgent > 0
    }

    pub(super) fn share_has_room(&self) -> bool {
        self.share.as_ref().is_some_and(|share| share.allowance >= self.segment) && self.could_send() > 0
    }
}
