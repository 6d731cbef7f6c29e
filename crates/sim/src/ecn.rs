//! What a packet says of congestion.

use anabranch_queues::Codepoint;

/// What a packet says of congestion, in one byte: the codepoint in its IP header and a flag in its TCP
/// header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EcnBits(u8);

impl EcnBits {
    const FLAG: u8 = 0b100;

    /// A codepoint; `flag`: data says that the window was reduced (CWR), an acknowledgement that marked data
    /// has come (ECE; RFC 3168, section 6.1).
    pub(crate) fn new(codepoint: Codepoint, flag: bool) -> Self {
        Self(codepoint as u8 | if flag { Self::FLAG } else { 0 })
    }

    /// Whether it says nothing, as every packet of a flow that knows no marks.
    #[inline]
    pub(crate) fn is_silent(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn codepoint(self) -> Codepoint {
        Codepoint::of_bits(self.0)
    }

    pub(crate) fn flag(self) -> bool {
        self.0 & Self::FLAG != 0
    }

    /// A queue marks the packet.
    pub(crate) fn mark(&mut self) {
        self.0 |= Codepoint::Ce as u8;
    }
}
