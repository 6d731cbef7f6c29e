//! What happened to a server.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A connection that the client has closed is open until its thread has noticed: so long it has for it before
/// another one counts as beside it.
const NOTICED: Duration = Duration::from_millis(20);

/// Requests and connections of a server.
#[derive(Debug, Default)]
pub(super) struct Record {
    counts: Mutex<Counts>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    heads: Vec<String>,
    connections: Vec<Instant>,
    open: usize,
    most_open: usize,
}

/// A connection that is counted while it is open.
pub(super) struct Open<'a>(&'a Record);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.counts().open -= 1;
        self.0.closed.notify_all();
    }
}

impl Record {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.counts().heads.clone()
    }

    pub(super) fn connections(&self) -> Vec<Instant> {
        self.counts().connections.clone()
    }

    pub(super) fn open(&self) -> usize {
        self.counts().open
    }

    pub(super) fn most_open(&self) -> usize {
        self.counts().most_open
    }

    /// Notes a connection, and says how many came before it.
    pub(super) fn accepted(&self) -> (usize, Open<'_>) {
        let mut counts = self.counts();
        counts.connections.push(Instant::now());
        counts.open += 1;
        let connection = counts.connections.len() - 1;
        let is_beside = |counts: &mut Counts| counts.open > counts.most_open.max(1);
        let (mut counts, _) = self
            .closed
            .wait_timeout_while(counts, NOTICED, is_beside)
            .unwrap_or_else(PoisonError::into_inner);
        counts.most_open = counts.most_open.max(counts.open);
        (connection, Open(self))
    }

    /// Notes a request, and says how many came before it.
    pub(super) fn requested(&self, head: String) -> usize {
        let mut counts = self.counts();
        counts.heads.push(head);
        counts.heads.len() - 1
    }
}
