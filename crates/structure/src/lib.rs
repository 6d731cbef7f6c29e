//! The graph of a crate's files: a file points to the files whose items it uses, and no way along these
//! arrows may lead back.
//!
//! What counts as a use: a path in the code, in a macro's arguments or in a private `use`, followed through
//! modules and re-exports to the file that defines the item. A `pub use` only hands on, and `mod` only
//! contains. Tests are left out. What a path does not show is not seen: calls of methods, and what macros
//! make.
//!
//! Begin with [`circles`]; [`Crate`] is the tree of modules behind it, [`uses`] walks the code. The
//! compiler's own tools know only crates, and `cargo-modules`, which comes near, builds all of rust-analyzer
//! to draw modules.

mod modules;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

pub use modules::{Crate, FileId, ReadError};
pub use uses::{Used, uses};

/// Files that use each other's items in a circle.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// The files, in the order of their names.
    pub files: Vec<PathBuf>,
    /// Who uses what of whom within the circle.
    pub arrows: Vec<Arrow>,
}

/// A file uses items of another one.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The file that uses.
    pub from: PathBuf,
    /// The file that defines.
    pub to: PathBuf,
    /// The names as they are written where they are used.
    pub names: BTreeSet<String>,
}

/// All circles of the crate whose root file is `root`, as `src/lib.rs`.
///
/// # Errors
/// A file that cannot be read, or is no Rust.
pub fn circles(root: &Path) -> Result<Vec<Circle>, ReadError> {
    let tree = Crate::read(root)?;
    let mut arrows: BTreeMap<(FileId, FileId), BTreeSet<String>> = BTreeMap::new();
    for used in uses(&tree) {
        arrows.entry((used.from, used.to)).or_default().insert(used.name);
    }
    let graph: DiGraphMap<FileId, ()> = arrows.keys().map(|&(from, to)| (from, to, ())).collect();
    let mut found: Vec<Circle> = tarjan_scc(&graph)
        .into_iter()
        .filter(|files| files.len() > 1)
        .map(|files| {
            let within = arrows.iter().filter(|((from, to), _)| files.contains(from) && files.contains(to));
            let path = |file| tree.path(file).to_path_buf();
            let arrows = within
                .map(|(&(from, to), names)| Arrow { from: path(from), to: path(to), names: names.clone() })
                .collect();
            let mut files: Vec<PathBuf> = files.iter().map(|&file| path(file)).collect();
            files.sort();
            Circle { files, arrows }
        })
        .collect();
    found.sort_by(|one, other| one.files.cmp(&other.files));
    Ok(found)
}
