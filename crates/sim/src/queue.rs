//! The event queue: a timing wheel of two levels with a heap behind it.
//!
//! Putting in and taking out cost the same however many events wait. Events of one moment come out in the
//! order in which they were put in, so that a run depends on nothing but its model. A fine bucket is eight
//! microseconds, a coarse one 34 milliseconds; what is more than two minutes ahead waits in the heap. A bucket
//! has room for one event in itself, which is all that most ever hold, and a list in one piece for more, which
//! a processor reads ahead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const FINE_SHIFT: u32 = 15;
const BUCKETS_SHIFT: u32 = 12;
const BUCKETS: usize = 1 << BUCKETS_SHIFT;
const MASK: u64 = (BUCKETS - 1) as u64;
const COARSE_SHIFT: u32 = FINE_SHIFT + BUCKETS_SHIFT;

/// Events with their times.
type Events<E> = Vec<(u64, E)>;

/// Events of about the same time, in the order in which they were put in.
#[derive(Clone, Debug, Default)]
struct Bucket<E> {
    /// Counts where the bucket is in use.
    first: (u64, E),
    more: Events<E>,
}

/// The buckets of one level, and which of them hold something.
#[derive(Debug)]
struct Level<E> {
    buckets: Box<[Bucket<E>]>,
    /// One bit a bucket.
    used: [u64; BUCKETS / 64],
}

impl<E: Copy + Default> Level<E> {
    fn new() -> Self {
        Self { buckets: vec![Bucket::default(); BUCKETS].into_boxed_slice(), used: [0; BUCKETS / 64] }
    }

    /// Puts an event into a bucket; a list gets its memory from `spare`.
    #[inline]
    fn push(&mut self, number: u64, at: u64, event: E, spare: &mut Vec<Events<E>>) {
        let index = (number & MASK) as usize;
        let bucket = &mut self.buckets[index];
        let (used, bit) = (&mut self.used[index / 64], 1 << (index % 64));
        if *used & bit == 0 {
            *used |= bit;
            bucket.first = (at, event);
            return;
        }
        if bucket.more.capacity() == 0 {
            bucket.more = spare.pop().unwrap_or_default();
        }
        bucket.more.push((at, event));
    }

    /// Empties a bucket that is in use.
    #[inline]
    fn take(&mut self, index: usize) -> ((u64, E), Events<E>) {
        self.used[index / 64] &= !(1 << (index % 64));
        let bucket = &mut self.buckets[index];
        (bucket.first, std::mem::take(&mut bucket.more))
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

/// An event that is far ahead: its time, its order of arrival, what it is.
#[derive(Debug)]
struct Far<E>(u64, u64, E);

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Far<E> {}

impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Events by time. Times are in nanoseconds and never before the last event taken out.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    /// The buckets of the current coarse bucket.
    fine: Level<E>,
    /// The coarse buckets after the current one, as many as there are buckets.
    coarse: Level<E>,
    far: BinaryHeap<Reverse<Far<E>>>,
    arrivals: u64,
    /// The current coarse bucket, counted from time zero.
    current_coarse: u64,
    /// The fine bucket whose events are in `due`, counted from time zero.
    current_fine: u64,
    /// The events of the current fine bucket, the next one last.
    due: Events<E>,
    /// Memory of lists that were emptied.
    spare: Vec<Events<E>>,
}

impl<E: Copy + Default> EventQueue<E> {
    pub(crate) fn new() -> Self {
        Self {
            fine: Level::new(),
            coarse: Level::new(),
            far: BinaryHeap::new(),
            arrivals: 0,
            current_coarse: 0,
            current_fine: 0,
            due: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Puts in an event.
    #[inline]
    pub(crate) fn push(&mut self, at: u64, event: E) {
        if at >> FINE_SHIFT <= self.current_fine {
            // Among events of one moment the new one is the last.
            let place = self.due.iter().rposition(|(other, _)| *other > at).map_or(0, |before| before + 1);
            self.due.insert(place, (at, event));
        } else {
            self.place(at, event);
        }
    }

    #[inline]
    fn place(&mut self, at: u64, event: E) {
        let coarse = at >> COARSE_SHIFT;
        if coarse == self.current_coarse {
            self.fine.push(at >> FINE_SHIFT, at, event, &mut self.spare);
        } else if coarse - self.current_coarse < BUCKETS as u64 {
            self.coarse.push(coarse, at, event, &mut self.spare);
        } else {
            self.arrivals += 1;
            self.far.push(Reverse(Far(at, self.arrivals, event)));
        }
    }

    /// Sees to it that [`EventQueue::due`] holds the next event, if there is any. Answers whether its events
    /// are new there.
    #[inline]
    pub(crate) fn prepare(&mut self) -> bool {
        self.due.is_empty() && self.advance()
    }

    /// The events that come next, the first one last, as far as they are in order yet.
    #[inline]
    pub(crate) fn due(&self) -> &[(u64, E)] {
        &self.due
    }

    /// Takes the next event out, if it comes before `until`. [`EventQueue::prepare`] comes first.
    #[inline]
    pub(crate) fn pop_before(&mut self, until: u64) -> Option<(u64, E)> {
        self.due.pop_if(|(at, _)| *at < until)
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
                let (first, more) = self.fine.take(index);
                if !more.is_empty() {
                    let served = std::mem::replace(&mut self.due, more);
                    self.spare.push(served);
                    self.due.reverse();
                }
                self.due.push(first);
                // The first to come is the last of the list; a stable order keeps the order of arrival at
                // each moment.
                if self.due.len() > 1 {
                    self.due.sort_by_key(|(at, _)| Reverse(*at));
                }
                return true;
            }
            if !self.advance_coarse() {
                return false;
            }
        }
    }

