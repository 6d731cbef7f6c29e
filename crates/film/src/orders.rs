//! Orders that several rate controllers give.

use anabranch_units::Packets;

use crate::control::{ConnectionId, Order, Sample, What, Window};

/// Start one more connection where the session finds best.
pub(crate) fn open(why: &'static str) -> Order {
    Order { what: What::Open(None), why }
}

/// Set the receive window of a connection, in packets.
pub(crate) fn set_window(connection: ConnectionId, window: Packets, why: &'static str) -> Order {
    Order { what: What::SetWindow(connection, Window::Packets(window)), why }
}

/// Let a connection's receive window be as large as the system likes.
pub(crate) fn free_window(connection: ConnectionId, why: &'static str) -> Order {
    Order { what: What::SetWindow(connection, Window::Unlimited), why }
}

/// Whether the session could start one more connection somewhere; a session that tells no paths decides
/// itself.
pub(crate) fn may_open(sample: &Sample<'_>) -> bool {
    sample.paths.is_empty() || sample.paths.iter().any(|path| path.may_open)
}

/// Opens as many connections as `established` and those being set up fall short of `target`.
pub(crate) fn open_missing(
    established: usize,
    target: usize,
    sample: &Sample<'_>,
    why: &'static str,
) -> Vec<Order> {
    let missing = if may_open(sample) { target.saturating_sub(established + sample.connecting) } else { 0 };
    (0..missing).map(|_| open(why)).collect()
}
