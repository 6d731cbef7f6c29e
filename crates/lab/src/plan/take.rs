//! What becomes of several numbers: of a run's bins of time, of its flows, or of several points.

use anabranch_sim::scenario::{Fault, Item};

use super::names::number;
use crate::statistics::{Estimate, mean, variation};

/// One number for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Least,
    Largest,
    Mean,
    /// The standard deviation of a sample.
    Deviation,
    /// The standard deviation over the mean.
    Variation,
}

impl Take {
    /// The names in a plan.
    pub(super) const NAMES: [(&'static str, Self); 5] = [
        ("least", Self::Least),
        ("largest", Self::Largest),
        ("mean", Self::Mean),
        ("deviation", Self::Deviation),
        ("variation", Self::Variation),
    ];

    /// `None` of nothing.
    pub(super) fn of(self, numbers: &[f64]) -> Option<f64> {
        match self {
            Self::Least => numbers.iter().copied().reduce(f64::min),
            Self::Largest => numbers.iter().copied().reduce(f64::max),
            Self::Mean => mean(numbers),
            Self::Deviation => Estimate::of(numbers)?.deviation,
            Self::Variation => variation(numbers),
        }
    }
}

/// Bins of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bins {
    /// How long each is, in seconds.
    pub(super) seconds: f64,
    /// How much later than the one before it each begins.
    pub(super) step: f64,
}

/// What becomes of the values of bins of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Summary {
    Take(Take),
    /// How long until one is so much or more.
    UntilAtLeast(f64),
    /// How long until one is so much or less.
    UntilAtMost(f64),
}

impl Summary {
    /// `{ at_least = N }` or `{ at_most = N }`.
    pub(super) fn until(item: Item<'_>) -> Result<Self, Fault> {
        let mut table = item.table("`until`")?;
        let bounds = (table.get("at_least", number), table.get("at_most", number));
        table.finish()?;
        match bounds {
            (Some(bound), None) => Ok(Self::UntilAtLeast(bound)),
            (None, Some(bound)) => Ok(Self::UntilAtMost(bound)),
            _ => Err(item.fault("`until` is one of { at_least = N } and { at_most = N }")),
        }
    }

    /// Of bins with their ends, in seconds from their beginning; not finite where there is nothing.
    pub(super) fn of(self, bins: &[(f64, f64)]) -> f64 {
        let first = |is_there: &dyn Fn(f64) -> bool| {
            bins.iter().find(|(_, value)| is_there(*value)).map(|(end, _)| *end)
        };
        let value = match self {
            Self::Take(take) => {
                let values = bins.iter().map(|(_, value)| *value).filter(|value| value.is_finite());
                take.of(&values.collect::<Vec<f64>>())
            }
            Self::UntilAtLeast(bound) => first(&|value| value >= bound),
            Self::UntilAtMost(bound) => first(&|value| value <= bound),
        };
        value.unwrap_or(f64::NAN)
    }
}
