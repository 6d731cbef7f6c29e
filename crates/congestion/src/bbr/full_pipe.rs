//! Whether sending faster still brings more (section 5.3.1.2).

use super::parameters::{FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS};

/// The estimator of a full pipe.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// `BBR.full_bw_reached`: the pipe was full at least once.
    pub was_reached: bool,
    /// `BBR.full_bw_now`: it is full since the estimator began anew.
    pub is_full: bool,
    /// `BBR.full_bw` in bytes per second.
    baseline: f64,
    /// `BBR.full_bw_count`.
    rounds: u32,
}

impl FullPipe {
    /// `ResetFullBW`, with the rate from which growth counts.
    pub(super) fn reset(&mut self, baseline: f64) {
        (self.baseline, self.rounds, self.is_full) = (baseline, 0, false);
    }

    /// `CheckFullBWReached`: a round trip has ended in which the application did not hold the sender back.
    pub(super) fn round_ended(&mut self, rate: f64) {
        if self.is_full {
            return;
        }
        if rate >= self.baseline * FULL_PIPE_GROWTH {
            self.reset(rate);
            return;
        }
        self.rounds += 1;
        self.is_full = self.rounds >= FULL_PIPE_ROUNDS;
        self.was_reached |= self.is_full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        for rate in [10.0, 20.0, 40.0, 49.0, 49.0, 50.0, 62.0, 62.0] {
            pipe.round_ended(rate);
            assert!(!pipe.is_full);
        }
        pipe.round_ended(62.0);
        assert!(pipe.is_full && pipe.was_reached);
        pipe.reset(62.0);
        assert!(!pipe.is_full && pipe.was_reached);
    }
}
