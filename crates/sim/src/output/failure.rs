//! A file that cannot be written.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", file.display())]
pub struct Failure {
    /// Which.
    pub file: PathBuf,
    /// Why not.
    pub error: io::Error,
}

impl Failure {
    pub(super) fn new(file: &Path, error: io::Error) -> Self {
        Self { file: file.into(), error }
    }
}

pub(super) fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::new(path, error))
}
