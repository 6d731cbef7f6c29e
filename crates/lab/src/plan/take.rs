//! What becomes of several numbers: of a run's bins of time, or of several points.

use crate::statistics::{mean, variation};

/// One number for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Least,
    Largest,
    Mean,
    /// The standard deviation over the mean.
    Variation,
}

impl Take {
    /// The names in a plan.
    pub(super) const NAMES: [(&'static str, Self); 4] = [
        ("least", Self::Least),
        ("largest", Self::Largest),
        ("mean", Self::Mean),
        ("variation", Self::Variation),
    ];

    /// `None` of nothing.
    pub(super) fn of(self, numbers: &[f64]) -> Option<f64> {
        match self {
            Self::Least => numbers.iter().copied().reduce(f64::min),
            Self::Largest => numbers.iter().copied().reduce(f64::max),
            Self::Mean => mean(numbers),
            Self::Variation => variation(numbers),
        }
    }
}
