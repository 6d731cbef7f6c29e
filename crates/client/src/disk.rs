//! A worker that writes what has arrived to where a film goes, in the order in which it came: a disk that
//! takes its time holds up neither the connections nor a reader of what it has not taken yet.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_protocol::ranges::RangeSet;
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use super::error::{Cure, EngineError};

/// Where a film is written, every byte at its offset. Calls may block: they are made from threads that
/// nothing else waits for.
pub trait Medium: fmt::Debug + Send + Sync {
    /// Writes all of these pieces, one behind the other, from `offset` on.
    ///
    /// # Errors
    /// They cannot be written.
    fn write(&self, pieces: &mut [IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// Fills `bytes` with what was written at `offset`.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Medium for File {
    fn write(&self, mut pieces: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        // Empty ones at the beginning go, and with others those behind them.
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            match rustix::io::pwritev(self, pieces, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut pieces, written);
                    offset += anabranch_units::Bytes::of(written).get();
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }
}

/// What a piece that waits takes in memory besides its bytes, about: many small ones are bounded as well.
const PIECE_OVERHEAD: u64 = 256;
/// The worker waits for so much, or so long, before it writes, and writes so much at once: to be woken for
/// each piece, or to tell of each, costs more than to write it. Who waits for it waits no longer.
const BATCH: u64 = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(3);
/// Connections wait for a disk that gets on when so much is to be written: more would only leave the
/// processor's caches.
const WARM: u64 = 1 << 20;
/// A disk that has finished nothing for so long is not waited for.
const STILL: Duration = Duration::from_millis(50);

/// The worker, as the store sees it. The thread ends when this is gone and all was written.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) medium: Arc<dyn Medium>,
    pub(super) backlog: Arc<Backlog>,
}

/// Bytes that have arrived.
#[derive(Debug)]
struct Order {
    offset: u64,
    bytes: Bytes,
    /// Parts of their range that had come before.
    there: Vec<Range<u64>>,
    /// The other parts.
    new: Vec<Range<u64>>,
}

impl Order {
    fn end(&self) -> u64 {
        self.offset + length(&self.bytes)
    }
}

/// What has arrived and is not written yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    inner: Mutex<Inner>,
    /// For the worker: there is something to do.
    ordered: Condvar,
    /// The worker has failed, or has done what somebody waits for.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// New bytes by their position; they do not overlap.
    pieces: BTreeMap<u64, Bytes>,
    orders: Vec<Order>,
    /// What the orders take in memory, with those that the worker has taken.
    bytes: u64,
    /// Who waits for the worker to get on.
    waiting: usize,
    /// When it last finished something, or got something to do after it had nothing.
    got_on: Option<Instant>,
    /// Nothing is ordered any more.
    closed: bool,
    failed: Option<EngineError>,
}

/// Where bytes are.
pub(super) enum Place {
    /// Here.
    Memory(Bytes),
    /// So many of them are written.
    Disk(usize),
}

impl Disk {
    /// Starts the worker.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn start(medium: Arc<dyn Medium>) -> io::Result<Self> {
        let backlog = Arc::<Backlog>::default();
        let (worker, to) = (backlog.clone(), medium.clone());
        thread::Builder::new().name("disk".into()).spawn(move || work(&*to, &worker))?;
        Ok(Self { medium, backlog })
    }

    /// Has these bytes written; `there` are the parts of them that had come before, which have to be the
    /// same.
    pub(super) fn write(&self, offset: u64, bytes: Bytes, there: Vec<Range<u64>>, new: Vec<Range<u64>>) {
        let mut inner = self.backlog.lock();
        for part in &new {
            inner
                .pieces
                .insert(part.start, bytes.slice(index(part.start - offset)..index(part.end - offset)));
        }
        let before = inner.bytes;
        if before == 0 {
            inner.got_on = Some(Instant::now());
        }
        inner.bytes += cost(&bytes);
        let begins = inner.orders.is_empty();
        inner.orders.push(Order { offset, bytes, there, new });
        let is_batch = before < BATCH && inner.bytes >= BATCH;
        drop(inner);
        if begins || is_batch {
            self.backlog.ordered.notify_one();
        }
    }

    /// Where the bytes at `position` are, which have arrived; at most `most` of them.
    pub(super) fn find(&self, position: u64, most: usize) -> Place {
        let inner = self.backlog.lock();
        if let Some((start, piece)) = inner.pieces.range(..=position).next_back() {
            let from = index(position - start);
            if from < piece.len() {
                return Place::Memory(piece.slice(from..piece.len().min(from + most)));
            }
        }
        let next = inner.pieces.range(position..).next().map(|(start, _)| index(start - position));
        Place::Disk(next.map_or(most, |next| next.min(most)))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.backlog.lock().closed = true;
        self.backlog.ordered.notify_one();
    }
}

