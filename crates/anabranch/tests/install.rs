//! `make install` and `make uninstall`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{ends_with, text};

/// This program, as it was built for the tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_anabranch");

fn has_make() -> bool {
    let is_there = Command::new("make").arg("--version").output().is_ok();
    if !is_there {
        anabranch_testkit::skipped("there is no make");
    }
    is_there
}

fn make(target: &str, to: &Path, program: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut make = Command::new("make");
    make.arg("-C").arg(root).arg(target).arg("PREFIX=/opt/own").arg(format!("DESTDIR={}", to.display()));
    make.arg(format!("PROGRAM={program}")).output().unwrap()
}

fn files(below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn what_is_installed_works_and_goes_away_again() {
    if !has_make() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    ends_with(&make("install", directory.path(), PROGRAM), 0);
    let own = directory.path().join("opt/own");
    let program = own.join("bin/anabranch");
    let told = Command::new(&program).arg("--version").output().unwrap();
    assert!(text(&told.stdout).starts_with("anabranch "));
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(size(&program) < size(Path::new(PROGRAM)), "it is not stripped");
    for (file, content) in [
        ("share/man/man1/anabranch-play.1", ".TH"),
        ("share/bash-completion/completions/anabranch", "_anabranch()"),
        ("share/zsh/site-functions/_anabranch", "#compdef anabranch"),
        ("share/fish/vendor_completions.d/anabranch.fish", "complete -c anabranch"),
        ("lib/systemd/system/anabranch-cc@.service", "ExecStart=/opt/own/bin/anabranch --quiet cc load %i"),
        (
            "lib/systemd/system/anabranch-serve.service",
            "ExecStart=/opt/own/bin/anabranch --quiet serve $OPTIONS",
        ),
    ] {
        let installed = fs::read_to_string(own.join(file)).unwrap();
        assert!(installed.contains(content), "{file}");
    }
    ends_with(&make("uninstall", directory.path(), PROGRAM), 0);
    assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
}

#[test]
fn systemd_understands_the_units() {
    if !has_make() {
        return;
    }
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        anabranch_testkit::skipped("there is no systemd");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut make = Command::new("make");
    make.arg("-C").arg(root).arg("install").arg(format!("PREFIX={}", directory.path().display()));
    ends_with(&make.arg(format!("PROGRAM={PROGRAM}")).output().unwrap(), 0);
    let units = directory.path().join("lib/systemd/system");
    let named = units.join("anabranch-cc@group.service");
    fs::rename(units.join("anabranch-cc@.service"), &named).unwrap();
    for unit in [named, units.join("anabranch-serve.service")] {
        let verified =
            Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit).output().unwrap();
        let said = text(&verified.stderr);
        // Of the machine's own units it may have something to say.
        assert!(!said.contains("anabranch"), "{said}");
    }
}

#[test]
fn nothing_is_installed_before_it_is_built() {
    if !has_make() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let run = make("install", directory.path(), "/nowhere");
    assert!(!run.status.success() && text(&run.stdout).contains("make build"), "{run:?}");
    assert_eq!(files(directory.path()), Vec::<PathBuf>::new());
}
