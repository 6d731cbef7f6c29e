//! Rates that are not exceeded: a slow path in user space, for demonstrations and tests that cannot have a real
//! one, and the most that clients get.

use std::sync::{Mutex, PoisonError};

use anabranch_units::{Bytes, Rate};
use tokio::time::{Duration, Instant};

/// How slow a server makes itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// All responses together get no more than this.
    pub rate: Option<Rate>,
    /// Every response begins this much later.
    pub first_byte_delay: Duration,
}

/// The most that clients get.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caps {
    /// A response gets no more than this.
    pub per_response: Option<Rate>,
    /// All responses to one IPv4 address or IPv6 /64 together get no more than this.
    pub per_client: Option<Rate>,
}

impl Caps {
    /// Whether there is one.
    pub(super) fn are_set(&self) -> bool {
        self.per_response.is_some() || self.per_client.is_some()
    }
}

/// A FIFO link of one rate: whoever wants to send gets the time at which the bytes before its own
/// have left.
#[derive(Debug)]
pub(super) struct Shaper {
    rate: Rate,
    free_at: Mutex<Instant>,
}

impl Shaper {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, free_at: Mutex::new(Instant::now()) }
    }

    /// Whether bytes that come now may leave now.
    pub(super) fn is_free(&self) -> bool {
        *self.free_at.lock().unwrap_or_else(PoisonError::into_inner) <= Instant::now()
    }

    /// When `length` bytes may leave; the link is theirs.
    pub(super) fn reserve(&self, length: u64) -> Instant {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let start = (*free_at).max(Instant::now());
        // A rate of zero is a link that never gets free; an hour is enough for "never" and cannot overflow.
        let taken = self.rate.time_for(Bytes::new(length)).as_nanos().min(3_600_000_000_000);
        *free_at = start + Duration::from_nanos(taken);
        start
    }
}
