//! Which values of what a paper leaves open reproduce most of its own relations.
//!
//! A *set* has a value for everything that `readings.toml` in the paper's folder calls open. Of each set the
//! paper's relations are counted that reproduce; the best one can be the paper's baseline. What concerns one
//! experiment alone changes nothing in others: of it the best value is looked for in every set of the rest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anabranch_sim::scenario::Error;
use thiserror::Error;

use crate::experiment::Experiment;
use crate::outcome::{Judgement, Outcome, Verdict};
use crate::papers::Papers;
use crate::plan::reading::{self, Open};
use crate::run::{RunError, RunOptions, run};

/// A search has no more sets.
const MOST_SETS: usize = 100_000;

/// Why nothing was found.
#[derive(Debug, Error)]
pub enum ReadingsError {
    /// What is open cannot be read, or does not fit to the experiments.
    #[error(transparent)]
    Scenario(#[from] Error),
    /// The runs could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is too much to search.
    #[error("{0} sets of what concerns several experiments; a search has at most {MOST_SETS}")]
    Many(usize),
}

/// A set of values, as their numbers: one for everything that is open.
type Set = Vec<usize>;

/// What is searched.
pub struct Search {
    open: Vec<Open>,
    /// Of each experiment that something open concerns, one for every set of what concerns it.
    experiments: Vec<Experiment>,
    /// Which experiment, and which values of what concerns it, each of them is.
    of: Vec<(String, Set)>,
}

impl Search {
    /// What the paper of a folder leaves open; without a directory that of a built-in one.
    ///
    /// # Errors
    /// A file cannot be read, something in it is wrong, or there are too many sets.
    pub fn load(paper: &str, directory: Option<&Path>) -> Result<Self, ReadingsError> {
        let papers = directory.map_or(Papers::BuiltIn, |directory| Papers::At(directory.to_owned()));
        let open = reading::open(&papers, paper)?;
        let shared = count(open.iter().filter(|open| is_shared(open)));
        if shared > MOST_SETS {
            return Err(ReadingsError::Many(shared));
        }
        let mut names: Vec<&String> = open.iter().flat_map(|open| &open.experiments).collect();
        names.sort();
        names.dedup();
        let (mut experiments, mut of) = (Vec::new(), Vec::new());
        for name in names {
            let concern = concern(&open, name);
            for set in sets(&concern) {
                let values: Vec<_> =
                    concern.iter().zip(&set).filter_map(|(open, value)| open.values.get(*value)).collect();
                experiments.push(reading::load(&papers, (paper, name), &values)?);
                of.push((name.clone(), set));
            }
        }
        Ok(Self { open, experiments, of })
    }

    /// How many sets there are.
    pub fn sets(&self) -> usize {
        count(&self.open)
    }

    /// Runs all that differs, and judges it.
    ///
    /// # Errors
    /// As those of [`run()`].
    pub fn run(self, options: &RunOptions<'_>) -> Result<Found, ReadingsError> {
        let results = run(&self.experiments, options)?;
        let judged: BTreeMap<(String, Set), Vec<Judgement>> = self
            .of
            .iter()
            .cloned()
            .zip(self.experiments.iter().zip(&results).map(|(experiment, results)| {
                let verdicts = Outcome::of(experiment, results).verdicts;
                verdicts.into_iter().filter(|one| !one.is_ours()).collect()
            }))
            .collect();
        let mut found = Found { open: self.open, counts: Vec::new(), judged };
        let shared: Vec<usize> =
            (0..found.open.len()).filter(|index| is_shared(&found.open[*index])).collect();
        let of_shared: Vec<&Open> = shared.iter().map(|index| &found.open[*index]).collect();
        found.counts = sets(&of_shared)
            .into_iter()
            .map(|values| {
                let mut set = vec![0; found.open.len()];
                shared.iter().zip(values).for_each(|(index, value)| set[*index] = value);
                found.complete(&mut set);
                (found.of_all(&set), set)
            })
            .collect();
        // Of equals the first: values stand in the order in which they are preferred.
        found.counts.sort_by(|(one, first), (other, second)| other.cmp(one).then(first.cmp(second)));
        Ok(found)
    }
}

/// What was found.
pub struct Found {
    open: Vec<Open>,
    /// How many relations reproduce in each set of what concerns several experiments, the best first.
    counts: Vec<(usize, Set)>,
    judged: BTreeMap<(String, Set), Vec<Judgement>>,
}

impl Found {
    /// A table of all sets, the best first: a value for all that is open, how many relations reproduce, and
    /// how many of each experiment do.
    pub fn table(&self) -> String {
        let names = self.experiments();
        let open: Vec<String> = self.open.iter().map(|open| quoted(&open.name)).collect();
        let mut text = format!("{},reproduce,{}\n", open.join(","), names.join(","));
        for (count, set) in &self.counts {
            let labels: Vec<String> = self.labels(set).map(|(_, label)| quoted(label)).collect();
            let each: Vec<String> =
                names.iter().map(|name| reproduced(self.of_one(name, set)).to_string()).collect();
            let _ = writeln!(text, "{},{count},{}", labels.join(","), each.join(","));
        }
        text
    }

