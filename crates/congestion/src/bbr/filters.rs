//! Maxima of the recent past.

use std::collections::VecDeque;

/// `BBR.max_bw_filter` (sections 5.5.3 to 5.5.6): the most of this cycle of probing and of the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct TwoCycles {
    before: f64,
    now: f64,
}

impl TwoCycles {
    /// The most of both.
    pub(super) fn most(&self) -> f64 {
        self.before.max(self.now)
    }

    /// Something was measured in this cycle.
    pub(super) fn add(&mut self, value: f64) {
        self.now = self.now.max(value);
    }

    /// `AdvanceMaxBwFilter`: the next cycle. One in which nothing was measured forgets nothing.
    pub(super) fn advance(&mut self) {
        if self.now > 0.0 {
            self.before = std::mem::take(&mut self.now);
        }
    }
}

/// The most of the last round trips: exact, and no longer than its window, because each round trip has one
/// entry at the most.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentRounds {
    /// Round and value, the values falling.
    most: VecDeque<(u64, f64)>,
}

impl RecentRounds {
    /// Something was measured in this round; what is `length` rounds old is forgotten. Answers the most.
    pub(super) fn add(&mut self, round: u64, value: f64, length: u64) -> f64 {
        while self.most.back().is_some_and(|(_, last)| *last <= value) {
            self.most.pop_back();
        }
        if self.most.back().is_none_or(|(last, _)| *last < round) {
            self.most.push_back((round, value));
        }
        while self.most.front().is_some_and(|(first, _)| first.saturating_add(length) <= round) {
            self.most.pop_front();
        }
        self.most.front().map_or(value, |(_, most)| *most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_forgotten_after_two_cycles() {
        let mut filter = TwoCycles::default();
        filter.add(10.0);
        filter.add(4.0);
        filter.advance();
        // A cycle without a measurement changes nothing.
        filter.advance();
        filter.advance();
        filter.add(5.0);
        assert_eq!(filter.most(), 10.0);
        filter.advance();
        assert_eq!(filter.most(), 5.0);
    }

    #[test]
    fn a_window_of_rounds_has_their_maximum() {
        let mut filter = RecentRounds::default();
        let values = [3.0, 9.0, 4.0, 4.0, 1.0, 0.0, 2.0, 8.0, 0.0, 0.0, 0.0, 0.0];
        for (round, value) in values.iter().enumerate() {
            let window = &values[round.saturating_sub(3)..=round];
            let most = window.iter().copied().fold(0.0, f64::max);
            assert_eq!(filter.add(round as u64, *value, 4), most, "round {round}");
            assert!(filter.most.len() <= 4);
        }
        // Within a round the most counts, and a shorter window forgets at once.
        assert_eq!(filter.add(12, 1.0, 4), 1.0);
        assert_eq!(filter.add(12, 6.0, 4), 6.0);
        assert_eq!(filter.add(12, 2.0, 4), 6.0);
        assert_eq!(filter.add(13, 2.0, 1), 2.0);
    }
}
