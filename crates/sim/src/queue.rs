//! The event queue: a timing wheel of two levels with a heap behind it.
//!
//! Putting in and taking out cost the same however many events wait. Events of one moment come out in the order in which
//! they were put in, so that a run depends on nothing but its model. A fine bucket is a microsecond, a coarse one four
//! milliseconds; what is more than 17 seconds ahead waits in the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const FINE_SHIFT: u32 = 10;
const BUCKETS_SHIFT: u32 = 12;
const BUCKETS: usize = 1 << BUCKETS_SHIFT;
const MASK: u64 = (BUCKETS - 1) as u64;
const COARSE_SHIFT: u32 = FINE_SHIFT + BUCKETS_SHIFT;
/// The end of a list.
const NONE: u32 = u32::MAX;

/// An event that waits: when, what, and the next one in its bucket's list, the youngest first.
#[derive(Clone, Copy, Debug)]
struct Waiting<E> {
    at: u64,
    event: E,
    next: u32,
}

/// The buckets of one level, each a list, and which of them hold something.
#[derive(Debug)]
struct Level {
    heads: Box<[u32]>,
    /// One bit a bucket.
    used: [u64; BUCKETS / 64],
}

impl Level {
    fn new() -> Self {
        Self { heads: vec![NONE; BUCKETS].into_boxed_slice(), used: [0; BUCKETS / 64] }
    }

    /// Makes `entry` the head of a bucket; answers the head before.
    fn push(&mut self, bucket: u64, entry: u32) -> u32 {
        let index = (bucket & MASK) as usize;
        self.used[index / 64] |= 1 << (index % 64);
        std::mem::replace(&mut self.heads[index], entry)
    }

    /// Empties a bucket.
    fn take(&mut self, index: usize) -> u32 {
        self.used[index / 64] &= !(1 << (index % 64));
        std::mem::replace(&mut self.heads[index], NONE)
    }

    /// The first bucket in use from `index` to the end.
    fn next_from(&self, index: usize) -> Option<usize> {
        let mut word = index / 64;
        let mut bits = *self.used.get(word)? & (u64::MAX << (index % 64));
        loop {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            word += 1;
            bits = *self.used.get(word)?;
        }
    }
}

/// Events by time. Times are in nanoseconds and never before the last event taken out.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    pool: Vec<Waiting<E>>,
    free: u32,
    /// The buckets of the current coarse bucket.
    fine: Level,
    /// The coarse buckets after the current one, as many as there are buckets.
    coarse: Level,
    /// Later ones: time, order of arrival, entry.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrivals: u64,
    /// The current coarse bucket, counted from time zero.
    current_coarse: u64,
    /// The fine bucket whose events are in `due`, counted from time zero.
    current_fine: u64,
    /// The events of the current fine bucket, the next one last.
    due: Vec<(u64, E)>,
}

impl<E: Copy> EventQueue<E> {
    pub(crate) fn new() -> Self {
        Self {
            pool: Vec::new(),
            free: NONE,
            fine: Level::new(),
            coarse: Level::new(),
            far: BinaryHeap::new(),
            arrivals: 0,
            current_coarse: 0,
            current_fine: 0,
            due: Vec::new(),
        }
    }

    /// Puts in an event.
    #[inline]
    pub(crate) fn push(&mut self, at: u64, event: E) {
        let fine = at >> FINE_SHIFT;
        if fine <= self.current_fine {
            // Among events of one moment the new one is the last.
            let place = self.due.iter().rposition(|(other, _)| *other > at).map_or(0, |before| before + 1);
            self.due.insert(place, (at, event));
            return;
        }
        let entry = self.allocate(at, event);
        self.place(at, entry);
    }

    fn allocate(&mut self, at: u64, event: E) -> u32 {
        let waiting = Waiting { at, event, next: NONE };
        if self.free == NONE {
            self.pool.push(waiting);
            return (self.pool.len() - 1) as u32;
        }
        let entry = self.free;
        self.free = self.pool[entry as usize].next;
        self.pool[entry as usize] = waiting;
        entry
    }

