//! The tuning parameter by the buffer of a player.

use anabranch_units::Duration;

use super::Tuning;

/// Large when the buffer of the player runs low, small when it is safe: what the thesis names first of its
/// future work (chapter 6). It leaves open how; this is the simplest rule, a straight line between two
/// levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferRule {
    /// At this buffer and below it is `fast`.
    pub low: Duration,
    /// At this buffer and above it is `smooth`.
    pub high: Duration,
    /// The parameter of a buffer that runs low.
    pub fast: Tuning,
    /// The parameter of a buffer that is safe.
    pub smooth: Tuning,
}

impl Default for BufferRule {
    fn default() -> Self {
        let (low, high) = (Duration::from_secs(2), Duration::from_secs(8));
        Self { low, high, fast: Tuning(0.9), smooth: Tuning::SMOOTHEST }
    }
}

impl BufferRule {
    /// The parameter at a buffer.
    pub fn tuning(&self, buffer: Duration) -> Tuning {
        if buffer <= self.low {
            return self.fast;
        }
        if buffer >= self.high {
            return self.smooth;
        }
        let place = (buffer - self.low).ratio_to(self.high - self.low);
        let between = self.fast.0 + (self.smooth.0 - self.fast.0) * place;
        Tuning::new(between).unwrap_or(self.smooth)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_falls_from_low_to_high() {
        let rule = BufferRule::default();
        for (millis, expected) in [(0, 0.9), (2000, 0.9), (5000, 0.45), (8000, 0.0), (60_000, 0.0)] {
            let tuning = rule.tuning(Duration::from_millis(millis)).get();
            assert!((tuning - expected).abs() < 1e-9, "{millis}: {tuning}");
        }
    }

    proptest! {
        #[test]
        fn it_stays_between_its_ends(low in 0u64..20_000, span in 0u64..20_000, buffer in 0u64..60_000) {
            let rule = BufferRule {
                low: Duration::from_millis(low),
                high: Duration::from_millis(low + span),
                ..BufferRule::default()
            };
            let tuning = rule.tuning(Duration::from_millis(buffer)).get();
            prop_assert!((0.0..=0.9).contains(&tuning));
        }
    }
}
