//! Copies of the program's own experiments.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use anabranch_lab::papers::Papers;
use anabranch_lab::{CopyError, copy, experiments, plan};

#[test]
fn every_experiment_is_copied_with_all_that_it_needs() {
    for own in experiments::all(None).unwrap() {
        let directory = tempfile::tempdir().unwrap();
        let folder = copy(&own.id, directory.path()).unwrap().unwrap();
        assert!(folder.join("plan.toml").is_file());
        let copies = plan::load_all(&Papers::At(directory.path().to_owned())).unwrap();
        let [copied] = &copies[..] else { panic!("{}: {} experiments", own.id, copies.len()) };
        assert_eq!((&copied.id, &copied.paper, &copied.title), (&own.id, &own.paper, &own.title));
    }
}

#[test]
fn a_copy_changes_no_file_that_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let folder = copy("vps-fig3", directory.path()).unwrap().unwrap();
    assert_eq!(copy("vps-fig4", directory.path()).unwrap(), Some(directory.path().join("vps/fig4")));
    let notes = folder.join("notes.md");
    fs::write(&notes, "mine").unwrap();
    let plan = folder.join("plan.toml");
    fs::remove_file(&plan).unwrap();
    assert!(matches!(copy("vps-fig3", directory.path()), Err(CopyError::Taken(path)) if path == notes));
    assert!(fs::read_to_string(&notes).unwrap() == "mine" && !plan.exists());
    assert_eq!(copy("vps", directory.path()).unwrap(), None);
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(copy("vps-fig3", &file), Err(CopyError::Write { .. })));
}
