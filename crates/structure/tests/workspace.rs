//! Arrows run down only: no file of this workspace uses another one in a circle.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anabranch_structure::circles;

/// The folder of all crates.
fn crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The roots of all crates: `src/lib.rs` and `src/main.rs`.
fn roots() -> Vec<PathBuf> {
    let folders = fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path());
    let mut roots: Vec<PathBuf> = folders
        .flat_map(|folder| [folder.join("src/lib.rs"), folder.join("src/main.rs")])
        .filter(|root| root.exists())
        .collect();
    roots.sort();
    roots
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let roots = roots();
    assert!(roots.len() > 5, "where are the crates? {roots:?}");
    let mut told = String::new();
    for root in roots {
        for circle in circles(&root).unwrap_or_else(|error| panic!("{error}")) {
            let name = |path: &Path| path.strip_prefix(crates()).unwrap().display().to_string();
            let files: Vec<String> = circle.files.iter().map(|path| name(path)).collect();
            writeln!(told, "a circle: {}", files.join(" ")).unwrap();
            for arrow in circle.arrows {
                writeln!(told, "  {} -> {}: {:?}", name(&arrow.from), name(&arrow.to), arrow.names).unwrap();
            }
        }
    }
    assert!(told.is_empty(), "{told}");
}
