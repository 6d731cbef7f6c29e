//! What a receiver tells its sender of marks.

use crate::model::Ecn;

/// The receiver's side of ECN.
#[derive(Debug)]
pub(super) struct Echo {
    form: Ecn,
    /// A mark is told until the sender says that it has reduced its window (RFC 3168, section 6.1.3).
    is_due: bool,
    /// Bytes that came marked (r.ceb, RFC 9768, section 3.2.1).
    marked: u64,
    /// Whether the last segment came marked.
    was_marked: bool,
}

impl Echo {
    pub(super) fn new(form: Ecn) -> Self {
        Self { form, is_due: false, marked: 0, was_marked: false }
    }

    /// A segment of so many bytes has come, marked or not; `is_heard`: it says that the window was reduced.
    /// Answers whether an acknowledgement is due for that: where marks begin or end, so that one tells of
    /// marked segments or of others (RFC 8257, section 3.2; RFC 9768, section 3.2.2.5.1).
    pub(super) fn segment(&mut self, bytes: u64, is_marked: bool, is_heard: bool) -> bool {
        match self.form {
            Ecn::Classic => {
                self.is_due = is_marked || self.is_due && !is_heard;
                false
            }
            Ecn::L4s => {
                self.marked += if is_marked { bytes } else { 0 };
                std::mem::replace(&mut self.was_marked, is_marked) != is_marked
            }
        }
    }

    /// How many bytes came marked, where the sender is told.
    pub(super) fn marked(&self) -> Option<u64> {
        (self.form == Ecn::L4s).then_some(self.marked)
    }

    /// Whether the next acknowledgement tells of a mark.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }
}
