//! The readers of a film, as its owner sees them, and the memory that they share.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_film::content::ReaderId;
use anabranch_units::{Bytes, Ratio};

/// The readers.
#[derive(Debug, Default)]
pub(super) struct Readers(BTreeMap<ReaderId, Taking>);

#[derive(Debug)]
struct Taking {
    /// What it has still to take, as far as was told.
    range: Range<u64>,
    /// Where it is; it goes on by itself.
    position: Arc<AtomicU64>,
}

impl Readers {
    pub(super) fn add(&mut self, id: ReaderId, range: Range<u64>, position: Arc<AtomicU64>) {
        self.0.insert(id, Taking { range, position });
    }

    pub(super) fn remove(&mut self, id: ReaderId) {
        self.0.remove(&id);
    }

    /// Those that have gone on since they were asked last, and where they are.
    pub(super) fn moved(&mut self) -> impl Iterator<Item = (ReaderId, u64)> {
        self.0.iter_mut().filter_map(|(id, taking)| {
            let position = taking.position.load(Ordering::Relaxed);
            let before = std::mem::replace(&mut taking.range.start, position);
            (before != position).then_some((*id, position))
        })
    }

    /// The position of the one that is farthest.
    pub(super) fn farthest(&self) -> u64 {
        self.0.values().map(|taking| taking.range.start).max().unwrap_or(0)
    }

    /// How far ahead of each is asked for.
    pub(super) fn look_ahead(&self, memory: Bytes) -> Bytes {
        let ahead = memory * Ratio::new(5, 8);
        Bytes::new(ahead.get() / self.count()).max(Bytes::kib(256))
    }

    /// What is a little behind each, and the look-ahead before it.
    pub(super) fn kept(&self, memory: Bytes) -> Vec<Range<u64>> {
        let share = memory.get() / self.count();
        let (behind, ahead) = (share / 8, share * 6 / 8);
        let around = |taking: &Taking| {
            let range = &taking.range;
            range.start.saturating_sub(behind)..range.start.saturating_add(ahead).min(range.end)
        };
        self.0.values().map(around).collect()
    }

    fn count(&self) -> u64 {
        Bytes::of(self.0.len().max(1)).get()
    }
}
