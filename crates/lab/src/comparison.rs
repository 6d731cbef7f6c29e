//! How far the simulation is from real programs, figure by figure.

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::experiment::Experiment;
use crate::real::Real;
use crate::results::Results;
use crate::statistics::Estimate;

/// The figures of real runs, beside those of the simulated runs that they stand for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How many times the real programs ran.
    pub seeds: usize,
    /// What makes it again.
    pub command: String,
    /// In what the real runs differ from the simulated ones.
    pub differs: Vec<String>,
    /// The figures.
    pub rows: Vec<Compared>,
}

/// A figure of a run, simulated and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The run.
    pub case: String,
    /// The figure.
    pub figure: String,
    /// Its unit; empty for a ratio or a count.
    pub unit: String,
    /// What the simulator gave; `None` where it has no such figure.
    pub simulated: Option<Estimate>,
    /// What the real programs gave.
    pub measured: Estimate,
}

impl Compared {
    /// The measured mean as a multiple of the simulated one; `None` where there is nothing to divide by.
    pub fn ratio(&self) -> Option<f64> {
        let simulated = self.simulated?.mean;
        (simulated != 0.0).then(|| self.measured.mean / simulated)
    }
}

impl Comparison {
    /// Puts the figures of real runs beside those of the simulated runs of the same case.
    pub fn of(experiment: &Experiment, real: &Real, simulated: &Results, measured: &Results) -> Self {
        let seeds = measured.seeds().count();
        let Some(first) = measured.seeds().next() else {
            return Self { seeds, command: String::new(), differs: real.differs.clone(), rows: Vec::new() };
        };
        // Zero stands for no parameter at all, unless other runs have one.
        let has_points = measured.runs().any(|(_, case, _)| case.point != 0.0);
        let label = |case: &Case| {
            let whole = case.to_string();
            let end = if has_points { "" } else { " at 0" };
            whole.strip_suffix(end).unwrap_or(&whole).to_owned()
        };
        let mut rows = Vec::new();
        for (_, case, figures) in measured.runs().filter(|(seed, ..)| *seed == first) {
            for (figure, _, unit) in &figures.figures {
                let Some(own) = estimate(measured, case, figure) else { continue };
                rows.push(Compared {
                    case: label(case),
                    figure: figure.clone(),
                    unit: unit.clone(),
                    simulated: estimate(simulated, case, figure),
                    measured: own,
                });
            }
        }
        let command = format!("anabranch lab run {} --real --real-seeds {seeds}", experiment.id);
        Self { seeds, command, differs: real.differs.clone(), rows }
    }
}

fn estimate(results: &Results, case: &Case, figure: &str) -> Option<Estimate> {
    results.estimate(|seed| seed.setting(&case.setting).figure(case.scheme, case.point, figure)).0
}
