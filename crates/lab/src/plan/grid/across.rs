//! Numbers across the schemes of each path, and one of all paths.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Item, Table};
use exmex::{Express, FlatEx};

use super::super::names::{self, number, unknown};
use super::super::term;
use super::paths::{Grid, HALVES, Path};
use crate::results::OneSeed;
use crate::scheme::{self, Scheme};
use crate::statistics::mean;

/// Where a formula's name gets its number on a path. Figures are means over the seeds.
#[derive(Clone, Debug)]
enum Variable {
    /// A figure of the scheme.
    Own(String),
    /// That of another scheme.
    Other(Scheme, String),
    /// The least that a fixed scheme has.
    Best(String),
    /// That of the first fixed scheme that holds, else of the first.
    Holding(String),
    /// One where a fixed scheme holds, else zero.
    Held,
}

/// What becomes of the numbers of paths.
#[derive(Clone, Copy, Debug)]
enum Take {
    Count,
    Mean,
    Least,
    Largest,
    Quantile(f64),
    PartAbove(f64),
}

/// A formula of every path that counts.
#[derive(Clone, Debug)]
struct Formula {
    formula: FlatEx<f64>,
    variables: Vec<Variable>,
}

/// One number of many paths.
#[derive(Clone, Debug)]
pub(in super::super) struct Across {
    grid: Arc<Grid>,
    scheme: Scheme,
    half: Option<&'static str>,
    /// Axes, and which values of each count.
    only: Vec<(usize, Vec<usize>)>,
    value: Formula,
    /// Only paths where this is above zero count.
    when: Option<Formula>,
    take: Take,
}

impl Across {
    /// The keys `scheme`, `half`, `only`, `value`, `when` and `take`.
    pub(in super::super) fn read(
        own: &mut Table<'_>,
        grid: &Arc<Grid>,
        figures: &[String],
    ) -> Result<Self, Fault> {
        let scheme = own.need("scheme", names::scheme);
        let half = own.get("half", |item| item.one_of(&HALVES.map(|half| (half, half))));
        let only = own.get("only", |item| grid.some_of(item)).unwrap_or_default();
        let value = own.need("value", |item| formula(item, figures));
        let when = own.get("when", |item| formula(item, figures));
        let take = own.need("take", take);
        Ok(Self { grid: Arc::clone(grid), scheme: scheme?, half, only, value: value?, when, take: take? })
    }

    /// The number of these seeds together; `None` where no path that counts has run.
    pub(super) fn of(&self, seeds: &[OneSeed<'_>], counts: impl Fn(&Path) -> bool) -> Option<f64> {
        let mut numbers = Vec::new();
        for path in self.grid.paths.iter().filter(|path| counts(path)) {
            let place = OnPath { across: self, seeds, path };
            let has_value = |(axis, values): &(usize, Vec<usize>)| values.contains(&path.choices[*axis]);
            let is_meant = self.half.is_none_or(|half| half == path.half) && self.only.iter().all(has_value);
            if is_meant
                && place.has_run()
                && self.when.as_ref().is_none_or(|when| place.number(when).is_some_and(|n| n > 0.0))
            {
                numbers.push(place.number(&self.value)?);
            }
        }
        numbers.sort_by(f64::total_cmp);
        self.take.of(&numbers)
    }

    /// The number of all seeds together.
    pub(in super::super) fn of_all(&self, seed: OneSeed<'_>) -> Option<f64> {
        self.of(&seed.every_seed().collect::<Vec<_>>(), |_| true)
    }
}

/// A path with its runs.
struct OnPath<'a> {
    across: &'a Across,
    seeds: &'a [OneSeed<'a>],
    path: &'a Path,
}

