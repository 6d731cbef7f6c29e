//! What a paper leaves open, with plausible values of it: `readings.toml` in the paper's folder.

use std::path::Path;

use anabranch_sim::scenario::{Error, Fault, Item, Table, read_document};

use super::names::{self, text};
use super::runs::{Changes, Named, Runs};
use super::written::{self, Computed};
use crate::experiment::Experiment;
use crate::papers::Papers;
use crate::scheme::Scheme;

/// What a paper's folder calls it.
pub(crate) const FILE: &str = "readings.toml";

/// What a paper leaves open, and how it is searched.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    /// All that is open.
    pub(crate) open: Vec<Open>,
    /// Whether each value is searched beside the first ones of the rest, and not every set.
    pub(crate) one_by_one: bool,
    /// What is searched together beside that: names of what is open, each with the label of its value.
    pub(crate) together: Vec<Vec<(String, String)>>,
}

impl Readings {
    /// Whether a text is in the label of some value, or in the name of what is open.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.open.iter().any(|open| open.values.iter().skip(1).any(|value| open.is_meant(value, text)))
    }

    /// Leaves out every value, but for the first ones, that none of the texts means; without a text nothing.
    pub(crate) fn keep(&mut self, only: &[String]) {
        for open in self.open.iter_mut().filter(|_| !only.is_empty()) {
            let values = std::mem::take(&mut open.values);
            let is_kept = |value: &Plausible| only.iter().any(|text| open.is_meant(value, text));
            let kept = values.into_iter().enumerate().filter(|(index, value)| *index == 0 || is_kept(value));
            open.values = kept.map(|(_, value)| value).collect();
        }
    }
}

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

impl Open {
    fn is_meant(&self, value: &Plausible, text: &str) -> bool {
        self.name.contains(text) || value.label.contains(text)
    }
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
    /// What it computes there from the point, after that.
    computed: Vec<Computed>,
}

/// The papers that leave something open, by their folders.
pub(crate) fn papers(papers: &Papers) -> Vec<String> {
    let mut names: Vec<String> =
        papers.folders().unwrap_or_default().into_iter().map(|(paper, _)| paper).collect();
    names.dedup();
    names.retain(|paper| papers.read(&Path::new(paper).join(FILE)).is_ok());
    names
}

/// What the paper of a folder leaves open.
///
/// # Errors
/// The file cannot be read, or something in it is wrong.
pub(crate) fn open(papers: &Papers, paper: &str) -> Result<Readings, Error> {
    let path = Path::new(paper).join(FILE);
    let file = papers.name(&path);
    let text = papers.read(&path).map_err(|error| Error::Read { file: file.clone(), error })?;
    read_document(&file, &text, "readings", |mut table| {
        let mut open: Vec<Open> = Vec::new();
        for own in table.tables("open") {
            open.extend(table.kept(read(own)));
        }
        table.item("open");
        let one_by_one = table.get("one_by_one", Item::flag).unwrap_or(false);
        let together = table.get("together", |item| {
            if !one_by_one {
                return Err(
                    item.fault("`together` is beside `one_by_one = true`: else every set is searched")
                );
            }
            item.each(|item| values(item, &open))
        });
        table.finish()?;
        Ok(Readings { open, one_by_one, together: together.unwrap_or_default() })
    })
}

/// Names of what is open, each with the label of one of its values.
fn values(item: Item<'_>, open: &[Open]) -> Result<Vec<(String, String)>, Fault> {
    let one = |entry: Item<'_>| {
        names::known(&entry, "[[open]]", entry.key, open.iter().map(|open| open.name.as_str()))?;
        let label = entry.text()?;
        let of_it = open.iter().filter(|open| open.name == entry.key).flat_map(|open| &open.values);
        names::known(&entry, "[[open.value]]", label, of_it.map(|value| value.label.as_str()))?;
        Ok((entry.key.to_owned(), label.to_owned()))
    };
    let table = item.table("values that are searched together")?;
    table.entries().map(one).collect()
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
        computed: table.get("computed", |item| written::computed(item, &["point"])).unwrap_or_default(),
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
            let changes =
                written::with_changes(std::mem::take(&mut run.changes), &part.computed, |_| run.point);
            run.changes = changes.map_err(|what| {
                let what = format_args!("{what} at {} with what `{FILE}` computes", run.point);
                Fault::new(run.at, what).locate(&file, &text)
            })?;
            if let Some((file, _)) = &part.scenario {
                run.scenario = Some((file.clone(), run.at));
            }
        }
    }
    let runs = Runs::load(papers, &folder, (&file, &text), document.runs)?;
    let source = super::paper(papers, paper)?;
    Ok(document.experiment.into_experiment(format!("{paper}-{name}"), source, runs))
}
