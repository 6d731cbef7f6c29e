//! What a sender hears of marks, and when it answers them.

use anabranch_queues::Codepoint;

use crate::ecn::EcnBits;
use crate::model::{self, Tcp};

/// What an acknowledgement tells of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Whether there was a mark since the window was reduced.
    Mark(bool),
    /// How many bytes came marked since the last acknowledgement that was heard.
    Bytes(u64),
}

impl Heard {
    /// Whether it tells of a mark.
    pub(super) fn is_mark(self) -> bool {
        matches!(self, Self::Mark(true) | Self::Bytes(1..))
    }
}

/// The sender's side of ECN. For what is in flight at a time the window is reduced once, whether packets of
/// it were marked or lost (RFC 3168, section 6.1.2).
#[derive(Debug)]
pub(super) struct Marks {
    form: model::Ecn,
    /// The window was reduced when everything before this had been sent.
    reduced_at: u64,
    /// The receiver is to hear that the window was reduced.
    owes_word: bool,
    /// How many bytes the receiver had marked when it was heard last.
    marked: u64,
}

impl Marks {
    /// Of a flow that begins; none where it knows no marks.
    pub(super) fn of(tcp: &Tcp) -> Option<Box<Self>> {
        Some(Box::new(Self { form: tcp.ecn?, reduced_at: 0, owes_word: false, marked: 0 }))
    }

    /// An acknowledgement has come, with its flag (ECE) and its count of marked bytes.
    pub(super) fn hears(&mut self, flag: bool, marked: u64) -> Heard {
        match self.form {
            model::Ecn::Classic => Heard::Mark(flag),
            model::Ecn::L4s => {
                let before = self.marked;
                self.marked = before.max(marked);
                Heard::Bytes(self.marked - before)
            }
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

    /// What a segment says. What is sent again cannot be marked under RFC 3168 (section 6.1.5); L4S lets all
    /// be (RFC 8311, section 4.3), or it would wait in the classic queue.
    pub(super) fn of_segment(&mut self, is_retransmission: bool) -> EcnBits {
        match self.form {
            model::Ecn::Classic if is_retransmission => EcnBits::default(),
            model::Ecn::Classic => EcnBits::new(Codepoint::Ect0, std::mem::take(&mut self.owes_word)),
            model::Ecn::L4s => EcnBits::new(Codepoint::Ect1, false),
        }
    }
}
