//! How far a segment is.

use anabranch_units::Bytes;

/// Whether a segment is under way or there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// The player waits for it.
    Asked,
    /// It comes before it is asked for.
    Ahead,
    /// All of it has been asked for, and it needs no more connections than it has.
    Ending,
    /// All of it is there: so much.
    There(Bytes),
}

impl Fetched {
    /// Whether connections have to ask for some of it.
    pub(super) fn needs_connections(&self) -> bool {
        matches!(self, Self::Asked | Self::Ahead)
    }

    /// What it takes of the memory.
    pub(super) fn size(self) -> Bytes {
        match self {
            Self::There(size) => size,
            Self::Asked | Self::Ahead | Self::Ending => Bytes::ZERO,
        }
    }
}
