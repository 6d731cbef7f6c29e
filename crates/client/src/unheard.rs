//! What was read, and the owner has not heard of: so much of it as there is room for.

use std::sync::Arc;

use anabranch_units::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The room.
#[derive(Debug)]
pub(super) struct Budget(Arc<Semaphore>);

/// A part of it, until it is dropped.
#[derive(Debug)]
pub(super) struct Unheard(OwnedSemaphorePermit);

impl Budget {
    pub(super) fn new(most: Bytes) -> Self {
        Self(Arc::new(Semaphore::new(most.as_usize())))
    }

    /// Waits until there is room for so much.
    pub(super) async fn take(&self, bytes: Bytes) -> Unheard {
        let bytes = u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        match self.0.clone().acquire_many_owned(bytes).await {
            Ok(permit) => Unheard(permit),
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Unheard {
    /// It was no more than this.
    pub(super) fn only(mut self, count: usize) -> Self {
        match self.0.split(count) {
            Some(permit) => Self(permit),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_was_heard_of_makes_room() {
        let budget = Budget::new(Bytes::new(10));
        let first = budget.take(Bytes::new(10)).await.only(4);
        let second = budget.take(Bytes::new(6)).await;
        let third = budget.take(Bytes::new(10));
        tokio::pin!(third);
        for permit in [first, second] {
            assert!(tokio::time::timeout(Duration::from_millis(5), &mut third).await.is_err());
            drop(permit);
        }
        third.await;
    }
}