impl Backlog {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is written of this.
    pub(super) fn written(&self, have: &RangeSet) -> RangeSet {
        let mut written = have.clone();
        for (start, piece) in &self.lock().pieces {
            written.remove(*start..start + length(piece));
        }
        written
    }

    /// Waits until what is to be written takes less than this in memory.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) async fn below(&self, bytes: u64) -> Result<(), EngineError> {
        loop {
            let changed = self.changed.notified();
            let _waiting = {
                let mut inner = self.lock();
                if let Some(error) = &inner.failed {
                    return Err(error.clone());
                }
                if inner.bytes < bytes {
                    return Ok(());
                }
                inner.waiting += 1;
                Waiting(self)
            };
            self.ordered.notify_one();
            changed.await;
        }
    }

    /// Waits while the worker gets on and has enough to do, and while it has more to do than `most`.
    pub(super) async fn room(&self, most: u64) {
        let warm = WARM.min(most);
        loop {
            let still_at = {
                let inner = self.lock();
                let got_on = inner.got_on.filter(|_| inner.bytes >= warm && inner.failed.is_none());
                let Some(still_at) = got_on.map(|got_on| got_on + STILL) else { return };
                still_at
            };
            if Instant::now() >= still_at {
                // Of a failure everybody is told, and connections are ended.
                let _ = self.below(most).await;
                return;
            }
            let _ = timeout_at(still_at.into(), self.below(warm)).await;
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// It cannot be.
    pub(super) async fn flushed(&self) -> Result<(), EngineError> {
        self.below(1).await
    }

    /// Waits until the worker has failed.
    pub(super) async fn failure(&self) -> EngineError {
        loop {
            let changed = self.changed.notified();
            if let Some(error) = &self.lock().failed {
                return error.clone();
            }
            changed.await;
        }
    }

    /// What there is to do next, with what it takes in memory; `None`: nothing any more.
    fn next(&self) -> Option<Vec<Order>> {
        let is_idle = |inner: &mut Inner| inner.orders.is_empty() && !inner.closed;
        let inner = self.ordered.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let is_little = |inner: &mut Inner| inner.bytes < BATCH && inner.waiting == 0 && !inner.closed;
        let waited = self.ordered.wait_timeout_while(inner, PATIENCE, is_little);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let orders = std::mem::take(&mut inner.orders);
        (!orders.is_empty()).then_some(orders)
    }
}

/// Somebody who waits for the worker.
struct Waiting<'a>(&'a Backlog);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

fn work(medium: &dyn Medium, backlog: &Backlog) {
    while let Some(orders) = backlog.next() {
        let mut length = 0;
        let is_one_run = |order: &Order, next: &Order| {
            length += cost(&order.bytes);
            let goes_on = next.offset == order.end() && next.there.is_empty();
            let is_one = goes_on && length + cost(&next.bytes) <= BATCH;
            if !is_one {
                length = 0;
            }
            is_one
        };
        for run in orders.chunk_by(is_one_run) {
            let result = carry_out(medium, run);
            let mut inner = backlog.lock();
            inner.got_on = Some(Instant::now());
            for order in run {
                inner.bytes -= cost(&order.bytes);
                for part in order.new.iter().filter(|_| result.is_ok()) {
                    inner.pieces.remove(&part.start);
                }
            }
            let has_failed = result.is_err();
            inner.failed = result.err();
            let is_waited_for = inner.waiting > 0;
            drop(inner);
            if is_waited_for || has_failed {
                backlog.changed.notify_waiters();
            }
            if has_failed {
                return;
            }
        }
    }
}

/// Compares what had come before, which was written then, and writes the bytes. Only of the first order any
/// had come before.
fn carry_out(medium: &dyn Medium, run: &[Order]) -> Result<(), EngineError> {
    let failed = |what: &str, error| EngineError::new(format!("cannot {what}: {error}"), Cure::Again);
    let Some(first) = run.first() else { return Ok(()) };
    for part in &first.there {
        let new = &first.bytes[index(part.start - first.offset)..index(part.end - first.offset)];
        let mut old = vec![0; new.len()];
        medium.read(&mut old, part.start).map_err(|error| failed("read again", error))?;
        if let Some(at) = old.iter().zip(new).position(|(old, new)| old != new) {
            return Err(EngineError::another_byte(part.start + anabranch_units::Bytes::of(at).get()));
        }
    }
    let mut pieces: Vec<_> = run.iter().map(|order| IoSlice::new(&order.bytes)).collect();
    medium.write(&mut pieces, first.offset).map_err(|error| failed("write", error))
}

fn cost(bytes: &Bytes) -> u64 {
    length(bytes) + PIECE_OVERHEAD
}

fn length(bytes: &Bytes) -> u64 {
    anabranch_units::Bytes::of(bytes.len()).get()
}

/// A distance within one piece, which is in memory and so fits.
fn index(distance: u64) -> usize {
    anabranch_units::Bytes::new(distance).as_usize()
}

#[cfg(test)]
mod tests;