impl OnPath<'_> {
    fn each(&self, scheme: Scheme, figure: &str) -> Option<Vec<f64>> {
        let of = |seed: &OneSeed<'_>| seed.setting(self.path.half).figure(scheme, self.path.number, figure);
        self.seeds.iter().map(of).collect()
    }

    fn mean(&self, scheme: Scheme, figure: &str) -> Option<f64> {
        mean(&self.each(scheme, figure)?)
    }

    /// Whether it is one of those that ran: for a look only some do.
    fn has_run(&self) -> bool {
        let seed = self.seeds.first();
        seed.is_some_and(|seed| seed.setting(self.path.half).has_run(self.across.scheme, self.path.number))
    }

    fn holding(&self) -> Option<Scheme> {
        let reference = &self.across.grid.reference;
        let holds = |scheme: &&Scheme| {
            let each = self.each(**scheme, &reference.figure);
            each.is_some_and(|each| each.iter().all(|number| *number == 0.0))
        };
        reference.schemes.iter().find(holds).copied()
    }

    fn number(&self, formula: &Formula) -> Option<f64> {
        let fixed = &self.across.grid.reference.schemes;
        let value = |variable: &Variable| match variable {
            Variable::Own(figure) => self.mean(self.across.scheme, figure),
            Variable::Other(scheme, figure) => self.mean(*scheme, figure),
            Variable::Best(figure) => {
                let each: Option<Vec<f64>> = fixed.iter().map(|scheme| self.mean(*scheme, figure)).collect();
                each?.into_iter().reduce(f64::min)
            }
            Variable::Holding(figure) => self.mean(self.holding().or(fixed.first().copied())?, figure),
            Variable::Held => Some(f64::from(u8::from(self.holding().is_some()))),
        };
        let values: Option<Vec<f64>> = formula.variables.iter().map(value).collect();
        formula.formula.eval(&values?).ok().filter(|number| number.is_finite())
    }
}

impl Take {
    /// Of numbers in rising order.
    fn of(self, numbers: &[f64]) -> Option<f64> {
        let count = numbers.len() as f64;
        match self {
            Self::Count => Some(count),
            Self::Mean => mean(numbers),
            Self::Least => numbers.first().copied(),
            Self::Largest => numbers.last().copied(),
            // The least number that is not below this part of all.
            Self::Quantile(part) => {
                let place = (part * count).ceil().max(1.0) as usize;
                numbers.get(place - 1).copied()
            }
            Self::PartAbove(bound) => {
                let above = numbers.iter().filter(|number| **number > bound).count();
                (!numbers.is_empty()).then(|| above as f64 / count)
            }
        }
    }
}

fn take(item: Item<'_>) -> Result<Take, Fault> {
    const NAMES: [(&str, Take); 4] =
        [("count", Take::Count), ("mean", Take::Mean), ("least", Take::Least), ("largest", Take::Largest)];
    if item.text().is_ok() {
        return item.one_of(&NAMES);
    }
    let mut own = item.table("`take`")?;
    let quantile = own.get("quantile", |item| item.number(|part| (0.0..=1.0).contains(&part), "from 0 to 1"));
    let above = own.get("part_above", number);
    own.finish()?;
    match (quantile, above) {
        (Some(part), None) => Ok(Take::Quantile(part)),
        (None, Some(bound)) => Ok(Take::PartAbove(bound)),
        _ => Err(item.fault("`take` is a name, { quantile = PART } or { part_above = N }")),
    }
}

fn formula(item: Item<'_>, figures: &[String]) -> Result<Formula, Fault> {
    let formula = term::parse(item, item.text()?)?;
    let variable = |name: &String| {
        let is_known = |name: &str| figures.iter().any(|figure| figure == name);
        let (best, holding) = (name.strip_prefix("best "), name.strip_prefix("holding "));
        let other = scheme::ALL.iter().find_map(|scheme| {
            let figure = name.strip_prefix(scheme.name)?.strip_prefix(' ')?;
            is_known(figure).then(|| Variable::Other(*scheme, figure.into()))
        });
        match (best.filter(|name| is_known(name)), holding.filter(|name| is_known(name))) {
            (Some(figure), _) => Ok(Variable::Best(figure.into())),
            (_, Some(figure)) => Ok(Variable::Holding(figure.into())),
            _ if name == "held" => Ok(Variable::Held),
            _ if is_known(name) => Ok(Variable::Own(name.clone())),
            _ => other.ok_or_else(|| {
                let figures = figures.iter().map(String::as_str).chain(["held"]);
                unknown(&item, "figure", name, &figures.collect::<Vec<_>>())
            }),
        }
    };
    let variables = formula.var_names().iter().map(variable).collect::<Result<_, _>>()?;
    Ok(Formula { formula, variables })
}

#[cfg(test)]
mod tests {
    use super::Take;

    #[test]
    fn many_numbers_become_one() {
        let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
        for (take, expected) in [
            (Take::Count, 100.0),
            (Take::Mean, 50.5),
            (Take::Least, 1.0),
            (Take::Largest, 100.0),
            (Take::Quantile(0.99), 99.0),
            (Take::Quantile(0.0), 1.0),
            (Take::PartAbove(98.0), 0.02),
        ] {
            assert_eq!(take.of(&numbers), Some(expected), "{take:?}");
        }
        assert_eq!(Take::PartAbove(0.5).of(&[]), None);
    }
}
