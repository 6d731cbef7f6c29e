//! The folders of papers and their experiments: those that are built in, or those of a directory.
//!
//! A paper's folder has its `paper.toml`, and a folder for every experiment (see [`crate::plan`]).

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use anabranch_sim::scenario::{self, Error, Fault, Item, Table};
use include_dir::{Dir, include_dir};

use crate::paper::Paper;

static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

const PAPER: &str = "paper.toml";
/// What makes a folder an experiment.
pub(crate) const PLAN: &str = "plan.toml";

/// Papers and their experiments.
#[derive(Clone, Debug)]
pub enum Papers {
    /// Those that this program has.
    BuiltIn,
    /// Those of a directory.
    At(PathBuf),
}

/// A built-in paper; one that is not there has the folder's name and nothing else.
pub fn of(folder: &str) -> Paper {
    Papers::BuiltIn.paper(folder).unwrap_or_else(|_| Paper { name: folder.into(), ..Paper::default() })
}

impl Papers {
    /// The folders of experiments: the paper's name and the experiment's, in order. Every folder of a paper
    /// is one, also one that lacks its plan.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn folders(&self) -> io::Result<Vec<(String, String)>> {
        let mut folders = Vec::new();
        for paper in self.directories(Path::new(""))? {
            let experiments = self.directories(Path::new(&paper))?;
            let has_plan = |name: &String| self.read(&Path::new(&paper).join(name).join(PLAN)).is_ok();
            let is_paper = |papers: &Self| papers.read(&Path::new(&paper).join(PAPER)).is_ok();
            if is_paper(self) || is_paper(&Self::BuiltIn) || experiments.iter().any(has_plan) {
                folders.extend(experiments.into_iter().map(|name| (paper.clone(), name)));
            }
        }
        Ok(folders)
    }

    /// The paper of a folder.
    ///
    /// # Errors
    /// Its `paper.toml` cannot be read or is none.
    pub fn paper(&self, folder: &str) -> Result<Paper, Error> {
        let path = Path::new(folder).join(PAPER);
        let name = self.name(&path);
        let text = self.read(&path).map_err(|error| Error::Read { file: name.clone(), error })?;
        scenario::read_document(&name, &text, "a paper", read_paper)
    }

    /// The text of a file; `path` is below the papers, and may go up again but not out of them.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self, path: &Path) -> io::Result<String> {
        let path = within(path).ok_or_else(|| io::Error::other("it is outside of the papers' directory"))?;
        match self {
            Self::At(root) => scenario::read_text(&root.join(path)),
            Self::BuiltIn => BUILT_IN
                .get_file(path)
                .and_then(|file| file.contents_utf8())
                .map(Into::into)
                .ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }

    /// What a file is called in errors.
    pub(crate) fn name(&self, path: &Path) -> String {
        match self {
            Self::At(root) => root.join(path).display().to_string(),
            Self::BuiltIn => Path::new("papers").join(path).display().to_string(),
        }
    }

    /// The files of a built-in directory, without those in directories below it.
    pub(crate) fn built_in_files(directory: &Path) -> impl Iterator<Item = (&'static Path, &'static [u8])> {
        let files = BUILT_IN.get_dir(directory).into_iter().flat_map(Dir::files);
        files.map(|file| (file.path(), file.contents()))
    }

    fn directories(&self, path: &Path) -> io::Result<Vec<String>> {
        let names: BTreeSet<String> = match self {
            Self::At(root) => {
                let mut names = BTreeSet::new();
                for entry in fs::read_dir(root.join(path))? {
                    let entry = entry?;
                    // What is hidden belongs to other programs.
                    let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'));
                    if entry.path().is_dir() {
                        names.extend(name);
                    }
                }
                names
            }
            Self::BuiltIn => {
                let inner = if path == Path::new("") { Some(&BUILT_IN) } else { BUILT_IN.get_dir(path) };
                let directories = inner.into_iter().flat_map(Dir::dirs);
                directories.filter_map(|dir| Some(dir.path().file_name()?.to_str()?.to_owned())).collect()
            }
        };
        Ok(names.into_iter().collect())
    }
}

/// A path without its steps back; none if it leads out.
fn within(path: &Path) -> Option<PathBuf> {
    let mut inner = PathBuf::new();
    for step in path.components() {
        match step {
            Component::Normal(name) => inner.push(name),
            Component::CurDir => {}
            Component::ParentDir => inner.pop().then_some(())?,
            _ => return None,
        }
    }
    Some(inner)
}

fn read_paper(mut table: Table<'_>) -> Result<Paper, Fault> {
    let name = table.need("name", paper_name);
    let place = table.need("place", |item| item.whole(0..=1_000_000));
    let citation = table.need("citation", |item| item.text().map(ToOwned::to_owned));
    let is_ours = table.get("is_ours", |item| item.flag());
    table.finish()?;
    Ok(Paper { place: place?, name: name?, citation: citation?, is_ours: is_ours.unwrap_or(false) })
}

/// It is the name of a page as well.
fn paper_name(item: Item<'_>) -> Result<String, Fault> {
    let name = item.text()?;
    let is_right = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_right) {
        return Err(item.fault("a paper's name is 1 to 40 letters, digits and hyphens"));
    }
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_paper_says_who_wrote_it() {
        let papers = Papers::BuiltIn.directories(Path::new("")).unwrap();
        assert!(papers.len() >= 5, "{papers:?}");
        for folder in papers {
            let paper = Papers::BuiltIn.paper(&folder).unwrap();
            assert!(!paper.citation.is_empty(), "{folder}");
            assert_eq!(of(&folder), paper);
        }
    }

    #[test]
    fn no_path_leads_out_of_the_papers() {
        assert_eq!(within(Path::new("vps/dilution/../path.toml")), Some("vps/path.toml".into()));
        for out in ["../x", "vps/../../x", "/etc/passwd"] {
            assert_eq!(within(Path::new(out)), None, "{out}");
        }
        assert!(Papers::At(".".into()).read(Path::new("../Cargo.toml")).is_err());
    }
}
