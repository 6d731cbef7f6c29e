//! Paced reading: a token bucket over all connections of a stream.
//!
//! What is not read fills the receive windows, which are small, and so the sender is held back. Reading is
//! the exact limit, the windows keep what it holds back out of the network's queues.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anabranch_units::{Bytes, Duration, Rate};

/// Shared by everyone who reads.
#[derive(Debug)]
pub(super) struct Pacer(Mutex<Bucket>);

#[derive(Debug)]
struct Bucket {
    rate: Option<Rate>,
    /// Bytes that may be read now; below zero after a read that was larger.
    credit: f64,
    counted: Instant,
    /// How long readers have waited for credit, and since when one waits now.
    held: Duration,
    holding: Option<Instant>,
}

/// Credit is saved up for so long at most: the burst after a pause.
const BURST: Duration = Duration::from_millis(20);
/// Nobody else waits longer for what the first bytes of a player took.
const LONGEST_DEBT: Duration = Duration::from_millis(500);
const SMALLEST_READ: Bytes = Bytes::kib(2);
/// What is read at once without a limit.
pub(super) const LARGEST_READ: Bytes = Bytes::kib(256);

impl Pacer {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Bucket {
            rate: None,
            credit: 0.0,
            counted: Instant::now(),
            held: Duration::ZERO,
            holding: None,
        }))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Bucket) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads go at this rate from now on.
    pub(super) fn set_rate(&self, rate: Option<Rate>) {
        self.with(|bucket| {
            bucket.refill(Instant::now());
            bucket.rate = rate.filter(|rate| !rate.is_zero());
        });
    }

    /// Waits until something may be read, and tells how much at once. Nothing is taken until
    /// [`Pacer::spend`].
    pub(super) async fn ready(&self) -> Bytes {
        loop {
            let wait = self.with(|bucket| {
                bucket.refill(Instant::now());
                let Some(rate) = bucket.rate else { return Ok(LARGEST_READ) };
                if bucket.credit > 0.0 {
                    return Ok(rate.amount_in(BURST).max(SMALLEST_READ).min(LARGEST_READ));
                }
                Err(Duration::from_secs_f64((1.0 - bucket.credit) / rate.bytes_per_second()))
            });
            match wait {
                Ok(room) => return room,
                // Looks again soon: the rate may be raised meanwhile.
                Err(wait) => tokio::time::sleep(wait.min(Duration::from_millis(100)).into()).await,
            }
        }
    }

    /// Whether there is a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.with(|bucket| bucket.rate.is_some())
    }

    /// Counts the time until the guard is dropped as time for which reading was held back. For one reader at
    /// a time.
    pub(super) fn hold(&self) -> Holding<'_> {
        self.with(|bucket| bucket.holding = Some(Instant::now()));
        Holding(self)
    }

    /// How long reading was held back, in all.
    pub(super) fn held(&self) -> Duration {
        self.with(|bucket| {
            bucket.held + bucket.holding.map_or(Duration::ZERO, |since| since.elapsed().into())
        })
    }

    /// So much was read. What was read without leave is paid back within [`LONGEST_DEBT`], or not at all.
    pub(super) fn spend(&self, bytes: usize) {
        self.with(|bucket| {
            if let Some(rate) = bucket.rate {
                let most = rate.amount_in(LONGEST_DEBT).max(LARGEST_READ).as_f64();
                bucket.credit = (bucket.credit - Bytes::of(bytes).as_f64()).max(-most);
            }
        });
    }
}

/// Reading is held back as long as this lives.
pub(super) struct Holding<'a>(&'a Pacer);

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.with(|bucket| {
            bucket.held += bucket.holding.take().map_or(Duration::ZERO, |since| since.elapsed().into());
        });
    }
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let passed = Duration::from(now.duration_since(self.counted));
        self.counted = now;
        if let Some(rate) = self.rate {
            let most = rate.amount_in(BURST).max(SMALLEST_READ).as_f64();
            // In floats: whole bytes of every microsecond would add up to less than the rate.
            self.credit = (self.credit + rate.bytes_per_second() * passed.as_secs_f64()).min(most);
        } else {
            self.credit = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn several_readers_together_keep_to_the_rate() {
        let pacer = std::sync::Arc::new(Pacer::new());
        pacer.set_rate(Some(Rate::from_mbps(40)));
        let begin = Instant::now();
        let readers = (0..4).map(|_| {
            let pacer = pacer.clone();
            tokio::spawn(async move {
                let mut read = 0;
                while begin.elapsed().as_millis() < 500 {
                    let room = pacer.ready().await.as_usize();
                    pacer.spend(room);
                    read += room;
                }
                read
            })
        });
        let mut total = 0;
        for reader in readers.collect::<Vec<_>>() {
            total += reader.await.unwrap();
        }
        // Each of the four may have read once more when the time was over.
        let rate = Rate::of(Bytes::of(total), begin.elapsed().into());
        assert!(rate <= Rate::from_mbps(48), "{rate}");
    }
}