    fn place(&mut self, at: u64, entry: u32) {
        let coarse = at >> COARSE_SHIFT;
        let next = if coarse == self.current_coarse {
            self.fine.push(at >> FINE_SHIFT, entry)
        } else if coarse - self.current_coarse < BUCKETS as u64 {
            self.coarse.push(coarse, entry)
        } else {
            self.arrivals += 1;
            self.far.push(Reverse((at, self.arrivals, entry)));
            return;
        };
        self.pool[entry as usize].next = next;
    }

    /// When the next event is.
    #[inline]
    pub(crate) fn next_time(&mut self) -> Option<u64> {
        if self.due.is_empty() && !self.advance() {
            return None;
        }
        self.due.last().map(|(at, _)| *at)
    }

    /// Takes the next event out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        if self.due.is_empty() && !self.advance() {
            return None;
        }
        self.due.pop()
    }

    /// Moves to the next fine bucket that holds events; `false` when no event waits.
    fn advance(&mut self) -> bool {
        loop {
            // Everything before the current fine bucket is empty.
            let from = if self.current_fine >> BUCKETS_SHIFT == self.current_coarse {
                (self.current_fine & MASK) as usize
            } else {
                0
            };
            if let Some(index) = self.fine.next_from(from) {
                self.current_fine = (self.current_coarse << BUCKETS_SHIFT) + index as u64;
                self.serve(index);
                return true;
            }
            if !self.advance_coarse() {
                return false;
            }
        }
    }

    /// Takes a fine bucket's events into `due`.
    fn serve(&mut self, index: usize) {
        let mut entry = self.fine.take(index);
        while entry != NONE {
            let waiting = self.pool[entry as usize];
            self.due.push((waiting.at, waiting.event));
            self.pool[entry as usize].next = self.free;
            self.free = entry;
            entry = waiting.next;
        }
        // The list begins with the youngest, so that a stable order by falling time ends with the first.
        if self.due.len() > 1 {
            self.due.sort_by_key(|(at, _)| Reverse(*at));
        }
    }

    /// Moves to the next coarse bucket that holds events and spreads them over the fine ones.
    fn advance_coarse(&mut self) -> bool {
        let here = (self.current_coarse & MASK) as usize;
        let index = self.coarse.next_from(here + 1).or_else(|| self.coarse.next_from(0));
        let Some(index) = index else {
            let Some(Reverse((at, ..))) = self.far.peek() else { return false };
            self.current_coarse = at >> COARSE_SHIFT;
            self.near_ones_from_afar();
            return true;
        };
        self.current_coarse += (index as u64).wrapping_sub(self.current_coarse) & MASK;
        // The youngest comes first in a list: turned round, it goes into the fine lists in the order of arrival.
        let mut turned = NONE;
        let mut entry = self.coarse.take(index);
        while entry != NONE {
            let next = std::mem::replace(&mut self.pool[entry as usize].next, turned);
            turned = entry;
            entry = next;
        }
        while turned != NONE {
            let Waiting { at, next, .. } = self.pool[turned as usize];
            self.place(at, turned);
            turned = next;
        }
        self.near_ones_from_afar();
        true
    }

    /// Takes what has come near from the heap, before anything can be put directly into the same buckets.
    fn near_ones_from_afar(&mut self) {
        while let Some(Reverse((at, _, entry))) = self.far.peek().copied() {
            if (at >> COARSE_SHIFT) - self.current_coarse >= BUCKETS as u64 {
                break;
            }
            self.far.pop();
            self.place(at, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted list: each event is taken when it is the first of all in time, then in order of arrival.
        #[test]
        fn events_come_in_order(steps in prop::collection::vec((any::<bool>(), 0u64..3, 0u64..40), 1..400)) {
            let mut queue = EventQueue::new();
            let mut expected: Vec<(u64, usize)> = Vec::new();
            let mut now = 0;
            for (number, (take, kind, shift)) in steps.into_iter().enumerate() {
                if take {
                    expected.sort();
                    let first = (!expected.is_empty()).then(|| expected.remove(0));
                    prop_assert_eq!(queue.next_time(), first.map(|(at, _)| at));
                    prop_assert_eq!(queue.pop(), first);
                    now = first.map_or(now, |(at, _)| at);
                } else {
                    let at = now + match kind { 0 => shift, 1 => 1 << shift, _ => (1 << shift) + shift };
                    queue.push(at, number);
                    expected.push((at, number));
                }
            }
            expected.sort();
            for event in expected {
                prop_assert_eq!(queue.pop(), Some(event));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
