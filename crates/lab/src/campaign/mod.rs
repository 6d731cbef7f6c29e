//! Benchmarks: campaigns that measure real programs, ours beside others.
//!
//! [`all`] reads the campaigns of a directory, one in each file: its aim, how it is run, and the tables and
//! the plot that are made of its raw results. [`run()`] runs one and keeps the raw results under a date and a
//! commit; [`Tables`] are made from these alone, at any time; [`page()`] puts them into a document.
//!
//! What a driver prints, and what the testbed leaves, are [`Row`]s: texts and numbers by name.

mod bars;
mod document;
mod error;
mod folded;
mod machine;
mod page;
mod raw;
mod run;
mod selection;
mod series;
mod table;

use std::path::{Path, PathBuf};

use anabranch_sim::scenario;

use crate::path_error::PathError;

use document::Document;
pub use error::CampaignError;
pub use machine::Machine;
pub use page::page;
pub use raw::{Row, read_rows};
pub use run::{BenchOptions, newest, run};
pub use table::{Held, Tables};

/// A campaign.
#[derive(Debug)]
pub struct Campaign {
    /// Its name: that of its file.
    pub name: String,
    /// What it measures.
    pub title: String,
    /// What is to come out.
    pub aim: String,
    /// Where its file is.
    directory: PathBuf,
    document: Document,
}

/// The campaigns of a directory, by name: its `.toml` files.
///
/// # Errors
/// It or a file in it cannot be read, or is wrong; the error says where.
pub fn all(directory: &Path) -> Result<Vec<Campaign>, CampaignError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(PathError::reading(directory))? {
        let path = entry.map_err(PathError::reading(directory))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    files.iter().map(|file| load(file)).collect()
}

/// Reads a campaign.
///
/// # Errors
/// Its file cannot be read, or something in it is wrong; the error says where.
pub fn load(file: &Path) -> Result<Campaign, CampaignError> {
    let text = scenario::read_text(file)
        .map_err(|error| scenario::Error::Read { file: file.display().to_string(), error })?;
    let read = scenario::read_document(&file.display().to_string(), &text, "a campaign", document::read)?;
    let (title, aim, document) = read;
    Ok(Campaign {
        name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        title,
        aim,
        directory: file.parent().unwrap_or(Path::new("")).to_owned(),
        document,
    })
}

#[cfg(test)]
mod tests;
