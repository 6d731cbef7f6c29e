//! The runs of a plan: its scenario with what schemes, settings and points change in it.

use std::path::{Path, PathBuf};

use anabranch_sim::model::Model;
use anabranch_sim::scenario::{self, Error, Fault, Files, Span};
use toml::Value;

use super::numbers::{Figure, Numbers, Series};
use crate::case::{Case, Measured};
use crate::experiment::Job;
use crate::papers::Papers;
use crate::scheme::Scheme;
use crate::sweep::set;

/// Some keys of a scenario and their values.
pub(super) type Changes = Vec<(String, Value)>;

/// Which runs there are, as the plan says.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) scenario: String,
    pub(super) scenario_at: Span,
    pub(super) runs: Vec<Run>,
    /// So many of them, from the first on, are made when the plan is read; a grid's other paths when they run.
    pub(super) checked: usize,
    pub(super) figures: Vec<Figure>,
    pub(super) series: Vec<Series>,
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) scheme: Scheme,
    pub(super) setting: String,
    pub(super) point: f64,
    pub(super) changes: Changes,
    /// Where the plan asks for it.
    pub(super) at: Span,
}

/// The runs of an experiment.
#[derive(Clone)]
pub(super) struct Runs {
    papers: Papers,
    directory: PathBuf,
    /// The plan's name and text, where faults are told.
    plan: (String, String),
    scenario: toml::Table,
    written: Written,
}

impl Runs {
    /// Reads the scenario, and makes the models of the runs that are checked, so that what is wrong is known.
    pub(super) fn load(
        papers: &Papers,
        folder: &Path,
        plan: (&str, &str),
        written: Written,
    ) -> Result<Self, Error> {
        let path = folder.join(&written.scenario);
        let text = papers.read(&path).map_err(|error| {
            let message = format_args!("cannot read the scenario '{}': {error}", written.scenario);
            Fault::new(written.scenario_at, message).locate(plan.0, plan.1)
        })?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let runs = Self {
            papers: papers.clone(),
            directory,
            plan: (plan.0.into(), plan.1.into()),
            scenario: text.parse().unwrap_or_default(),
            written,
        };
        // It has to be right by itself, so that what is wrong later is the plan's.
        scenario::parse(&papers.name(&path), &text, None, &mut runs.files())?;
        for run in runs.cases().take(runs.written.checked) {
            runs.job(run, 1)?;
        }
        Ok(runs)
    }

    /// The cases that run.
    pub(super) fn cases(&self) -> impl Iterator<Item = &Run> {
        self.written.runs.iter()
    }

    /// The runs of a seed.
    pub(super) fn jobs(&self, seed: u64) -> Result<Vec<Job>, Error> {
        self.written.runs.iter().map(|run| self.job(run, seed)).collect()
    }

    fn job(&self, run: &Run, seed: u64) -> Result<Job, Error> {
        let model = self.model(run, seed)?;
        let Written { figures, series, .. } = &self.written;
        let numbers = Numbers::bind(figures, series, &model, run.point)
            .map_err(|fault| fault.locate(&self.plan.0, &self.plan.1))?;
        Ok(Job {
            case: Case { setting: run.setting.clone(), ..Case::new(run.scheme, run.point) },
            models: vec![model],
            decisions: &[],
            measure: Box::new(move |recordings| {
                recordings.first().map_or_else(Measured::default, |recording| numbers.of(recording))
            }),
        })
    }

    fn model(&self, run: &Run, seed: u64) -> Result<Model, Error> {
        let mut document = self.scenario.clone();
        for (key, value) in &run.changes {
            set(&mut document, key, value.clone())
                .map_err(|what| Fault::new(run.at, what).locate(&self.plan.0, &self.plan.1))?;
        }
        let model = scenario::parse("scenario", &document.to_string(), Some(seed), &mut self.files());
        model.map_err(|error| self.blame(error, run))
    }

    /// What is wrong with a changed scenario is told where the plan changes it: the text that was read is
    /// nobody's file.
    fn blame(&self, error: Error, run: &Run) -> Error {
        let Error::Wrong(mistakes) = error else { return error };
        let faults = scenario::Faults::default();
        for wrong in &mistakes.told {
            let fault = Fault::new(run.at, format_args!("with what this changes: {}", wrong.message));
            faults.add(wrong.help.iter().fold(fault, |fault, help| fault.help(help)));
        }
        faults.locate(&self.plan.0, &self.plan.1)
    }

    fn files(&self) -> Beside<'_> {
        Beside(self)
    }
}

/// The files beside the scenario.
struct Beside<'a>(&'a Runs);

impl Files for Beside<'_> {
    fn read(&mut self, name: &str) -> std::io::Result<String> {
        self.0.papers.read(&self.0.directory.join(name))
    }
}
