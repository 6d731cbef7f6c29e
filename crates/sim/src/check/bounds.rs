//! What checks have in common.

/// The largest packet: what an IP packet can be.
pub(super) const LARGEST_PACKET: u64 = 65_535;
/// More of anything would not fit the numbers that name it.
pub(super) const MOST: usize = 1 << 24;

/// What is wrong, and what would be right.
pub(super) type Checked = Result<(), String>;

/// Says what is wrong unless something holds.
pub(super) fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(problem()) }
}
