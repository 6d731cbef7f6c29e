//! What the runs of an experiment gave, and how relations, plots and tables read it.

use std::collections::BTreeMap;

use crate::case::{Case, Measured};
use crate::scheme::Scheme;
use crate::statistics::Estimate;

/// Setting, scheme and the bits of the point.
type Key = (String, &'static str, u64);

fn key(setting: &str, scheme: Scheme, point: f64) -> Key {
    // Adding zero makes one of the two zeros.
    (setting.into(), scheme.name, (point + 0.0).to_bits())
}

/// The results of an experiment.
#[derive(Debug, Default)]
pub struct Results {
    runs: BTreeMap<u64, BTreeMap<Key, (Case, Measured)>>,
}

impl Results {
    /// Adds what a run gave. `false` when that run was there already: two jobs of the experiment have the
    /// same case.
    #[must_use]
    pub fn add(&mut self, seed: u64, case: Case, measured: Measured) -> bool {
        let key = key(&case.setting, case.scheme, case.point);
        self.runs.entry(seed).or_default().insert(key, (case, measured)).is_none()
    }

    /// The seeds, in order.
    pub fn seeds(&self) -> impl Iterator<Item = u64> {
        self.runs.keys().copied()
    }

    /// Every run, by seed.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &Case, &Measured)> {
        self.runs
            .iter()
            .flat_map(|(seed, runs)| runs.values().map(|(case, measured)| (*seed, case, measured)))
    }

    /// The results of each seed.
    pub fn each_seed(&self) -> impl Iterator<Item = OneSeed<'_>> {
        self.runs.iter().map(move |(seed, runs)| OneSeed { seed: *seed, runs, all: &self.runs, setting: "" })
    }

    /// The values of the parameter for which a scheme ran, in order.
    pub(crate) fn points(&self, setting: &str, scheme: Scheme) -> Vec<f64> {
        let cases = self.runs().map(|(_, case, _)| case);
        let mut points: Vec<f64> = cases
            .filter(|case| (&*case.setting, case.scheme) == (setting, scheme))
            .map(|case| case.point)
            .collect();
        points.sort_by(f64::total_cmp);
        points.dedup();
        points
    }

    /// The estimate of a number over the seeds, and the seeds that do not have it.
    pub fn estimate(&self, value: impl Fn(OneSeed<'_>) -> Option<f64>) -> (Option<Estimate>, Vec<u64>) {
        let mut values = Vec::new();
        let mut missing = Vec::new();
        for seed in self.each_seed() {
            match value(seed).filter(|value| value.is_finite()) {
                Some(value) => values.push(value),
                None => missing.push(seed.seed),
            }
        }
        (Estimate::of(&values), missing)
    }
}

/// The results of one seed in one setting (the empty one unless said otherwise).
#[derive(Clone, Copy, Debug)]
pub struct OneSeed<'a> {
    seed: u64,
    runs: &'a BTreeMap<Key, (Case, Measured)>,
    all: &'a BTreeMap<u64, BTreeMap<Key, (Case, Measured)>>,
    setting: &'a str,
}

impl<'a> OneSeed<'a> {
    /// The same seed in another setting.
    #[must_use]
    pub fn setting(self, setting: &'a str) -> Self {
        Self { setting, ..self }
    }

    /// The same of every seed, this one included.
    pub(crate) fn every_seed(self) -> impl Iterator<Item = Self> {
        self.all.iter().map(move |(seed, runs)| Self { seed: *seed, runs, ..self })
    }

    /// Whether there is such a run.
    pub(crate) fn has_run(self, scheme: Scheme, point: f64) -> bool {
        self.run(scheme, point).is_some()
    }

    /// Whether it has no setting.
    pub fn is_plain(self) -> bool {
        self.setting.is_empty()
    }

    /// A figure of a run.
    pub fn figure(self, scheme: Scheme, point: f64, name: &str) -> Option<f64> {
        let figures = &self.run(scheme, point)?.figures;
        figures.iter().find(|(have, ..)| have == name).map(|(_, value, _)| *value)
    }

    /// A series of a run.
    pub fn series(self, scheme: Scheme, point: f64, name: &str) -> Option<&'a [(f64, f64)]> {
        let series = &self.run(scheme, point)?.series;
        series.iter().find(|(have, _)| have == name).map(|(_, points)| &**points)
    }

    fn run(self, scheme: Scheme, point: f64) -> Option<&'a Measured> {
        self.runs.get(&key(self.setting, scheme, point)).map(|(_, measured)| measured)
    }
}
