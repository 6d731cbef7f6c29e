//! What a server counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one server, all since its start except where a line says "now".
#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections now.
    pub connections: AtomicU64,
    /// Connections accepted.
    pub connections_total: AtomicU64,
    /// Connections turned away because a limit was reached.
    pub connections_refused: AtomicU64,
    /// Connections that got the place of one whose client kept the server waiting.
    pub connections_replaced: AtomicU64,
    /// Responses by status class: `responses[1]` counts 2xx.
    pub responses: [AtomicU64; 5],
    /// Bytes written to clients, heads included, TLS not.
    pub bytes_sent: AtomicU64,
    /// Connections that ended by an error: broken, timed out, not HTTP, or a file that could not be read to
    /// its end.
    pub errors: AtomicU64,
    /// Stripe groups opened.
    pub stripe_groups: AtomicU64,
    /// Connections that joined a stripe group, the first ones included.
    pub stripe_connections: AtomicU64,
    /// Lines that the access log did not take in time.
    pub log_lines_lost: AtomicU64,
}

impl Metrics {
    pub(super) fn count_response(&self, status: http::StatusCode) {
        if let Some(class) = self.responses.get(usize::from(status.as_u16() / 100).wrapping_sub(1)) {
            increment(class);
        }
    }
}

pub(super) fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}
