//! Fractions as text of fixed length, by whole numbers only: the same on every machine.

use std::fmt;

use anabranch_units::Duration;

/// A fraction with six decimals, rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal {
    millionths: u128,
}

impl Decimal {
    const ONE: u128 = 1_000_000;

    /// `numerator / denominator`; `None` when there is nothing to divide by.
    pub(super) fn of(numerator: u128, denominator: u128) -> Option<Self> {
        let scaled = numerator.saturating_mul(Self::ONE).saturating_add(denominator / 2);
        scaled.checked_div(denominator).map(|millionths| Self { millionths })
    }

    /// Seconds.
    pub(super) fn seconds(span: Duration) -> Self {
        Self { millionths: (u128::from(span.as_nanos()) + 500) / 1000 }
    }

    /// A number that is not negative.
    pub(super) fn rounded(number: f64) -> Self {
        Self { millionths: (number * Self::ONE as f64).round() as u128 }
    }

    /// The number that this text stands for.
    pub(super) fn number(self) -> f64 {
        // Both are exact below 2^53, and the division of two floats is the same everywhere.
        self.millionths as f64 / Self::ONE as f64
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.millionths / Self::ONE, self.millionths % Self::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_rounded() {
        let text =
            |numerator, denominator| Decimal::of(numerator, denominator).map(|found| found.to_string());
        assert_eq!(text(1, 3).as_deref(), Some("0.333333"));
        assert_eq!(text(2, 3).as_deref(), Some("0.666667"));
        assert_eq!(text(7, 1).as_deref(), Some("7.000000"));
        assert_eq!(text(1, 0), None);
        assert!(text(u128::MAX, 1).is_some());
        assert_eq!(Decimal::seconds(Duration::from_nanos(1_234_567_890)).to_string(), "1.234568");
        assert_eq!(Decimal::seconds(Duration::from_millis(100)).number(), 0.1);
        assert_eq!(Decimal::rounded(2.5).to_string(), "2.500000");
    }
}
