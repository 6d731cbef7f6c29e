//! Experiments that are folders: a plan, a scenario, the paper's values and a note.
//!
//! `papers/PAPER/EXPERIMENT/plan.toml` says what runs, what is measured, which relations are judged, and what
//! is drawn; `published.csv` beside it has the paper's values with their places. The format is in
//! `docs/experiments.md`. What is wrong is told with its file, line, and the name that was probably meant.

mod clip;
mod companies;
mod document;
mod figures;
mod grid;
mod judged;
mod measure;
pub(crate) mod names;
mod numbers;
mod packets;
mod published;
mod quantity;
pub(crate) mod reading;
mod runs;
mod shown;
mod take;
pub(crate) mod term;
mod viewer;
mod written;

use std::io::{self, ErrorKind};
use std::path::Path;

use anabranch_sim::scenario::{Error, read_document};

use self::document::Document;
use self::runs::Changes;
use crate::case::Case;
use crate::experiment::Experiment;
use crate::paper::Paper;
use crate::papers::{PLAN, Papers};

/// The experiments of all folders, by paper and name.
///
/// # Errors
/// A folder cannot be read, or something in it is wrong; the error says where.
pub fn load_all(papers: &Papers) -> Result<Vec<Experiment>, Error> {
    let folders =
        papers.folders().map_err(|error| Error::Read { file: papers.name(Path::new("")), error })?;
    folders.iter().map(|(paper, name)| load(papers, paper, name)).collect()
}

/// The experiment of a folder; its id is `PAPER-NAME`. A folder without a `paper.toml` means the built-in
/// paper of its name.
///
/// # Errors
/// A file cannot be read, or something in it is wrong; the error says where.
pub fn load(papers: &Papers, paper: &str, name: &str) -> Result<Experiment, Error> {
    let folder = Path::new(paper).join(name);
    let source = self::paper(papers, paper)?;
    let (file, text, written) = read(papers, &folder)?;
    let runs = runs::Runs::load(papers, &folder, (&file, &text), written.runs)?;
    Ok(written.experiment.into_experiment(format!("{paper}-{name}"), source, runs))
}

/// The paper of a folder.
fn paper(papers: &Papers, folder: &str) -> Result<Paper, Error> {
    match papers.paper(folder) {
        // Where there is neither, it is this one that is missing.
        Err(Error::Read { file, error }) if error.kind() == ErrorKind::NotFound => {
            Papers::BuiltIn.paper(folder).or(Err(Error::Read { file, error }))
        }
        source => source,
    }
}

/// What every run of a plan changes in its scenario: keys as scenarios have them, and their values.
///
/// # Errors
/// As those of [`load`].
pub(crate) fn changes(papers: &Papers, paper: &str, name: &str) -> Result<Vec<(Case, Changes)>, Error> {
    let (_, _, written) = read(papers, &Path::new(paper).join(name))?;
    Ok(written.runs.runs.into_iter().map(|run| (run.case(), run.changes)).collect())
}

/// A folder's plan: its name, its text, and what that says.
fn read(papers: &Papers, folder: &Path) -> Result<(String, String, Document), Error> {
    let plan = folder.join(PLAN);
    let file = papers.name(&plan);
    let text = papers.read(&plan).map_err(|error| {
        let error = match error.kind() {
            ErrorKind::NotFound => {
                io::Error::new(error.kind(), "a folder of a paper is an experiment with a plan")
            }
            _ => error,
        };
        Error::Read { file: file.clone(), error }
    })?;
    let published = published::load(papers, folder)?;
    let written = read_document(&file, &text, "a plan", |table| document::read(table, &published))?;
    Ok((file, text, written))
}