    /// Moves to the next coarse bucket that holds events and spreads them over the fine ones.
    fn advance_coarse(&mut self) -> bool {
        let here = (self.current_coarse & MASK) as usize;
        let index = self.coarse.next_from(here + 1).or_else(|| self.coarse.next_from(0));
        let Some(index) = index else {
            let Some(Reverse(Far(at, ..))) = self.far.peek() else { return false };
            self.current_coarse = at >> COARSE_SHIFT;
            self.near_ones_from_afar();
            return true;
        };
        self.current_coarse += (index as u64).wrapping_sub(self.current_coarse) & MASK;
        let ((at, event), mut more) = self.coarse.take(index);
        self.place(at, event);
        for (at, event) in more.drain(..) {
            self.place(at, event);
        }
        if more.capacity() > 0 {
            self.spare.push(more);
        }
        self.near_ones_from_afar();
        true
    }

    /// Takes what has come near from the heap, before anything can be put directly into the same buckets.
    fn near_ones_from_afar(&mut self) {
        while let Some(Reverse(Far(at, ..))) = self.far.peek() {
            if (at >> COARSE_SHIFT) - self.current_coarse >= BUCKETS as u64 {
                break;
            }
            if let Some(Reverse(Far(at, _, event))) = self.far.pop() {
                self.place(at, event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted list: each event is taken when it is the first of all in time, then in order of
        /// arrival.
        #[test]
        fn events_come_in_order(steps in prop::collection::vec((any::<bool>(), 0u64..3, 0u64..45), 1..400)) {
            let mut queue = EventQueue::new();
            let mut expected: Vec<(u64, usize)> = Vec::new();
            let mut now = 0;
            for (number, (take, kind, shift)) in steps.into_iter().enumerate() {
                if take {
                    expected.sort();
                    let first = (!expected.is_empty()).then(|| expected.remove(0));
                    queue.prepare();
                    prop_assert_eq!(queue.due().last().copied(), first);
                    prop_assert_eq!(queue.pop_before(first.map_or(0, |(at, _)| at)), None);
                    prop_assert_eq!(queue.pop_before(u64::MAX), first);
                    now = first.map_or(now, |(at, _)| at);
                } else {
                    let at = now + match kind { 0 => shift, 1 => 1 << shift, _ => (1 << shift) + shift };
                    queue.push(at, number);
                    expected.push((at, number));
                }
            }
            expected.sort();
            for event in expected {
                queue.prepare();
                prop_assert_eq!(queue.pop_before(u64::MAX), Some(event));
            }
            prop_assert!(!queue.prepare());
        }
    }
}
