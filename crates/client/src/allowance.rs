//! How much a connection may read, and when.

use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_units::Bytes;
use tokio::sync::Notify;

use super::pacer::{LARGEST_READ, Pacer};
use super::shared::Shared;
use super::timer::Timer;
use super::unheard::{Budget, Unheard};

/// So much of a connection is read at most that the owner does not know of: while it hears of one read, the
/// next can be done.
const UNHEARD: Bytes = Bytes::new(2 * LARGEST_READ.get());

/// What the owner sets, and the connection's task heeds.
#[derive(Debug)]
pub(super) struct Allowance {
    /// Paces this connection alone, where the system has no window to set.
    pub(super) pacer: Pacer,
    /// A reader waits for what it brings, and has got nothing yet.
    brings_first_bytes: AtomicBool,
    /// Since now it does.
    hurry: Notify,
    unheard: Budget,
    timer: Timer,
}

impl Allowance {
    /// Without ranges everything that comes counts before more is read: nothing else bounds what is read
    /// ahead.
    pub(super) fn new(has_ranges: bool) -> Self {
        Self {
            pacer: Pacer::new(),
            brings_first_bytes: AtomicBool::new(false),
            hurry: Notify::new(),
            unheard: Budget::new(if has_ranges { UNHEARD } else { LARGEST_READ }),
            timer: Timer::default(),
        }
    }

    pub(super) fn set_brings_first_bytes(&self, brings: bool) {
        if self.brings_first_bytes.swap(brings, Ordering::Relaxed) != brings && brings {
            self.hurry.notify_one();
        }
    }

    /// Waits until the connection may read, and tells how much at once; where it has to wait for its rate, the
    /// connection is let `rest`. What is `left` of its last leave it reads without waiting again. What goes with
    /// it goes to the owner.
    pub(super) async fn read(&self, shared: &Shared, left: Bytes, rest: impl FnOnce()) -> (Bytes, Unheard) {
        let unheard = self.unheard.take(LARGEST_READ).await;
        if !shared.ranges {
            shared.wanted().await;
        }
        shared.disk_keeps_up().await;
        if !left.is_zero() {
            return (left, unheard);
        }
        let _holding = self.pacer.hold();
        if shared.pacer.holds_back() && !self.brings_first_bytes.load(Ordering::Relaxed) {
            rest();
        }
        let timer = Some(&self.timer);
        loop {
            // What a reader waits for that has got nothing yet comes first: the limit holds afterwards.
            if shared.pacer.is_limited() && self.brings_first_bytes.load(Ordering::Relaxed) {
                return (LARGEST_READ, unheard);
            }
            let paced = async { shared.pacer.ready(timer).await.min(self.pacer.ready(timer).await) };
            tokio::select! {
                room = paced => return (room, unheard),
                () = self.hurry.notified() => {}
            }
        }
    }

    /// So much was read.
    pub(super) fn spend(&self, shared: &Shared, count: usize) {
        shared.pacer.spend(count);
        self.pacer.spend(count);
    }
}
