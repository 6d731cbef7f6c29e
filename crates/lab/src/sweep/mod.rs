//! Sweeps: a scenario of the simulator run at many points of its parameters, into one table.
//!
//! [`Sweep::load`] reads what is varied; [`run()`] makes the runs of a [`Share`](crate::Share) of it and keeps them in a
//! file; [`merge()`] checks that the files of all shares are there and whole, and makes the table. The table
//! does not depend on how the sweep was shared out.

mod kept;
mod merge;
mod path;
mod points;
mod run;
mod spec;

use crate::path_error::PathError;
use std::path::PathBuf;

use anabranch_sim::scenario;
use thiserror::Error;

pub use merge::merge;
pub(crate) use path::set;
pub use run::{SweepOptions, run};
pub use spec::Sweep;

/// Why a sweep cannot go on.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The sweep or its scenario is wrong, at a place.
    #[error(transparent)]
    Wrong(#[from] scenario::Error),
    /// A scenario cannot be simulated.
    #[error("{scenario}: {:?}: {error}", error.place)]
    Model {
        /// Which.
        scenario: String,
        /// What is wrong.
        error: anabranch_sim::ModelError,
    },
    /// A file or directory cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A file of a share is not what it should be.
    #[error("{}: {what}", path.display())]
    Kept {
        /// Which, with the line where it matters.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The shares in a directory do not make a whole.
    #[error("{}: {what}", path.display())]
    Shares {
        /// The directory.
        path: PathBuf,
        /// What is missing or there twice, and what to do.
        what: String,
    },
    /// It was to stop.
    #[error("stopped when {done} of {total} runs were done")]
    Stopped {
        /// Finished runs of this share.
        done: usize,
        /// All runs of this share.
        total: usize,
    },
}
