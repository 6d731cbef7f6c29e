//! A token bucket: a policer drops what finds it empty, a shaper lets it wait.

use anabranch_scenario::model::TokenBucket;

/// Bits times this make whole numbers of what a nanosecond brings.
const PER_BIT: u128 = 1_000_000_000;

/// The bucket at work.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Bits per second.
    rate: u64,
    /// In billionths of a bit, as `tokens` are.
    most: u128,
    tokens: u128,
    counted: u64,
}

impl Bucket {
    /// A full one.
    pub fn new(bucket: &TokenBucket) -> Self {
        let most = u128::from(bucket.burst.get()) * 8 * PER_BIT;
        Self { rate: bucket.rate.as_bps(), most, tokens: most, counted: 0 }
    }

    fn fill(&mut self, now: u64) {
        let brought = u128::from(now.saturating_sub(self.counted)) * u128::from(self.rate);
        self.counted = self.counted.max(now);
        self.tokens = (self.tokens + brought).min(self.most);
    }

    /// Whether a packet of `size` bytes may pass now; one that may takes its tokens.
    #[inline]
    pub fn passes(&mut self, size: u32, now: u64) -> bool {
        self.fill(now);
        let taken = u128::from(size) * 8 * PER_BIT;
        let passes = taken <= self.tokens;
        if passes {
            self.tokens -= taken;
        }
        passes
    }

    /// When a packet of `size` bytes that is there from `now` on may pass, after all before it; it takes its
    /// tokens. One that is larger than the bucket takes all of it.
    #[inline]
    pub fn take_when_ready(&mut self, size: u32, now: u64) -> u64 {
        let now = now.max(self.counted);
        self.fill(now);
        let taken = (u128::from(size) * 8 * PER_BIT).min(self.most);
        let missing = taken.saturating_sub(self.tokens).div_ceil(u128::from(self.rate.max(1)));
        let ready = now.saturating_add(u64::try_from(missing).unwrap_or(u64::MAX));
        self.fill(ready);
        self.tokens -= taken.min(self.tokens);
        ready
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Bytes, Rate};

    use super::*;

    fn bucket() -> Bucket {
        Bucket::new(&TokenBucket { rate: Rate::from_mbps(8), burst: Bytes::new(5000) })
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut policer = bucket();
        // At 8 Mbps a thousand bytes take a millisecond; four times as much comes.
        let passed = |from: u64, to: u64, policer: &mut Bucket| {
            (from..to).filter(|number| policer.passes(1000, number * 250_000)).count()
        };
        // The bucket's five, and what comes meanwhile.
        assert_eq!(passed(0, 8, &mut policer), 6);
        assert_eq!(passed(8, 4008, &mut policer), 1000);
        // A rest fills it again, and no more than that.
        assert_eq!((0..9).filter(|_| policer.passes(1000, 60_000_000_000)).count(), 5);
    }

    #[test]
    fn what_finds_it_empty_waits_for_its_tokens() {
        let mut shaper = bucket();
        let ready: Vec<u64> = (0..8).map(|_| shaper.take_when_ready(1000, 0) / 1000).collect();
        assert_eq!(ready, [0, 0, 0, 0, 0, 1000, 2000, 3000]);
        // A packet that is larger than the bucket waits until that is full.
        assert_eq!(shaper.take_when_ready(60_000, 3_000_000), 8_000_000);
        assert_eq!(shaper.take_when_ready(1000, 8_000_000), 9_000_000);
    }
}
