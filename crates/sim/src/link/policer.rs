//! A policer: a token bucket that drops what comes faster than its rate.

use crate::model;

/// Bits times this make whole numbers of what a nanosecond brings.
const PER_BIT: u128 = 1_000_000_000;

/// The bucket.
#[derive(Clone, Debug)]
pub(super) struct Policer {
    /// Bits per second.
    rate: u64,
    /// In billionths of a bit, as `tokens` are.
    most: u128,
    tokens: u128,
    counted: u64,
}

impl Policer {
    /// A full one.
    pub(super) fn new(policer: &model::Policer) -> Self {
        let most = u128::from(policer.burst.get()) * 8 * PER_BIT;
        Self { rate: policer.rate.as_bps(), most, tokens: most, counted: 0 }
    }

    /// Whether a packet of `size` bytes may pass now; one that may takes its tokens.
    pub(super) fn passes(&mut self, size: u32, now: u64) -> bool {
        let brought = u128::from(now.saturating_sub(self.counted)) * u128::from(self.rate);
        self.counted = now;
        self.tokens = (self.tokens + brought).min(self.most);
        let taken = u128::from(size) * 8 * PER_BIT;
        let passes = taken <= self.tokens;
        if passes {
            self.tokens -= taken;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Bytes, Rate};

    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut policer = Policer::new(&model::Policer { rate: Rate::from_mbps(8), burst: Bytes::new(5000) });
        // At 8 Mbps a thousand bytes take a millisecond; four times as much comes.
        let passed = |from: u64, to: u64, policer: &mut Policer| {
            (from..to).filter(|number| policer.passes(1000, number * 250_000)).count()
        };
        // The bucket's five, and what comes meanwhile.
        assert_eq!(passed(0, 8, &mut policer), 6);
        assert_eq!(passed(8, 4008, &mut policer), 1000);
        // A rest fills it again, and no more than that.
        assert_eq!((0..9).filter(|_| policer.passes(1000, 60_000_000_000)).count(), 5);
    }
}
