//! What the receiver has of the data in flight (RFC 6675, section 3).

use std::collections::VecDeque;

/// Ranges of bytes above the cumulative acknowledgement that the receiver has, in order and apart. They come
/// mostly at the end and go at the front, and there can be thousands.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    ranges: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Scoreboard {
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
    }

    /// End of the highest range.
    pub(super) fn highest(&self) -> Option<u64> {
        self.ranges.back().map(|(_, end)| *end)
    }

    /// Takes in a block; answers how many of its bytes are news.
    pub(super) fn add(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // Blocks mostly lengthen the last range or come after it.
        let first = match self.ranges.back() {
            Some((_, last_end)) if *last_end < start => self.ranges.len(),
            _ => self.ranges.partition_point(|(_, range_end)| *range_end < start),
        };
        let mut merged = (start, end);
        let mut known = 0;
        let mut after = first;
        while let Some((range_start, range_end)) = self.ranges.get(after).copied() {
            if range_start > end {
                break;
            }
            known += range_end - range_start;
            merged = (merged.0.min(range_start), merged.1.max(range_end));
            after += 1;
        }
        if after == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
        }
        let news = merged.1 - merged.0 - known;
        self.bytes += news;
        news
    }

    /// Everything before `position` is acknowledged.
    pub(super) fn acknowledged(&mut self, position: u64) {
        let gone = self.ranges.partition_point(|(_, end)| *end <= position);
        for (start, end) in self.ranges.drain(..gone) {
            self.bytes -= end - start;
        }
        if let Some((start, _)) = self.ranges.front_mut().filter(|(start, _)| *start < position) {
            self.bytes -= position - *start;
            *start = position;
        }
    }

    /// Everything without a SACK below this position is lost: three ranges lie above it, or more than twice
    /// the segment size in SACKed bytes (IsLost in section 4, with a duplicate threshold of three).
    pub(super) fn lost_below(&self, segment: u64) -> u64 {
        let mut above = 0;
        for (number, (start, end)) in self.ranges.iter().rev().enumerate() {
            above += end - start;
            if number == 2 || above > 2 * segment {
                return *start;
            }
        }
        0
    }

    /// The first gap at or above `position` and below `limit`.
    pub(super) fn next_gap(&self, position: u64, limit: u64) -> Option<(u64, u64)> {
        let mut start = position;
        let from = self.ranges.partition_point(|(_, end)| *end <= position);
        for (range_start, range_end) in self.ranges.range(from..) {
            if start < *range_start {
                let end = (*range_start).min(limit);
                return (start < end).then_some((start, end));
            }
            start = *range_end;
        }
        (start < limit).then_some((start, limit))
    }

    /// How many bytes in `[start, end)` have no SACK.
    pub(super) fn missing_in(&self, start: u64, end: u64) -> u64 {
        // As where an old acknowledgement, overtaken by others, tells of what was acknowledged since.
        if end <= start {
            return 0;
        }
        let first = self.ranges.partition_point(|(_, range_end)| *range_end <= start);
        let touching = self.ranges.range(first..).take_while(|(range_start, _)| *range_start < end);
        (end - start) - touching.map(|(from, to)| (*to).min(end) - (*from).max(start)).sum::<u64>()
    }

    /// The range that a position lies in.
    pub(super) fn range_of(&self, position: u64) -> Option<(u64, u64)> {
        let place = self.ranges.partition_point(|(_, end)| *end <= position);
        self.ranges.get(place).copied().filter(|(start, _)| *start <= position)
    }

    /// All ranges, in order.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    /// The first range.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_ranges_or_more_than_two_segments_above_make_a_loss() {
        let mut board = Scoreboard::default();
        board.add(1000, 2000);
        board.add(2000, 3000);
        assert_eq!(board.lost_below(1000), 0);
        board.add(3000, 3001);
        assert_eq!(board.lost_below(1000), 1000);
        let mut board = Scoreboard::default();
        for start in [5000, 3000, 1000] {
            assert_eq!(board.lost_below(1000), 0);
            board.add(start, start + 1);
        }
        assert_eq!(board.lost_below(1000), 1000);
        board.add(7000, 7001);
        assert_eq!(board.lost_below(1000), 3000);
    }

    proptest! {
        /// Against a bit for every byte.
        #[test]
        fn it_knows_what_the_receiver_has(
            blocks in prop::collection::vec((0u64..60, 0u64..12), 0..20),
            acknowledged in 0u64..40,
            start in 0u64..70,
            length in 0u64..30,
        ) {
            let mut board = Scoreboard::default();
            let mut bits = [false; 80];
            for (start, length) in blocks {
                let range = start as usize..(start + length) as usize;
                let news = bits[range.clone()].iter().filter(|bit| !**bit).count() as u64;
                bits[range].fill(true);
                prop_assert_eq!(board.add(start, start + length), news);
            }
            board.acknowledged(acknowledged);
            bits[..acknowledged as usize].fill(false);
            prop_assert_eq!(board.bytes, bits.iter().filter(|bit| **bit).count() as u64);
            let at = |position: u64| bits.get(position as usize).copied().unwrap_or(false);
            let start = start.max(acknowledged);
            let end = start + length;
            prop_assert_eq!(board.missing_in(start, end), (start..end).filter(|p| !at(*p)).count() as u64);
            prop_assert_eq!(board.missing_in(end, start), 0);
            let gap = (start..end).find(|p| !at(*p)).map(|from| {
                (from, (from..end).find(|p| at(*p)).unwrap_or(end))
            });
            prop_assert_eq!(board.next_gap(start, end), gap);
        }
    }
}
