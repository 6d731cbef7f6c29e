//! What a paper leaves open, with plausible values of it: `readings.toml` in the paper's folder.

use std::path::Path;

use anabranch_sim::scenario::{Error, Fault, Table, read_document};

use super::names::{self, text};
use super::runs::{Changes, Named, Runs};
use super::written;
use crate::experiment::Experiment;
use crate::papers::Papers;
use crate::scheme::Scheme;

/// What a paper's folder calls it.
const FILE: &str = "readings.toml";

/// Something that a paper leaves open.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    /// Its name.
    pub(crate) name: String,
    /// The experiments that it concerns, by their folders.
    pub(crate) experiments: Vec<String>,
    /// Its plausible values.
    pub(crate) values: Vec<Plausible>,
}

/// A plausible value of something that is open.
#[derive(Clone, Debug)]
pub(crate) struct Plausible {
    /// What it is called.
    pub(crate) label: String,
    /// What it is in runs.
    parts: Vec<Part>,
}

/// What a value is in some runs.
#[derive(Clone, Debug)]
struct Part {
    /// The experiments that it concerns; none: all.
    experiments: Vec<String>,
    /// The schemes that it concerns; none: all.
    schemes: Vec<Scheme>,
    /// The scenario in the place of the plan's.
    scenario: Option<Named>,
    /// What it changes in the scenario, after what the plan does.
    changes: Changes,
}

/// What the paper of a folder leaves open.
///
/// # Errors
/// The file cannot be read, or something in it is wrong.
pub(crate) fn open(papers: &Papers, paper: &str) -> Result<Vec<Open>, Error> {
    let path = Path::new(paper).join(FILE);
    let file = papers.name(&path);
    let text = papers.read(&path).map_err(|error| Error::Read { file: file.clone(), error })?;
    read_document(&file, &text, "readings", |mut table| {
        let mut open: Vec<Open> = Vec::new();
        for own in table.tables("open") {
            open.extend(table.kept(read(own)));
        }
        table.item("open");
        table.finish()?;
        Ok(open)
    })
}

fn read(mut own: Table<'_>) -> Result<Open, Fault> {
    let at = own.span();
    let name = own.need("name", text);
    let experiments = own.need("experiments", |item| item.each(text));
    let mut values = Vec::new();
    for mut inner in own.tables("value") {
        let label = inner.need("label", text);
        let mut parts = vec![part(&mut inner)];
        for mut of_some in inner.tables("part") {
            let read = part(&mut of_some);
            parts.extend(inner.kept(of_some.finish().map(|()| read)));
        }
        inner.item("part");
        let value = inner.finish().and_then(|()| Ok(Plausible { label: label?, parts }));
        values.extend(own.kept(value));
    }
    own.item("value");
    own.finish()?;
    if values.is_empty() {
        return Err(Fault::new(at, "what is open has at least one `value`"));
    }
    Ok(Open { name: name?, experiments: experiments?, values })
}

fn part(table: &mut Table<'_>) -> Part {
    Part {
        experiments: table.get("experiments", |item| item.each(text)).unwrap_or_default(),
        schemes: table.get("schemes", |item| item.each(names::scheme)).unwrap_or_default(),
        scenario: table.get("scenario", names::file),
        changes: table.get("set", written::changes).unwrap_or_default(),
    }
}

impl Part {
    fn concerns(&self, experiment: &str, scheme: Scheme) -> bool {
        (self.experiments.is_empty() || self.experiments.iter().any(|one| one == experiment))
            && (self.schemes.is_empty() || self.schemes.contains(&scheme))
    }
}

/// The experiment of a folder with a value of everything that the paper leaves open there. Only runs are
/// made that the paper's relations are about.
///
/// # Errors
/// As those of [`super::load`].
pub(crate) fn load(
    papers: &Papers,
    (paper, name): (&str, &str),
    values: &[&Plausible],
) -> Result<Experiment, Error> {
    let folder = Path::new(paper).join(name);
    let (file, text, mut document) = super::read(papers, &folder)?;
    let planned = &mut document.runs;
    planned.runs = document.experiment.judged_runs(&planned.runs);
    planned.checked = planned.runs.len();
    planned.random = None;
    for run in &mut planned.runs {
        let parts = values.iter().flat_map(|value| &value.parts);
        for part in parts.filter(|part| part.concerns(name, run.scheme)) {
            run.changes.extend(part.changes.iter().cloned());
            if let Some((file, _)) = &part.scenario {
                run.scenario = Some((file.clone(), run.at));
            }
        }
    }
    let runs = Runs::load(papers, &folder, (&file, &text), document.runs)?;
    let source = super::paper(papers, paper)?;
    Ok(document.experiment.into_experiment(format!("{paper}-{name}"), source, runs))
}
