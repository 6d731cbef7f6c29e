//! The paths of a grid, each with a value of every axis. Every value of an axis occurs equally often, as in a
//! Latin hypercube, and a random half of the paths is held out from those on which a rule is chosen.

use super::super::runs::{Changes, Run};
use super::super::written::{Computed, PlannedScheme, with_changes};
use crate::draw::numbers;
use crate::scheme::Scheme;

/// The halves' names, which are the settings of their runs.
pub(super) const HALVES: [&str; 2] = ["chosen", "held out"];

/// A value of an axis: what it changes in the scenario, and its number in formulas.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) label: String,
    pub(super) number: f64,
    pub(super) changes: Changes,
    /// What it changes by formulas of the axes' numbers; after those of the grid.
    pub(super) computed: Vec<Computed>,
}

/// Something in which paths differ.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) choices: Vec<Choice>,
}

/// What schemes are compared with, and by what.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// Schemes in rising order of what they take.
    pub(super) schemes: Vec<Scheme>,
    /// A scheme holds a path where this figure is zero in every seed.
    pub(super) figure: String,
}

/// A path: a point of the plan's runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    /// Its number, from 1.
    pub(super) number: f64,
    pub(super) half: &'static str,
    /// Which value of every axis it has.
    pub(super) choices: Vec<usize>,
}

/// All paths, and what is compared on them.
#[derive(Clone, Debug)]
pub(in super::super) struct Grid {
    pub(super) axes: Vec<Axis>,
    pub(super) paths: Vec<Path>,
    /// So many of the paths run for a look.
    pub(in super::super) quick: usize,
    pub(super) reference: Reference,
    /// Schemes that run on the first paths only, and on how many.
    pub(super) on_first: Option<(Vec<Scheme>, usize)>,
}

impl Grid {
    /// The runs of all schemes on all paths.
    ///
    /// # Errors
    /// A computed value is no number; in words.
    pub(super) fn runs(
        &self,
        schemes: &[PlannedScheme],
        computed: &[Computed],
        at: anabranch_sim::scenario::Span,
    ) -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        for path in &self.paths {
            let chosen = || self.axes.iter().zip(&path.choices).map(|(axis, choice)| &axis.choices[*choice]);
            let of = |name: &str| {
                let axis = self.axes.iter().position(|axis| axis.name == name);
                axis.and_then(|axis| chosen().nth(axis)).map_or(f64::NAN, |choice| choice.number)
            };
            let of_path: Changes = chosen().flat_map(|choice| choice.changes.iter().cloned()).collect();
            let runs_here = |scheme: &Scheme| match &self.on_first {
                Some((some, paths)) => path.number <= *paths as f64 || !some.contains(scheme),
                None => true,
            };
            for own in schemes.iter().filter(|own| runs_here(&own.scheme)) {
                let mut changes: Changes = own.changes.iter().chain(&of_path).cloned().collect();
                for computed in std::iter::once(computed).chain(chosen().map(|choice| &*choice.computed)) {
                    changes = with_changes(changes, computed, of)?;
                }
                runs.push(Run {
                    scenario: own.scenario.clone(),
                    scheme: own.scheme,
                    setting: path.half.into(),
                    point: path.number,
                    changes,
                    at,
                });
            }
        }
        Ok(runs)
    }
}

/// Draws so many paths: every value of an axis with so many values occurs equally often, or once more.
pub(super) fn draw(lengths: &[usize], paths: usize, seed: u64, halves: u64) -> Vec<Path> {
    let mut random = numbers(seed);
    let columns: Vec<Vec<usize>> =
        lengths.iter().map(|length| shuffled((0..paths).map(|path| path % length), &mut random)).collect();
    let held_out = shuffled((0..paths).map(|path| path % 2), numbers(halves));
    let path = |(index, half): (usize, usize)| Path {
        number: (index + 1) as f64,
        half: HALVES[half],
        choices: columns.iter().map(|column| column[index]).collect(),
    };
    held_out.into_iter().enumerate().map(path).collect()
}

fn shuffled(values: impl Iterator<Item = usize>, mut random: impl FnMut(usize) -> usize) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    for end in (1..values.len()).rev() {
        values.swap(end, random(end + 1));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_axis_occurs_equally_often_and_half_is_held_out() {
        let paths = draw(&[7, 3, 14], 42, 1, 2);
        for (axis, length) in [7, 3, 14].into_iter().enumerate() {
            for value in 0..length {
                let count = paths.iter().filter(|path| path.choices[axis] == value).count();
                assert_eq!(count, 42 / length, "value {value} of axis {axis}");
            }
        }
        assert_eq!(paths.iter().filter(|path| path.half == HALVES[1]).count(), 21);
    }

    #[test]
    fn seeds_alone_say_what_is_drawn() {
        assert_eq!(draw(&[7, 3], 20, 1, 2), draw(&[7, 3], 20, 1, 2));
        assert_ne!(draw(&[7, 3], 20, 1, 2), draw(&[7, 3], 20, 3, 2));
        let choices = |paths: Vec<Path>| paths.into_iter().map(|path| path.choices).collect::<Vec<_>>();
        assert_eq!(
            choices(draw(&[7, 3], 20, 1, 2)),
            choices(draw(&[7, 3], 20, 1, 4)),
            "halves by themselves"
        );
    }
}
