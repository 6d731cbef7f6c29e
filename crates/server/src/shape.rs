//! A slow path in user space, for demonstrations and tests that cannot have a real one.

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

/// A FIFO link of the shape's rate: whoever wants to send gets the time at which the bytes before its own
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
