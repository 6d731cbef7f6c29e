//! What is in an order, and changes its place or goes at every packet.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A heap in which what is no longer so may lie until it is read. Mostly what changes is the greatest, which
/// is changed where it is, or is gone before anybody reads it. So little is moved, and nothing is allocated.
#[derive(Debug)]
pub(super) struct Order<T> {
    heap: BinaryHeap<T>,
    /// How many are so.
    len: usize,
}

impl<T: Ord> Default for Order<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), len: 0 }
    }
}

impl<T: Ord + Copy> Order<T> {
    /// How many are in it.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many lie in it, with what is no longer so.
    #[cfg(test)]
    pub(super) fn lying(&self) -> usize {
        self.heap.len()
    }

    /// What had the first place has the second one from now on; `None`: it was not in it, or is not any more.
    pub(super) fn change(&mut self, before: Option<T>, after: Option<T>) {
        if before == after {
            return;
        }
        self.len = self.len + usize::from(after.is_some()) - usize::from(before.is_some());
        if self.len == 0 {
            self.heap.clear();
            return;
        }
        if before.is_some() && self.heap.peek() == before.as_ref() {
            match (self.heap.peek_mut(), after) {
                (Some(mut greatest), Some(after)) => *greatest = after,
                (Some(greatest), None) => drop(PeekMut::pop(greatest)),
                (None, _) => {}
            }
        } else if let Some(after) = after {
            self.heap.push(after);
        }
    }

    /// The greatest of those that are so.
    pub(super) fn greatest(&mut self, is_so: impl Fn(T) -> bool) -> Option<T> {
        while let Some(greatest) = self.heap.peek().copied() {
            if is_so(greatest) {
                return Some(greatest);
            }
            self.heap.pop();
        }
        None
    }

    /// Where most of what lies in it is no longer so, all of that goes at once; to be called now and then.
    pub(super) fn tidy(&mut self, is_so: impl Fn(T) -> bool) {
        if self.heap.len() > 2 * self.len + 64 {
            let mut current = std::mem::take(&mut self.heap).into_vec();
            current.retain(|one| is_so(*one));
            current.sort_unstable();
            current.dedup();
            self.heap = current.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set that has nothing else in it.
        #[test]
        fn the_greatest_is_found_among_what_is_no_longer_so(
            steps in prop::collection::vec((0usize..8, prop::option::of(0u32..20)), 0..400),
        ) {
            let (mut order, mut places) = (Order::default(), [None; 8]);
            for (who, place) in steps {
                let at = |place: Option<u32>| place.map(|place| (place, who));
                order.change(at(places[who]), at(place));
                places[who] = place;
                let set: BTreeSet<_> =
                    places.iter().enumerate().filter_map(|(who, place)| Some(((*place)?, who))).collect();
                let is_so = |one: (u32, usize)| places[one.1] == Some(one.0);
                order.tidy(is_so);
                prop_assert_eq!(order.len(), set.len());
                prop_assert!(order.heap.len() <= 2 * set.len() + 64);
                if place.is_some_and(|place| place % 2 == 0) {
                    prop_assert_eq!(order.greatest(is_so), set.last().copied());
                }
            }
        }
    }
}
