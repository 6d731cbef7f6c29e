//! The manual has what is read.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A key that is read and is not in the manual is one that nobody finds.
#[test]
fn the_manual_has_every_key() {
    let manual = fs::read_to_string(here("../../docs/scenario.md")).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(here("src")).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        for call in [".get(", ".need(", ".item(", ".tables("] {
            let keys = text.split(call).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
            names.extend(keys.filter_map(|rest| rest.split_once('"')).map(|(key, _)| key.to_owned()));
        }
    }
    assert!(names.len() > 100, "{} keys are read", names.len());
    let is_told = |name: &String| {
        let mut words = manual.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == name)
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_told(name)).collect();
    assert!(missing.is_empty(), "docs/scenario.md does not have {missing:?}");
}
