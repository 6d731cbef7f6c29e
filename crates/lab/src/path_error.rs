//! A file or directory that cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What cannot be done with it, and why.
#[derive(Debug, Error)]
#[error("cannot {doing} {}: {error}", path.display())]
pub struct PathError {
    doing: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl PathError {
    /// Of a failure to read: for `map_err`.
    pub fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self { doing: "read", path: path.into(), error }
    }

    /// Of a failure to write: for `map_err`.
    pub fn writing(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self { doing: "write", path: path.into(), error }
    }
}
