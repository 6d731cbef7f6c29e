//! What a receiver tells its sender of marks.

use crate::model::Ecn;

/// The receiver's side of ECN.
#[derive(Debug)]
pub(super) struct Echo {
    form: Ecn,
    /// A mark is told until the sender says that it has reduced its window (RFC 3168, section 6.1.3).
    is_due: bool,
}

impl Echo {
    pub(super) fn new(form: Ecn) -> Self {
        Self { form, is_due: false }
    }

    /// A segment has come, marked or not; `is_heard`: it says that the window was reduced.
    pub(super) fn segment(&mut self, is_marked: bool, is_heard: bool) {
        match self.form {
            Ecn::Classic => self.is_due = is_marked || self.is_due && !is_heard,
        }
    }

    /// Whether the next acknowledgement tells of a mark.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }
}
