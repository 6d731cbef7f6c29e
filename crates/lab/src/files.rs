//! The files of a directory of results.
//!
//! `DIR/ID/` has an experiment's plots (SVG, PNG), the points of each plot and the values of each table
//! (CSV), every figure of every run (`runs.csv`; of real programs `measured.csv`) and the outcome
//! (`outcome.json`). From the outcomes of all experiments in `DIR` come `verdicts.json`, `report.html`, a
//! page for each paper, and all of them as `report.pdf`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use crate::experiment::{Experiment, Plot};
use crate::outcome::{FilledTable, Outcome, Verdict};
use crate::path_error::PathError;
use crate::plot::{self, Drawn};
use crate::real::Real;
use crate::report;
use crate::results::Results;
use crate::statistics::Estimate;

/// The name of an experiment's outcome in its directory.
const OUTCOME: &str = "outcome.json";

/// Why results cannot be written or read.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A file or directory cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// An outcome is not what this version writes.
    #[error("{}: {error}; was it written by another version? Run the experiment again", path.display())]
    Outcome {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// There are no results.
    #[error("{} has no results of experiments; 'anabranch lab run ID --out DIR' makes some", path.display())]
    Empty {
        /// Where they were looked for.
        path: PathBuf,
    },
    /// A figure cannot be drawn.
    #[error("cannot draw {}: {error}", path.display())]
    Picture {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: String,
    },
}

/// A relation's entry in `verdicts.json`.
#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    relation: String,
    published: &'a str,
    measured: Option<f64>,
    ci95: Option<[f64; 2]>,
    verdict: Verdict,
    cause: Option<&'a str>,
}

/// Writes what an experiment gave into `directory`, and beside it what real programs gave.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    directory: &Path,
    experiment: &Experiment,
    results: &Results,
    measured: Option<(&Real, &Results)>,
) -> Result<Outcome, FilesError> {
    let own = directory.join(&experiment.id);
    fs::create_dir_all(&own).map_err(PathError::writing(&own))?;
    let mut outcome = Outcome::of(experiment, results);
    if let Some((real, measured)) = measured {
        outcome = outcome.with_real(experiment, real, results, measured);
    }
    for plot in &experiment.plots {
        let mut curves = plot::drawn(plot, results);
        curves.extend(measured.into_iter().flat_map(|(_, measured)| plot::drawn_real(plot, measured)));
        let svg = plot::svg(plot, &curves);
        let path = own.join(format!("{}.png", plot.id));
        let png = plot::png(&svg).map_err(|error| FilesError::Picture { path: path.clone(), error })?;
        store(&path, png)?;
        store(&own.join(format!("{}.svg", plot.id)), svg)?;
        store(&own.join(format!("{}.csv", plot.id)), curves_csv(plot, &curves))?;
    }
    for table in &outcome.tables {
        store(&own.join(format!("{}.csv", table.id)), table_csv(table))?;
    }
    store(&own.join("runs.csv"), runs_csv(results))?;
    if let Some((_, measured)) = measured {
        store(&own.join("measured.csv"), runs_csv(measured))?;
    }
    store_json(&own.join(OUTCOME), &outcome)?;
    Ok(outcome)
}

/// Writes `verdicts.json`, `report.html`, the papers' pages and `report.pdf` for all experiments that
/// `directory` has results of, and returns their outcomes.
///
/// # Errors
/// There are none, or a file cannot be read or written.
pub fn bind(directory: &Path) -> Result<Vec<Outcome>, FilesError> {
    let read = PathError::reading(directory);
    let mut outcomes = Vec::new();
    for entry in fs::read_dir(directory).map_err(&read)? {
        let path = entry.map_err(&read)?.path().join(OUTCOME);
        let outcome = match fs::read(&path) {
            Ok(outcome) => outcome,
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                continue;
            }
            Err(error) => return Err(PathError::reading(&path)(error).into()),
        };
        let outcome: Outcome =
            serde_json::from_slice(&outcome).map_err(|error| FilesError::Outcome { path, error })?;
        outcomes.push(outcome);
    }
    if outcomes.is_empty() {
        return Err(FilesError::Empty { path: directory.into() });
    }
    outcomes.sort_by(|one, other| (&one.paper, &one.id).cmp(&(&other.paper, &other.id)));
    store_json(&directory.join("verdicts.json"), &entries(&outcomes))?;
    let picture = |outcome: &Outcome, plot: &str| {
        let path = directory.join(&outcome.id).join(format!("{plot}.svg"));
        fs::read_to_string(&path).map_err(PathError::reading(&path))
    };
    let chapters = report::chapters(&outcomes, picture)?;
    for chapter in &chapters {
        store(&directory.join(report::file(&chapter.name)), report::page(chapter))?;
    }
    let path = directory.join("report.pdf");
    let pdf = report::pdf(&chapters).map_err(|error| FilesError::Picture { path: path.clone(), error })?;
    store(&path, pdf)?;
    Ok(outcomes)
}

