//! The plan as a document: what runs, what is measured, what is judged and shown.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Table};

use super::figures;
use super::grid::{self, Breakdown, Grid};
use super::judged::{self, Judged};
use super::names::{self, text};
use super::numbers::{Figure, Series};
use super::published::Published;
use super::runs::{Run, Runs, Written};
use super::shown::{self, Shown};
use super::term::{Known, Term};
use super::written;
use crate::experiment::{Experiment, Jobs};
use crate::paper::Paper;

/// What is read one after the other.
const STEPS: [&str; 11] =
    ["scheme", "run", "axis", "grid", "figure", "series", "value", "relation", "plot", "table", "breakdown"];

/// An interval that so many seeds do not decide is told as it is.
const MOST_SEEDS: u64 = 100;

/// A plan that was read.
pub(super) struct Document {
    pub(super) runs: Written,
    pub(super) experiment: Described,
}

/// What an experiment is, its runs apart.
pub(super) struct Described {
    title: String,
    place: String,
    claim: String,
    assumed: Vec<String>,
    least_seeds: u64,
    relations: Vec<Judged>,
    shown: Shown,
    breakdowns: Vec<Breakdown>,
    grid: Option<Arc<Grid>>,
}

impl Described {
    /// Those of the runs without which a relation of the paper could not be measured.
    pub(super) fn judged_runs(&self, runs: &[Run]) -> Vec<Run> {
        let of_paper: Vec<&Judged> =
            self.relations.iter().filter(|relation| !relation.is_ours() && !relation.is_real()).collect();
        let is_needed = |index: &usize| {
            let others: Vec<Run> = [&runs[..*index], &runs[*index + 1..]].concat();
            of_paper.iter().any(|relation| !relation.is_measured_by(&others))
        };
        (0..runs.len()).filter(is_needed).map(|index| runs[index].clone()).collect()
    }

    pub(super) fn into_experiment(self, id: String, paper: Paper, runs: Runs) -> Experiment {
        let (plots, mut tables) = self.shown.of(runs.cases());
        tables.extend(self.breakdowns.into_iter().map(Breakdown::into_table));
        let (real, simulated): (Vec<Judged>, Vec<Judged>) =
            self.relations.into_iter().partition(Judged::is_real);
        let of = |relations: Vec<Judged>| relations.into_iter().map(Judged::into_relation).collect();
        let is_random = runs.is_random();
        let jobs = Jobs::reading(move |seed| runs.jobs(seed));
        Experiment {
            id,
            title: self.title,
            paper,
            place: self.place,
            claim: self.claim,
            assumed: self.assumed,
            random: is_random,
            least_seeds: self.least_seeds,
            jobs: match self.grid {
                Some(grid) => jobs.with_quick(grid.quick as f64),
                None => jobs,
            },
            relations: of(simulated),
            real_relations: of(real),
            plots,
            tables,
        }
    }
}

/// Reads a plan.
pub(super) fn read(mut table: Table<'_>, published: &Published) -> Result<Document, Fault> {
    let title = table.need("title", text);
    let place = table.need("place", text);
    let claim = table.need("claim", text);
    let assumed = table.get("assumed", |item| item.each(text)).unwrap_or_default();
    let random = table.get("random", |item| Ok((item.flag()?, item.span)));
    let least_seeds = table.get("seeds", |item| item.whole(1..=MOST_SEEDS));
    let scenario = table.need("scenario", names::file);
    let steps = read_steps(&mut table, published);
    // Read or not, they are keys.
    for key in STEPS {
        table.item(key);
    }
    table.finish()?;
    let Steps { runs, checked, grid, figures, series, relations, shown, breakdowns } = steps?;
    Ok(Document {
        runs: Written { scenario: scenario?, runs, checked, figures, series, random },
        experiment: Described {
            title: title?,
            place: place?,
            claim: claim?,
            assumed,
            least_seeds: least_seeds.unwrap_or(1),
            relations,
            shown,
            breakdowns,
            grid,
        },
    })
}

/// What the steps gave.
struct Steps {
    runs: Vec<Run>,
    checked: usize,
    grid: Option<Arc<Grid>>,
    figures: Vec<Figure>,
    series: Vec<Series>,
    relations: Vec<Judged>,
    shown: Shown,
    breakdowns: Vec<Breakdown>,
}

/// Reads what builds on what was read before; a step with mistakes is the last, as those after it would only
/// repeat them.
fn read_steps(table: &mut Table<'_>, published: &Published) -> Result<Steps, Fault> {
    let before = table.faults_so_far();
    let is_right = |table: &Table<'_>| match table.faults_so_far() == before {
        true => Ok(()),
        false => Err(Fault::TOLD),
    };
    let schemes = written::read_schemes(table);
    is_right(table)?;
    let mut runs = written::read_runs(table, &schemes);
    let (grid, on_paths) = grid::read(table, &schemes).unzip();
    let shown_runs = runs.clone();
    runs.extend(on_paths.into_iter().flatten());
    let checked = shown_runs.len() + schemes.len().min(runs.len() - shown_runs.len());
    is_right(table)?;
    let mut known = Known { settings: settings(&runs), ..Known::default() };
    let series = figures::read_series(table, &mut known);
    is_right(table)?;
    let figures = figures::read(table, &mut known);
    is_right(table)?;
    for mut own in table.tables("value") {
        let name = own.need("name", text);
        let term = Term::read(&mut own, &known);
        let read = own.finish().and_then(|()| Ok((name?, term?)));
        if let Some((name, term)) = table.kept(read) {
            known.values.insert(name, Arc::new(term));
        }
    }
    is_right(table)?;
    let relations = judged::read(table, &known, published, (&runs, grid.as_ref()));
    let shown = shown::read(table, &known, published, &shown_runs);
    let mut breakdowns = Vec::new();
    if let Some(grid) = &grid {
        for own in table.tables("breakdown") {
            breakdowns.extend(table.kept(Breakdown::read(own, grid, &known.figures)));
        }
    }
    is_right(table)?;
    Ok(Steps { runs, checked, grid, figures, series, relations, shown, breakdowns })
}

/// The settings that runs have, each once.
fn settings(runs: &[Run]) -> Vec<String> {
    let mut settings: Vec<String> = runs.iter().map(|run| run.setting.clone()).collect();
    settings.sort();
    settings.dedup();
    settings
}
