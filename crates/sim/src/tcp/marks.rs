//! What a sender hears of marks, and when it answers them.

use anabranch_queues::Codepoint;

use crate::ecn::EcnBits;
use crate::model::{self, Tcp};

/// The sender's side of ECN. For what is in flight at a time the window is reduced once, whether packets of it
/// were marked or lost (RFC 3168, section 6.1.2).
#[derive(Debug)]
pub(super) struct Marks {
    form: model::Ecn,
    /// The window was reduced when everything before this had been sent.
    reduced_at: u64,
    /// The receiver is to hear that the window was reduced.
    owes_word: bool,
}

impl Marks {
    /// Of a flow that begins; none where it knows no marks.
    pub(super) fn of(tcp: &Tcp) -> Option<Box<Self>> {
        Some(Box::new(Self { form: tcp.ecn?, reduced_at: 0, owes_word: false }))
    }

    /// Whether an acknowledgement with this flag (ECE) tells of marks.
    pub(super) fn hears(&self, flag: bool) -> bool {
        match self.form {
            model::Ecn::Classic => flag,
        }
    }

    /// Whether a mark asks for a reduction when everything before `acknowledged` has arrived.
    pub(super) fn is_new(&self, acknowledged: u64) -> bool {
        acknowledged > self.reduced_at
    }

    /// Whether a loss asks for one of a packet that begins at `lost`.
    pub(super) fn is_new_loss(&self, lost: u64) -> bool {
        lost >= self.reduced_at
    }

    /// The window is reduced; everything before `next` has been sent.
    pub(super) fn reduced(&mut self, next: u64) {
        self.reduced_at = next;
        self.owes_word = self.form == model::Ecn::Classic;
    }

    /// What a segment says. What is sent again cannot be marked, lest old marks be answered (RFC 3168,
    /// section 6.1.5).
    pub(super) fn of_segment(&mut self, is_retransmission: bool) -> EcnBits {
        match self.form {
            model::Ecn::Classic if is_retransmission => EcnBits::default(),
            model::Ecn::Classic => EcnBits::new(Codepoint::Ect0, std::mem::take(&mut self.owes_word)),
        }
    }
}