    /// A table of every relation in every set of what concerns its experiment.
    pub fn relations(&self) -> String {
        let mut text = String::from("experiment,set,relation,measured,low,high,expected,verdict\n");
        for ((name, set), verdicts) in &self.judged {
            let concern = concern(&self.open, name);
            let values = concern.iter().zip(set).filter_map(|(open, value)| open.values.get(*value));
            let values: Vec<&str> = values.map(|value| value.label.as_str()).collect();
            for one in verdicts {
                let [mean, low, high] = one.measured.map_or([f64::NAN; 3], |measured| {
                    let half = measured.half_width.unwrap_or(f64::NAN);
                    [measured.mean, measured.mean - half, measured.mean + half]
                });
                let (set, relation) = (quoted(&values.join("; ")), quoted(&one.relation));
                let (expected, verdict) = (quoted(&one.expected), one.verdict);
                let _ = writeln!(text, "{name},{set},{relation},{mean},{low},{high},{expected},{verdict}");
            }
        }
        text
    }

    /// The best sets and how many there are of all, in lines.
    pub fn best(&self, most: usize) -> String {
        let mut text = String::new();
        for (count, set) in self.counts.iter().take(most) {
            let labels: Vec<String> =
                self.labels(set).map(|(name, label)| format!("{name}: {label}")).collect();
            let _ = writeln!(text, "{count}  {}", labels.join(", "));
        }
        let all = self.counts.first().map_or(0, |(_, set)| {
            self.experiments().iter().map(|name| self.of_one(name, set).len()).sum::<usize>()
        });
        let _ = writeln!(text, "of {all} relations, in {} sets", count(&self.open));
        text
    }

    fn experiments(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.judged.keys().map(|(name, _)| name.as_str()).collect();
        names.dedup();
        names
    }

    fn labels<'a>(&'a self, set: &'a Set) -> impl Iterator<Item = (&'a str, &'a str)> {
        let values = self.open.iter().zip(set);
        values.filter_map(|(open, value)| Some((open.name.as_str(), open.values.get(*value)?.label.as_str())))
    }

    fn of_one(&self, name: &str, set: &Set) -> &[Judgement] {
        let values = self.open.iter().zip(set);
        let concerns = |open: &Open| open.experiments.iter().any(|one| one == name);
        let own: Set = values.filter(|(open, _)| concerns(open)).map(|(_, value)| *value).collect();
        self.judged.get(&(name.to_owned(), own)).map_or(&[], Vec::as_slice)
    }

    /// Puts the best values of what concerns one experiment alone into a set.
    fn complete(&self, set: &mut Set) {
        for name in self.experiments() {
            let own: Vec<usize> = (0..self.open.len())
                .filter(|index| self.open[*index].experiments.iter().all(|one| one == name))
                .collect();
            let of_own: Vec<&Open> = own.iter().map(|index| &self.open[*index]).collect();
            let with = |values: &Set| {
                let mut set = set.clone();
                own.iter().zip(values).for_each(|(index, value)| set[*index] = *value);
                set
            };
            // The last of equals is taken: of them the first is wanted.
            let best = sets(&of_own).into_iter().rev().map(|values| with(&values));
            if let Some(best) = best.max_by_key(|set| reproduced(self.of_one(name, set))) {
                *set = best;
            }
        }
    }

    fn of_all(&self, set: &Set) -> usize {
        self.experiments().iter().map(|name| reproduced(self.of_one(name, set))).sum()
    }
}

fn reproduced(verdicts: &[Judgement]) -> usize {
    verdicts.iter().filter(|one| one.verdict == Verdict::Reproduces).count()
}

/// Whether something open concerns several experiments.
fn is_shared(open: &Open) -> bool {
    open.experiments.len() > 1
}

/// How many sets of values there are.
fn count<'a>(open: impl IntoIterator<Item = &'a Open>) -> usize {
    let counts = open.into_iter().map(|open| open.values.len());
    counts.fold(1, usize::saturating_mul)
}

/// What is open in an experiment.
fn concern<'a>(open: &'a [Open], experiment: &str) -> Vec<&'a Open> {
    open.iter().filter(|open| open.experiments.iter().any(|one| one == experiment)).collect()
}

/// Every set of values, the last one's value changing first.
fn sets(open: &[&Open]) -> Vec<Set> {
    open.iter().fold(vec![Vec::new()], |sets, open| {
        let longer = |set: Set| (0..open.values.len()).map(move |value| [&set[..], &[value]].concat());
        sets.into_iter().flat_map(longer).collect()
    })
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}
