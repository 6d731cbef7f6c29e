//! Sets of values: one for everything that a paper leaves open.

use crate::plan::reading::{Open, Readings};

/// The values' numbers, in the order of what is open.
pub(super) type Set = Vec<usize>;

/// The set that everything else is beside: the first value of each.
pub(super) fn baseline(open: &[Open]) -> Set {
    vec![0; open.len()]
}

/// Whether something open concerns several experiments.
pub(super) fn is_shared(open: &Open) -> bool {
    open.experiments.len() > 1
}

/// What is open in an experiment, as its number.
pub(super) fn concern(open: &[Open], experiment: &str) -> Vec<usize> {
    let concerns = |open: &Open| open.experiments.iter().any(|one| one == experiment);
    (0..open.len()).filter(|index| concerns(&open[*index])).collect()
}

/// What a set has of some of what is open.
pub(super) fn part(set: &Set, of: &[usize]) -> Set {
    of.iter().filter_map(|index| set.get(*index).copied()).collect()
}

/// How many sets of values there are.
pub(super) fn count<'a>(open: impl IntoIterator<Item = &'a Open>) -> usize {
    let counts = open.into_iter().map(|open| open.values.len());
    counts.fold(1, usize::saturating_mul)
}

/// Every set of values of some of what is open, the last one's value changing first.
pub(super) fn every(open: &[Open], of: &[usize]) -> Vec<Set> {
    of.iter().fold(vec![Vec::new()], |sets, index| {
        let longer =
            |set: Set| (0..open[*index].values.len()).map(move |value| [&set[..], &[value]].concat());
        sets.into_iter().flat_map(longer).collect()
    })
}

/// The first values, each other value beside the first of the rest, and the values that are searched
/// together.
pub(super) fn one_by_one(readings: &Readings) -> Vec<Set> {
    let open = &readings.open;
    let alone = (0..open.len()).flat_map(|index| {
        (1..open[index].values.len()).map(move |value| {
            let mut set = baseline(open);
            set[index] = value;
            set
        })
    });
    let together = readings.together.iter().filter_map(|values| {
        let mut set = baseline(open);
        for (name, label) in values {
            // One that `--only` has left out leaves out the set.
            let index = open.iter().position(|open| open.name == *name)?;
            set[index] = open[index].values.iter().position(|value| value.label == *label)?;
        }
        Some(set)
    });
    [baseline(open)].into_iter().chain(alone).chain(together).collect()
}

/// What is open, each with the label of its value in a set.
pub(super) fn labels<'a>(open: &'a [Open], set: &'a Set) -> impl Iterator<Item = (&'a str, &'a str)> {
    let values = open.iter().zip(set);
    values.filter_map(|(open, value)| Some((open.name.as_str(), open.values.get(*value)?.label.as_str())))
}

/// What a set is called: everything that has not its first value.
pub(super) fn name(open: &[Open], set: &Set) -> String {
    let others = labels(open, set).zip(set).filter(|(_, value)| **value > 0);
    let names: Vec<String> = others.map(|((name, label), _)| format!("{name}: {label}")).collect();
    if names.is_empty() { "baseline".into() } else { names.join("; ") }
}
