//! A sender's side of a group: what it was granted, and what the group has to hear of.

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
}

impl Grants {
    /// Something that the group has to hear of.
    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
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
