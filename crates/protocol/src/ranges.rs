//! A set of byte positions, kept as disjoint ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Byte positions as disjoint, non-touching, non-empty ranges. Every operation costs O(log n) in the number
/// of ranges, plus the ranges that it swallows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// Start of each range to its end.
    ranges: BTreeMap<u64, u64>,
    /// Positions in the set.
    total: u64,
}

impl RangeSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many positions are in the set.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(start, end)| *start..*end)
    }

    /// Adds `range`; answers how many of its positions are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (mut start, mut end) = (range.start, range.end);
        let mut swallowed = 0;
        // The range before, when it reaches here, and then every range that begins inside or at the end.
        if let Some((&before, &its_end)) = self.ranges.range(..=start).next_back()
            && its_end >= start
        {
            start = before;
            end = end.max(its_end);
            swallowed += its_end - before;
            self.ranges.remove(&before);
        }
        while let Some((&next, &its_end)) = self.ranges.range(start..=end).next() {
            end = end.max(its_end);
            swallowed += its_end - next;
            self.ranges.remove(&next);
        }
        self.ranges.insert(start, end);
        let added = (end - start) - swallowed;
        self.total += added;
        added
    }

    /// Takes `range` out; answers how many of its positions were there.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let mut removed = 0;
        if let Some((&before, &its_end)) = self.ranges.range(..range.start).next_back()
            && its_end > range.start
        {
            self.ranges.insert(before, range.start);
            removed += its_end.min(range.end) - range.start;
            if its_end > range.end {
                self.ranges.insert(range.end, its_end);
            }
        }
        while let Some((&next, &its_end)) = self.ranges.range(range.clone()).next() {
            self.ranges.remove(&next);
            removed += its_end.min(range.end) - next;
            if its_end > range.end {
                self.ranges.insert(range.end, its_end);
            }
        }
        self.total -= removed;
        removed
    }

    /// The end of the run of positions that begins at `from`; `from` itself when it is not in the set.
    pub fn run_end(&self, from: u64) -> u64 {
        match self.ranges.range(..=from).next_back() {
            Some((_, &end)) if end > from => end,
            _ => from,
        }
    }

    /// Whether all of `range` is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.run_end(range.start) >= range.end
    }

    /// The first run of positions at or after `from` and below `limit` that is not in the set.
    pub fn first_gap(&self, from: u64, limit: u64) -> Option<Range<u64>> {
        let start = self.run_end(from);
        if start >= limit {
            return None;
        }
        let end = self.ranges.range(start..).next().map_or(limit, |(&next, _)| next.min(limit));
        Some(start..end)
    }

    /// The parts of `range` that are in the set, in order.
    pub fn iter_within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = range.start..self.run_end(range.start).min(range.end);
        let within = range.start.saturating_add(1)..range.end.max(range.start.saturating_add(1));
        let later = self.ranges.range(within).map(move |(&start, &end)| start..end.min(range.end));
        std::iter::once(first).filter(|first| !first.is_empty()).chain(later)
    }

    /// The parts of `range` that are not in the set, in order.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut from = range.start;
        std::iter::from_fn(move || {
            let gap = self.first_gap(from, range.end)?;
            from = gap.end;
            Some(gap)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(ranges: &[Range<u64>]) -> RangeSet {
        let mut set = RangeSet::new();
        for range in ranges {
            set.insert(range.clone());
        }
        set
    }

    #[test]
    fn touching_ranges_join() {
        let joined = set(&[0..10, 20..30, 10..20]);
        assert_eq!(joined.iter().next(), Some(0..30));
        assert_eq!(joined.total(), 30);
    }

    #[test]
    fn gaps_are_found_in_order() {
        let set = set(&[5..10, 15..20]);
        assert_eq!(set.first_gap(0, 100), Some(0..5));
        assert_eq!(set.first_gap(5, 100), Some(10..15));
        assert_eq!(set.first_gap(16, 18), None);
        assert_eq!(set.gaps(0..30).collect::<Vec<_>>(), [0..5, 10..15, 20..30]);
        assert_eq!(set.run_end(7), 10);
        assert!(set.contains(&(6..10)) && !set.contains(&(6..11)));
    }

    proptest! {
        #[test]
        fn agrees_with_a_bit_per_position(
            operations in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..20), 0..60)
        ) {
            let mut set = RangeSet::new();
            let mut model = [false; 96];
            for (insert, start, length) in operations {
                let range = start..start + length;
                let before = model.iter().filter(|bit| **bit).count() as u64;
                for position in range.clone() {
                    model[position as usize] = insert;
                }
                let after = model.iter().filter(|bit| **bit).count() as u64;
                let changed = if insert { set.insert(range) } else { set.remove(range) };
                prop_assert_eq!(changed, after.abs_diff(before));
                prop_assert_eq!(set.total(), after);
                for (position, bit) in (0u64..).zip(model) {
                    prop_assert_eq!(set.contains(&(position..position + 1)), bit);
                }
                let within: u64 = set.iter_within(10..40).map(|range| range.end - range.start).sum();
                prop_assert_eq!(within, model[10..40].iter().filter(|bit| **bit).count() as u64);
                let ranges: Vec<_> = set.iter().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
