//! Round trips counted by packets and not by a clock (section 5.5.1).

/// `BBR.round_count` and what belongs to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// `BBR.round_count`.
    pub count: u64,
    /// `BBR.round_start`: whether the last acknowledgement began one.
    pub is_start: bool,
    /// `BBR.next_round_delivered`.
    next_delivered: u64,
}

impl Rounds {
    /// `StartRound`: the next one ends with something that is sent from now on.
    pub(super) fn start(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }

    /// `UpdateRound`: something has arrived that was sent when `prior_delivered` had been delivered.
    pub(super) fn update(&mut self, prior_delivered: u64, delivered: u64) {
        self.is_start = prior_delivered >= self.next_delivered;
        if self.is_start {
            self.start(delivered);
            self.count += 1;
        }
    }
}
