//! Why a campaign fails.

use std::path::PathBuf;

use anabranch_sim::scenario;
use thiserror::Error;

use crate::path_error::PathError;
use crate::real::TestbedError;

/// Why a campaign cannot be run, or its tables not be made.
#[derive(Debug, Error)]
pub enum CampaignError {
    /// Something in its file is wrong, at a place.
    #[error(transparent)]
    Wrong(#[from] scenario::Error),
    /// A file or directory cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The testbed fails, or cannot run here.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// Programs are missing.
    #[error("{campaign} needs {}, which this machine does not have", missing.join(", "))]
    Missing {
        /// The campaign.
        campaign: String,
        /// Their names.
        missing: Vec<String>,
    },
    /// The driver does not do what it should.
    #[error("{what}: {said}")]
    Driver {
        /// Its command.
        what: String,
        /// What it says in the end, or what is wrong with its results.
        said: String,
    },
    /// Raw results are none.
    #[error("{}, line {line}: {error}", path.display())]
    Raw {
        /// Where they are.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        error: String,
    },
    /// A document has no place for tables.
    #[error("{} has no '<!-- table:NAME -->' of a campaign that has results", .0.display())]
    NoPlace(PathBuf),
    /// It was to stop.
    #[error("stopped")]
    Stopped,
}
