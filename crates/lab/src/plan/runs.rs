//! The runs of a plan: its scenario with what schemes, settings and points change in it.

use std::path::{Path, PathBuf};

use anabranch_sim::model::Model;
use anabranch_sim::scenario::{self, Error, Fault, Files, Span};
use exmex::{Express, FlatEx};
use toml::Value;

use super::measure::{self, Bound};
use super::quantity::Quantity;
use super::take::Take;
use crate::case::{Case, Measured};
use crate::experiment::Job;
use crate::papers::Papers;
use crate::scheme::Scheme;
use crate::simulate::Recording;
use crate::sweep::set;

/// Some keys of a scenario and their values.
pub(super) type Changes = Vec<(String, Value)>;

/// Which runs there are, as the plan says.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) scenario: String,
    pub(super) scenario_at: Span,
    pub(super) runs: Vec<Run>,
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

/// A number of a run.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) how: How,
}

/// How a number is made.
#[derive(Clone, Debug)]
pub(super) enum How {
    /// Measured.
    Measured(Measurement),
    /// Computed from figures before it, by their places, and the point (none).
    Computed { formula: Box<FlatEx<f64>>, variables: Vec<Option<usize>> },
}

/// A course of a run.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) measurement: Measurement,
    pub(super) along: Along,
}

/// What a course is along.
#[derive(Clone, Debug)]
pub(super) enum Along {
    /// Time, in bins of so many seconds.
    Time(f64),
    /// The length of bins: these many seconds, and what becomes of the values of all bins.
    Scales(Vec<f64>, Take),
}

/// A quantity of flows and links by their names.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    pub(super) quantity: Quantity,
    /// What the unit is in SI units.
    pub(super) unit: f64,
    pub(super) flows: Vec<String>,
    pub(super) links: Vec<String>,
    /// Flows that those are compared with.
    pub(super) others: Vec<String>,
    /// Whether it is the mean of the flows, each by itself.
    pub(super) each: bool,
    /// The seconds of bins, and what becomes of their values.
    pub(super) bins: Option<(f64, Take)>,
    pub(super) window: Option<(f64, f64)>,
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
    /// Reads the scenario, and makes every run's model once, so that what is wrong is known.
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
        runs.jobs(1)?;
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
        let locate = |fault: Fault| fault.locate(&self.plan.0, &self.plan.1);
        let bind = |measurement: &Measurement| measurement.bind(&model).map_err(locate);
        let mut figures = Vec::new();
        for figure in &self.written.figures {
            let bound = match &figure.how {
                How::Measured(measurement) => Some((bind(measurement)?, measurement.unit)),
                How::Computed { .. } => None,
            };
            figures.push((figure.clone(), bound));
        }
        let mut series = Vec::new();
        for one in &self.written.series {
            series.push((one.clone(), bind(&one.measurement)?));
        }
        let point = run.point;
        Ok(Job {
            case: Case { setting: run.setting.clone(), ..Case::new(run.scheme, run.point) },
            models: vec![model],
            decisions: &[],
            measure: Box::new(move |recordings| {
                recordings
                    .first()
                    .map_or_else(Measured::default, |recording| measure(recording, point, &figures, &series))
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

impl Measurement {
    fn bind(&self, model: &Model) -> Result<Bound, Fault> {
        let known = model.flows.iter().map(|flow| &*flow.name);
        let flows = named(self.at, "flow", &self.flows, known.clone())?;
        let others = named(self.at, "flow", &self.others, known)?;
        let links = named(self.at, "link", &self.links, model.links.iter().map(|link| &*link.name))?;
        let weights = flows.iter().map(|flow| measure::weight(model, *flow)).collect();
        Ok(Bound {
            quantity: self.quantity,
            flows,
            links,
            others,
            weights,
            each: self.each,
            bins: self.bins,
            window: self.window,
        })
    }
}

/// The numbers of those with these names; one that ends with `*` means all that begin so.
fn named<'a>(
    at: Span,
    what: &str,
    names: &[String],
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<Vec<usize>, Fault> {
    let mut found = Vec::new();
    for name in names {
        let before = found.len();
        let means = |known: &str| match name.strip_suffix('*') {
            Some(beginning) => known.starts_with(beginning),
            None => known == name,
        };
        found.extend(known.clone().enumerate().filter(|(_, known)| means(known)).map(|(index, _)| index));
        if found.len() == before {
            let known: Vec<&str> = known.take(20).collect();
            let fault = Fault::new(at, format_args!("the scenario has no {what} '{name}'"));
            return Err(fault.help(format_args!("there are: {}", known.join(", "))));
        }
    }
    Ok(found)
}

fn measure(
    run: &Recording,
    point: f64,
    figures: &[(Figure, Option<(Bound, f64)>)],
    series: &[(Series, Bound)],
) -> Measured {
    let mut values: Vec<f64> = Vec::new();
    for (figure, bound) in figures {
        let value = match (&figure.how, bound) {
            (How::Computed { formula, variables }, _) => {
                let variable = |index: &Option<usize>| index.map_or(point, |index| values[index]);
                let variables: Vec<f64> = variables.iter().map(variable).collect();
                formula.eval(&variables).unwrap_or(f64::NAN)
            }
            (How::Measured(_), Some((bound, unit))) => bound.of(run) / unit,
            (How::Measured(_), None) => f64::NAN,
        };
        values.push(value);
    }
    let named = figures.iter().zip(values);
    let measured = named.fold(Measured::default(), |measured, ((figure, _), value)| {
        measured.figure(&figure.name, value, &figure.unit)
    });
    series.iter().fold(measured, |measured, (series, bound)| {
        let course = match &series.along {
            Along::Time(bin) => bound.course(run, *bin),
            Along::Scales(scales, take) => bound.over_scales(run, scales, *take),
        };
        measured
            .series(&series.name, course.into_iter().map(|(at, value)| (at, value / series.measurement.unit)))
    })
}
