//! The runs of a plan: its scenario with what schemes, settings and points change in it.

use std::collections::BTreeMap;
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
    pub(super) scenario: Named,
    pub(super) runs: Vec<Run>,
    /// So many of them, from the first on, are made when the plan is read; a grid's other paths when they
    /// run.
    pub(super) checked: usize,
    pub(super) figures: Vec<Figure>,
    pub(super) series: Vec<Series>,
    /// Whether seeds differ, where the plan says it.
    pub(super) random: Option<(bool, Span)>,
}

/// A scenario's file, and where the plan names it.
pub(super) type Named = (String, Span);

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Its own scenario; none: that of the plan.
    pub(super) scenario: Option<Named>,
    pub(super) scheme: Scheme,
    pub(super) setting: String,
    pub(super) point: f64,
    pub(super) changes: Changes,
    /// Where the plan asks for it.
    pub(super) at: Span,
}

impl Run {
    /// Which it is.
    pub(super) fn case(&self) -> Case {
        Case { setting: self.setting.clone(), ..Case::new(self.scheme, self.point) }
    }
}

/// The runs of an experiment.
#[derive(Clone)]
pub(super) struct Runs {
    papers: Papers,
    /// The plan's name and text, where faults are told.
    plan: (String, String),
    /// By the files' names: what is in each, and the directory of the files that it names.
    scenarios: BTreeMap<String, (toml::Table, PathBuf)>,
    written: Written,
    is_random: bool,
}

impl Runs {
    /// Reads the scenarios, and makes the models of the runs that are checked, so that what is wrong is
    /// known.
    pub(super) fn load(
        papers: &Papers,
        folder: &Path,
        plan: (&str, &str),
        written: Written,
    ) -> Result<Self, Error> {
        let mut runs = Self {
            papers: papers.clone(),
            plan: (plan.0.into(), plan.1.into()),
            scenarios: BTreeMap::new(),
            written,
            is_random: true,
        };
        let of_runs = runs.written.runs.iter().filter_map(|run| run.scenario.as_ref());
        let named: BTreeMap<String, Span> = of_runs.chain([&runs.written.scenario]).cloned().collect();
        for (name, at) in named {
            let scenario = runs.read(folder, &name, at)?;
            runs.scenarios.insert(name, scenario);
        }
        let mut draws = false;
        for run in runs.cases().take(runs.written.checked) {
            let job = runs.job(run, 1)?;
            draws = draws || job.models.iter().any(Model::draws) || runs.differs(run, &job)?;
        }
        runs.is_random = runs.chance(draws)?;
        Ok(runs)
    }

    /// Whether another seed makes another model of a run.
    fn differs(&self, run: &Run, job: &Job) -> Result<bool, Error> {
        let other = self.model(run, 2)?;
        let same_seed = |model: &Model| Model { run: model.run, ..other.clone() };
        Ok(job.models.iter().any(|model| *model != same_seed(model)))
    }

    /// Whether seeds differ: what the plan says, which has to be so, or else what is known. `draws`: a run
    /// that was checked draws something.
    fn chance(&self, draws: bool) -> Result<bool, Error> {
        let is_known = draws || self.written.checked >= self.written.runs.len();
        let fault = match self.written.random {
            Some((true, at)) if is_known && !draws => {
                let fault = Fault::new(at, "no run draws anything: all seeds are the same");
                fault.help(
                    "leave out `random`, or let the scenario draw: losses, starts between two times, \
                            `send_jitter`",
                )
            }
            Some((false, at)) if draws => {
                Fault::new(at, "runs draw by chance: one seed is not enough").help("leave out `random`")
            }
            Some((random, _)) => return Ok(random),
            None => return Ok(draws || !is_known),
        };
        Err(fault.locate(&self.plan.0, &self.plan.1))
    }

    /// Whether seeds differ.
    pub(super) fn is_random(&self) -> bool {
        self.is_random
    }

    /// Reads a scenario, which has to be right by itself, so that what is wrong later is the plan's.
    fn read(&self, folder: &Path, name: &str, at: Span) -> Result<(toml::Table, PathBuf), Error> {
        let path = folder.join(name);
        let text = self.papers.read(&path).map_err(|error| {
            let message = format_args!("cannot read the scenario '{name}': {error}");
            Fault::new(at, message).locate(&self.plan.0, &self.plan.1)
        })?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        scenario::parse(&self.papers.name(&path), &text, None, &mut Beside(&self.papers, &directory))?;
        Ok((text.parse().unwrap_or_default(), directory))
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
            case: run.case(),
            models: vec![model],
            decisions: &[],
            measure: Box::new(move |recordings| {
                recordings.first().map_or_else(Measured::default, |recording| numbers.of(recording))
            }),
        })
    }

    fn model(&self, run: &Run, seed: u64) -> Result<Model, Error> {
        let (name, _) = run.scenario.as_ref().unwrap_or(&self.written.scenario);
        let (mut document, directory) = self.scenarios.get(name).cloned().unwrap_or_default();
        for (key, value) in &run.changes {
            set(&mut document, key, value.clone())
                .map_err(|what| Fault::new(run.at, what).locate(&self.plan.0, &self.plan.1))?;
        }
        let mut files = Beside(&self.papers, &directory);
        let model = scenario::parse("scenario", &document.to_string(), Some(seed), &mut files);
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
}

/// The files in a directory of the papers.
struct Beside<'a>(&'a Papers, &'a Path);

impl Files for Beside<'_> {
    fn read(&mut self, name: &str) -> std::io::Result<String> {
        self.0.read(&self.1.join(name))
    }
}
