//! Paced reading: a token bucket over all connections of a stream.
//!
//! What is not read fills the receive windows, which are small, and so the sender is held back. Reading is
//! the exact limit, the windows keep what it holds back out of the network's queues.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anabranch_units::{Bytes, Duration, Rate};
use tokio::sync::Notify;

use super::timer::Timer;

/// Shared by everyone who reads.
#[derive(Debug)]
pub(super) struct Pacer {
    bucket: Mutex<Bucket>,
    /// The rate is another one.
    changed: Notify,
}

#[derive(Debug)]
struct Bucket {
    rate: Option<Rate>,
    /// Bytes that may be read now; below zero after a read that was larger.
    credit: f64,
    counted: Instant,
    /// How many wait for credit.
    waiting: u32,
    /// How long readers have waited for credit, and since when one waits now.
    held: Duration,
    holding: Option<Instant>,
}

/// Credit is saved up for so long at most: the burst after a pause.
const BURST: Duration = Duration::from_millis(20);
/// Together those who wait read so much at once: a reader is woken as seldom as that allows.
const STEP: Duration = Duration::from_millis(1200);
/// But no more than this, about what a receive buffer holds that has not grown: the sender goes on meanwhile, as
/// what waits unread takes nothing off the window until the buffer is full.
const LARGEST_STEP: Bytes = Bytes::kib(160);
/// A faster rate is read in these steps, or in [`BURST`]s where those are more: the sender sends each at once, and
/// others wait behind it, at 20 Mbps for 7 ms. It also has to hold in every second.
const FAST_STEP: Bytes = Bytes::kib(16);
/// Nobody else waits longer for what the first bytes of a player took.
const LONGEST_DEBT: Duration = Duration::from_millis(500);
const SMALLEST_READ: Bytes = Bytes::kib(2);
/// What is read at once without a limit.
pub(super) const LARGEST_READ: Bytes = Bytes::kib(256);

impl Pacer {
    pub(super) fn new() -> Self {
        let bucket = Bucket {
            rate: None,
            credit: 0.0,
            counted: Instant::now(),
            waiting: 0,
            held: Duration::ZERO,
            holding: None,
        };
        Self { bucket: Mutex::new(bucket), changed: Notify::new() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Bucket) -> T) -> T {
        act(&mut self.bucket.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads go at this rate from now on.
    pub(super) fn set_rate(&self, rate: Option<Rate>) {
        self.with(|bucket| {
            bucket.refill(Instant::now());
            bucket.rate = rate.filter(|rate| !rate.is_zero());
        });
        self.changed.notify_waiters();
    }

    /// Waits until something may be read, by this timer or by the runtime's, and tells how much at once. Nothing
    /// is taken until [`Pacer::spend`].
    pub(super) async fn ready(&self, timer: Option<&Timer>) -> Bytes {
        let mut changed = self.changed.notified();
        let mut waiting = None;
        loop {
            match self.with(|bucket| bucket.room()) {
                Ok(room) => return room,
                Err(wait) => {
                    waiting.get_or_insert_with(|| Waiting::new(self));
                    let waited = async {
                        match timer {
                            Some(timer) => timer.wait(wait).await,
                            None => tokio::time::sleep(wait.into()).await,
                        }
                    };
                    tokio::select! {
                        () = waited => {}
                        () = changed => {}
                    }
                    changed = self.changed.notified();
                }
            }
        }
    }

    /// Whether nothing may be read now.
    pub(super) fn holds_back(&self) -> bool {
        self.with(|bucket| bucket.room().is_err())
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

/// Somebody waits for credit as long as this lives.
struct Waiting<'a>(&'a Pacer);

impl<'a> Waiting<'a> {
    fn new(pacer: &'a Pacer) -> Self {
        pacer.with(|bucket| bucket.waiting += 1);
        Self(pacer)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.with(|bucket| bucket.waiting -= 1);
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
    /// How much may be read at once, or how long until then.
    fn room(&mut self) -> Result<Bytes, Duration> {
        self.refill(Instant::now());
        let Some(rate) = self.rate else { return Ok(LARGEST_READ) };
        if self.credit <= 0.0 {
            return Err(Duration::from_secs_f64((1.0 - self.credit) / rate.bytes_per_second()));
        }
        let least = rate.amount_in(BURST).max(SMALLEST_READ);
        let largest = if rate.amount_in(STEP) <= LARGEST_STEP { LARGEST_STEP } else { FAST_STEP };
        let most = rate.amount_in(STEP / u64::from(self.waiting.max(1))).min(largest);
        Ok(most.max(least).min(LARGEST_READ))
    }

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

    #[test]
    fn a_reader_is_woken_as_seldom_as_its_buffer_and_the_others_allow() {
        let pacer = Pacer::new();
        pacer.set_rate(Some(Rate::from_kbps(800)));
        let room = || {
            pacer.with(|bucket| {
                bucket.credit = 1.0;
                bucket.room().unwrap()
            })
        };
        assert_eq!(room(), Bytes::new(120_000), "twelve tenths of a second");
        let waiting = [Waiting::new(&pacer), Waiting::new(&pacer)];
        assert_eq!(room(), Bytes::new(60_000), "all who wait together read no more");
        drop(waiting);
        pacer.set_rate(Some(Rate::from_mbps(4)));
        assert_eq!(room(), FAST_STEP);
        pacer.set_rate(Some(Rate::from_mbps(80)));
        assert_eq!(room(), Bytes::new(200_000), "a fiftieth of a second");
    }

    #[tokio::test]
    async fn who_waits_hears_of_another_rate_at_once() {
        let pacer = std::sync::Arc::new(Pacer::new());
        pacer.set_rate(Some(Rate::from_kbps(1)));
        let (shared, begun) = (pacer.clone(), tokio::sync::oneshot::channel());
        pacer.spend(200_000);
        let waiting = tokio::spawn(async move {
            begun.0.send(()).unwrap();
            shared.ready(None).await
        });
        begun.1.await.unwrap();
        pacer.set_rate(None);
        let room = tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await;
        assert_eq!(room.expect("it would wait for 26 minutes").unwrap(), LARGEST_READ);
    }

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
                    let room = pacer.ready(None).await.as_usize();
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
