//! Real moments as the nanoseconds since a beginning that the shared states of links count.

use anabranch_units::Duration;
use tokio::time::Instant;

/// A beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since(Instant);

impl Since {
    /// Now. A packet that came before comes at the beginning.
    pub(super) fn now() -> Self {
        Self(Instant::now())
    }

    /// A moment as nanoseconds.
    pub(super) fn nanos(self, at: Instant) -> u64 {
        Duration::from(at.saturating_duration_since(self.0)).as_nanos()
    }

    /// Nanoseconds as a moment.
    pub(super) fn at(self, nanos: u64) -> Instant {
        self.0 + std::time::Duration::from_nanos(nanos)
    }
}