fn entries(outcomes: &[Outcome]) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for outcome in outcomes {
        entries.extend(outcome.verdicts.iter().map(|judgement| Entry {
            id: &outcome.id,
            relation: judgement.in_words(),
            published: &judgement.published,
            measured: judgement.measured.map(|estimate| estimate.mean),
            ci95: judgement.measured.and_then(|estimate| estimate.interval()),
            verdict: judgement.verdict,
            cause: judgement.cause.as_deref(),
        }));
    }
    entries
}

fn curves_csv(plot: &Plot, curves: &[Drawn]) -> Vec<u8> {
    let heads = ["curve", &plot::label(&plot.x), &plot::label(&plot.y), "ci95_low", "ci95_high", "seeds"];
    let row = |curve: &Drawn, x: f64, y: Estimate| {
        let mut row = vec![curve.label.clone(), x.to_string()];
        row.extend(estimate_cells(Some(y)));
        row
    };
    let rows = curves.iter().flat_map(|curve| curve.points.iter().map(|point| row(curve, point.x, point.y)));
    csv(&heads, rows)
}

fn table_csv(table: &FilledTable) -> Vec<u8> {
    let heads = [
        table.columns.first().map_or("row", |head| head),
        "column",
        "published",
        "mean",
        "ci95_low",
        "ci95_high",
        "seeds",
    ];
    let rows = table.rows.iter().flat_map(|(label, cells)| {
        table.columns.iter().skip(1).zip(cells).map(move |(column, cell)| {
            let published = cell.published.map_or_else(String::new, |value| value.to_string());
            let mut row = vec![label.clone(), column.clone(), published];
            row.extend(estimate_cells(cell.measured));
            row
        })
    });
    csv(&heads, rows)
}

fn runs_csv(results: &Results) -> Vec<u8> {
    let rows = results.runs().flat_map(|(seed, case, measured)| {
        measured.figures.iter().map(move |(name, value, unit)| {
            let case = [case.setting.clone(), case.scheme.name.into(), case.point.to_string()];
            case.into_iter()
                .chain([seed.to_string(), name.clone(), value.to_string(), unit.clone()])
                .collect()
        })
    });
    csv(&["setting", "scheme", "point", "seed", "figure", "value", "unit"], rows)
}

/// Mean, both ends of the interval, number of seeds; empty where there is nothing.
fn estimate_cells(estimate: Option<Estimate>) -> [String; 4] {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let interval = estimate.and_then(|estimate| estimate.interval());
    [
        text(estimate.map(|estimate| estimate.mean)),
        text(interval.map(|[low, _]| low)),
        text(interval.map(|[_, high]| high)),
        estimate.map_or(0, |estimate| estimate.count).to_string(),
    ]
}

pub(crate) fn csv(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail, and every row has as many cells as there are heads.
    let _ = writer.write_record(heads);
    rows.for_each(|row| {
        let _ = writer.write_record(row);
    });
    writer.into_inner().unwrap_or_default()
}

fn store_json(path: &Path, value: &impl Serialize) -> Result<(), FilesError> {
    let json = serde_json::to_vec_pretty(value).map_err(io::Error::from);
    let mut json = json.map_err(PathError::writing(path))?;
    json.push(b'\n');
    store(path, json)
}

fn store(path: &Path, content: impl AsRef<[u8]>) -> Result<(), FilesError> {
    Ok(fs::write(path, content).map_err(PathError::writing(path))?)
}
