//! What is to be asked for next.

use std::ops::Range;

use super::reader::Reader;

/// Bytes that nobody was asked for.
pub(super) struct Gap<'a> {
    pub(super) range: Range<u64>,
    /// Who needs them.
    pub(super) reader: &'a Reader,
    /// Why these.
    pub(super) why: &'static str,
}
