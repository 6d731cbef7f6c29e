//! Numbers of raw results: formulas of them, and one number for several.

use anabranch_sim::scenario::{Fault, Item};
use exmex::{Express, FlatEx};

use super::raw::Row;
use crate::plan::term;
use crate::statistics::mean;

/// A formula of the numbers of a result.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    formula: Box<FlatEx<f64>>,
    names: Vec<String>,
}

impl Formula {
    pub(super) fn read(item: Item<'_>) -> Result<Self, Fault> {
        let formula = term::parse(item, item.text()?)?;
        let names = formula.var_names().to_vec();
        Ok(Self { formula: Box::new(formula), names })
    }

    /// `None` where a result lacks a number, or the formula has no value.
    pub(super) fn of(&self, number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let numbers: Vec<f64> = self.names.iter().map(|name| number(name)).collect::<Option<_>>()?;
        self.formula.eval(&numbers).ok().filter(|value| value.is_finite())
    }

    /// Of a result.
    pub(super) fn of_row(&self, row: &Row) -> Option<f64> {
        self.of(|name| row.number(name))
    }
}

/// One number for several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fold {
    Median,
    Mean,
    Least,
    Largest,
    Sum,
    Deviation,
    /// The number below which so great a part of them is.
    Quantile(f64),
}

impl Fold {
    /// The names in a campaign.
    pub(super) const NAMES: [(&'static str, Self); 7] = [
        ("median", Self::Median),
        ("mean", Self::Mean),
        ("least", Self::Least),
        ("largest", Self::Largest),
        ("sum", Self::Sum),
        ("deviation", Self::Deviation),
        ("95 %", Self::Quantile(0.95)),
    ];

    /// `None` of nothing.
    pub(super) fn of(self, numbers: &[f64]) -> Option<f64> {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        Some(match self {
            Self::Median if sorted.len().is_multiple_of(2) => {
                f64::midpoint(sorted[middle - 1], sorted[middle])
            }
            Self::Median => sorted[middle],
            Self::Mean => mean(numbers)?,
            Self::Least => first,
            Self::Largest => last,
            Self::Sum => numbers.iter().sum(),
            Self::Deviation => crate::statistics::Estimate::of(numbers)?.deviation.unwrap_or(0.0),
            Self::Quantile(part) => {
                let below =
                    sorted.iter().enumerate().find(|(at, _)| *at as f64 >= part * sorted.len() as f64);
                below.map_or(last, |(_, number)| *number)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_numbers_become_one() {
        let numbers = [4.0, 1.0, 3.0, 2.0];
        for (fold, is) in [
            (Fold::Median, 2.5),
            (Fold::Mean, 2.5),
            (Fold::Least, 1.0),
            (Fold::Largest, 4.0),
            (Fold::Sum, 10.0),
            (Fold::Quantile(0.5), 3.0),
            (Fold::Quantile(0.95), 4.0),
        ] {
            assert_eq!(fold.of(&numbers), Some(is), "{fold:?}");
            assert_eq!(fold.of(&[]), None);
        }
        assert_eq!(Fold::Median.of(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(Fold::Deviation.of(&[1.0]), Some(0.0));
    }
}
