//! What lasts as long as an answer.

use super::io_guard::BusyGuard;
use super::tcp_sharing::Counting;

/// While it lives, a response is being made or sent, and its connection counts for it.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) _busy: BusyGuard,
    pub(super) _counting: Option<Counting>,
}
