//! What the rules of a loss recovery decide for a sender.

use super::flow::{Acknowledgement, Flow};

/// Duplicate acknowledgements that make a loss certain.
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

/// What an acknowledgement makes a sender reduce its window for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A loss event begins.
    Loss,
    /// Packets were marked.
    Marks,
}

/// The rules of a loss recovery: which segments are lost, when they are sent again, and what the window is
/// told of it. Times are in nanoseconds.
pub(super) trait LossRecovery {
    /// An acknowledgement of what was sent. The flow's receive window is the new one by now. Answers what
    /// the window is reduced for.
    fn acknowledgement(&mut self, flow: &mut Flow, ack: &Acknowledgement, now: u64) -> Option<Event>;

    /// The retransmission timer ran out. It has been set anew.
    fn time_out(&mut self, flow: &mut Flow, now: u64);

    /// The next segment that may be sent now, bytes `[start, end)`.
    fn next_segment(&mut self, flow: &mut Flow, now: u64) -> Option<(u64, u64)>;

    /// Whether the window has room for a segment.
    fn has_room(&self, flow: &Flow) -> bool;

    /// What was sent is given up: nothing is missing any more.
    fn give_up(&mut self);

    /// Reads of what every acknowledgement needs.
    fn touch(&self);
}
