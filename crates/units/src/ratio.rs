//! Ratios: gains, smoothing factors, margins.

use std::fmt;

/// A finite ratio that is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    /// Nothing of it.
    pub const ZERO: Self = Self(0.0);
    /// All of it.
    pub const ONE: Self = Self(1.0);

    /// `parts` of `whole`; zero when `whole` is zero.
    pub const fn new(parts: u32, whole: u32) -> Self {
        if whole == 0 { Self(0.0) } else { Self(parts as f64 / whole as f64) }
    }

    /// A ratio from a float; negative and not-a-number give zero, infinite gives the largest float.
    pub fn from_f64(ratio: f64) -> Self {
        if ratio > 0.0 { Self(ratio.min(f64::MAX)) } else { Self(0.0) }
    }

    /// The ratio as a float.
    pub const fn as_f64(self) -> f64 {
        self.0
    }

    /// What is missing to one, zero when the ratio is above one.
    pub fn complement(self) -> Self {
        Self::from_f64(1.0 - self.0)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}
