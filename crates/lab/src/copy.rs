//! Copies of built-in experiments, as a beginning for others.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

use crate::papers::Papers;

/// Why an experiment was not copied.
#[derive(Debug, Error)]
pub enum CopyError {
    /// There is another file already.
    #[error("{} is there already, and is another one", .0.display())]
    Taken(PathBuf),
    /// It cannot be written, or the place where it goes cannot be read.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Writes the folder of a built-in experiment below `directory`, and the files that it shares with others of
/// its paper; gives the folder. A file that is there as it should be stays.
///
/// # Errors
/// A file cannot be written, or another one is in its place: then nothing is written.
pub fn copy(id: &str, directory: &Path) -> Result<Option<PathBuf>, CopyError> {
    let folders = Papers::BuiltIn.folders();
    let folders = folders.map_err(|error| CopyError::Write { path: directory.to_owned(), error })?;
    let Some((paper, name)) = folders.into_iter().find(|(paper, name)| format!("{paper}-{name}") == id)
    else {
        return Ok(None);
    };
    let folder = Path::new(&paper).join(&name);
    let files: Vec<(PathBuf, &[u8])> = [Path::new(&paper), folder.as_path()]
        .into_iter()
        .flat_map(Papers::built_in_files)
        .map(|(path, content)| (directory.join(path), content))
        .collect();
    let mut missing = Vec::new();
    for (path, content) in files {
        match fs::read(&path) {
            Ok(other) if other == content => {}
            Ok(_) => return Err(CopyError::Taken(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push((path, content)),
            Err(error) => return Err(CopyError::Write { path, error }),
        }
    }
    for (path, content) in missing {
        let written = fs::create_dir_all(path.parent().unwrap_or(directory));
        written.and_then(|()| fs::write(&path, content)).map_err(|error| CopyError::Write { path, error })?;
    }
    Ok(Some(directory.join(folder)))
}
