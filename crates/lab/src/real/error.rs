//! What keeps real runs from being made.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::path_error::PathError;

/// Why a real run cannot be made.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// The testbed's program is not there.
    #[error(
        "cannot run {}: {error}. 'cargo build --release -p anabranch-testbed' builds it; --testbed FILE says \
         where it is",
        program.display()
    )]
    Missing {
        /// What was tried.
        program: PathBuf,
        /// Why it does not run.
        error: io::Error,
    },
    /// The testbed cannot run here.
    #[error("real runs are not possible here: {0}")]
    NotPossible(String),
    /// A program is missing.
    #[error("{0} is missing, which the real runs need; on Debian, 'apt-get install {1}' brings it")]
    Program(&'static str, &'static str),
    /// A run failed.
    #[error("{what} failed: {said}")]
    Failed {
        /// What was run.
        what: String,
        /// What it said in the end.
        said: String,
    },
    /// What a run has left cannot be read.
    #[error("{}: {error}", directory.display())]
    Results {
        /// The directory of the run.
        directory: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// The scenario of a run, or a file beside it, is not what its driver takes it for.
    #[error("{file}: {error}")]
    Scenario {
        /// Which.
        file: String,
        /// What is wrong with it.
        error: String,
    },
    /// A file or directory cannot be read or written.
    #[error(transparent)]
    Path(#[from] PathError),
}
