//! Which values of what a paper leaves open reproduce most of its own relations.
//!
//! A *set* has a value for everything that `readings.toml` in the paper's folder calls open. Of each set the
//! paper's relations are counted that reproduce; the best one can be the paper's baseline. Every set is
//! searched, or, where the file says so, each value alone and some of them together. What concerns one
//! experiment alone changes nothing in others: where every set is searched, the best value of it is looked
//! for in every set of the rest.

mod found;
mod sets;

use std::path::Path;

use anabranch_sim::scenario::Error;
use thiserror::Error;

pub use self::found::Found;
use self::sets::Set;
use crate::experiment::Experiment;
use crate::outcome::Outcome;
use crate::papers::Papers;
use crate::plan::reading::{self, Open, Readings};
use crate::run::{RunError, RunOptions, run};

/// A search has no more sets.
const MOST_SETS: usize = 100_000;

/// Why nothing was found.
#[derive(Debug, Error)]
pub enum ReadingsError {
    /// The paper leaves nothing open, or there is none of this name.
    #[error("'{paper}' has no {}; papers that have: {}", reading::FILE, listed(known))]
    Unknown {
        /// What was asked for.
        paper: String,
        /// The papers that leave something open.
        known: Vec<String>,
    },
    /// What is open cannot be read, or does not fit to the experiments.
    #[error(transparent)]
    Scenario(#[from] Error),
    /// The runs could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is too much to search.
    #[error("{0} sets of what concerns several experiments; a search has at most {MOST_SETS}")]
    Many(usize),
    /// Only some values are wanted, and there are none such.
    #[error("no value of what '{paper}' leaves open has '{text}' in its name or label: {}", names.join("; "))]
    NoValue {
        /// The paper.
        paper: String,
        /// What is wanted.
        text: String,
        /// What there is.
        names: Vec<String>,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// What is searched.
pub struct Search {
    readings: Readings,
    /// The sets, where not every one is searched.
    listed: Option<Vec<Set>>,
    /// Of each experiment that something open concerns, one for every set of what concerns it.
    experiments: Vec<Experiment>,
    /// Which experiment, and which values of what concerns it, each of them is.
    of: Vec<(String, Set)>,
}

impl Search {
    /// What the paper of a folder leaves open; without a directory that of a built-in one. With texts in
    /// `only`, only the values that have one of them in their label or in the name of what is open.
    ///
    /// # Errors
    /// A file cannot be read, something in it is wrong, or there are too many sets or none.
    pub fn load(paper: &str, directory: Option<&Path>, only: &[String]) -> Result<Self, ReadingsError> {
        let papers = directory.map_or(Papers::BuiltIn, |directory| Papers::At(directory.to_owned()));
        let known = reading::papers(&papers);
        if !known.iter().any(|known| known == paper) {
            return Err(ReadingsError::Unknown { paper: paper.into(), known });
        }
        let mut readings = reading::open(&papers, paper)?;
        if let Some(text) = only.iter().find(|text| !readings.has(text)) {
            let names = readings.open.iter().map(|open| open.name.clone()).collect();
            return Err(ReadingsError::NoValue { paper: paper.into(), text: text.clone(), names });
        }
        readings.keep(only);
        let open = &readings.open;
        let shared = sets::count(open.iter().filter(|open| sets::is_shared(open)));
        let listed = readings.one_by_one.then(|| sets::one_by_one(&readings));
        if listed.is_none() && shared > MOST_SETS {
            return Err(ReadingsError::Many(shared));
        }
        // What is not asked for says nothing of experiments that nothing else concerns.
        let is_searched = |open: &&Open| only.is_empty() || open.values.len() > 1;
        let mut names: Vec<&String> =
            open.iter().filter(is_searched).flat_map(|open| &open.experiments).collect();
        names.sort();
        names.dedup();
        let (mut experiments, mut of) = (Vec::new(), Vec::new());
        for name in names {
            let concern = sets::concern(open, name);
            let mut own = listed.as_ref().map_or_else(
                || sets::every(open, &concern),
                |listed| listed.iter().map(|set| sets::part(set, &concern)).collect(),
            );
            own.sort();
            own.dedup();
            for set in own {
                let values = concern.iter().zip(&set);
                let values: Vec<_> =
                    values.filter_map(|(open, value)| readings.open[*open].values.get(*value)).collect();
                experiments.push(reading::load(&papers, (paper, name), &values)?);
                of.push((name.clone(), set));
            }
        }
        Ok(Self { listed, experiments, of, readings })
    }

    /// How many sets there are.
    pub fn sets(&self) -> usize {
        self.listed.as_ref().map_or_else(|| sets::count(&self.readings.open), Vec::len)
    }

    /// Whether each value is searched alone, so that all sets are worth telling.
    pub fn is_one_by_one(&self) -> bool {
        self.listed.is_some()
    }

    /// Runs all that differs, and judges it.
    ///
    /// # Errors
    /// As those of [`run()`].
    pub fn run(self, options: &RunOptions<'_>) -> Result<Found, ReadingsError> {
        let results = run(&self.experiments, options)?;
        let verdicts = self.experiments.iter().zip(&results).map(|(experiment, results)| {
            let verdicts = Outcome::of(experiment, results).verdicts;
            verdicts.into_iter().filter(|one| !one.is_ours()).collect()
        });
        let judged = self.of.into_iter().zip(verdicts).collect();
        let open = self.readings.open;
        Ok(match self.listed {
            Some(listed) => Found::of_listed(open, listed, judged),
            None => Found::of_every(open, judged),
        })
    }
}
