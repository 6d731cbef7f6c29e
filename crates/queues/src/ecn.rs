//! Explicit congestion notification: what a packet says of it, and what a queue does with a packet (RFC 3168,
//! RFC 8311).

/// The ECN codepoint of a packet, with its bits in the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codepoint {
    /// Its flow does not know marks: a queue drops it where it would mark another.
    #[default]
    NotEct = 0b00,
    /// Its flow is L4S: a mark is answered by less than a loss (RFC 9331, section 4.1).
    Ect1 = 0b01,
    /// Its flow answers a mark as a loss.
    Ect0 = 0b10,
    /// Marked: it has met congestion.
    Ce = 0b11,
}

impl Codepoint {
    /// That of the two low bits.
    pub const fn of_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark it, which says nothing new where it is marked already.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// Whether it waits in the low-latency queue where there is one (RFC 9331, section 5.1).
    pub const fn is_low_latency(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

/// What a queue does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Passes,
    /// It goes on marked.
    Marked,
    /// It is dropped.
    Dropped,
}

impl Verdict {
    /// Of a packet that a queue picked to tell its flow of congestion: a mark where it `may_mark`.
    pub const fn picked(may_mark: bool) -> Self {
        if may_mark { Self::Marked } else { Self::Dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_have_the_bits_of_the_header() {
        for codepoint in [Codepoint::NotEct, Codepoint::Ect1, Codepoint::Ect0, Codepoint::Ce] {
            assert_eq!(Codepoint::of_bits(codepoint as u8 | 0b100), codepoint);
        }
        assert!(Codepoint::Ce.is_low_latency() && !Codepoint::Ect0.is_low_latency());
    }
}
