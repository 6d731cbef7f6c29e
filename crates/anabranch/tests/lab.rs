//! `anabranch lab` as its users see it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use common::{anabranch, ends_with, kill, text, wait_until};

/// The smallest experiment.
const ID: &str = "multitcp-eq6.4";

fn lab(arguments: &[&str]) -> Command {
    let mut command = anabranch();
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

#[test]
fn an_experiment_that_is_not_known_is_a_wrong_usage_with_the_nearest_name() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let run = lab(&["run", "multitcp-eq64", "--out", out.to_str().unwrap()]).output().unwrap();
    let said = ends_with(&run, 2);
    assert!(said.contains("there is no experiment 'multitcp-eq64'; did you mean multitcp-eq6.4"), "{said}");
    assert!(!out.exists());
    for wrong in [&["run"][..], &["run", ID, "--seeds", "0"], &["run", ID, "--jobs", "0"], &[]] {
        ends_with(&lab(wrong).output().unwrap(), 2);
    }
}

#[test]
fn places_that_cannot_be_written_or_read_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let said = ends_with(&lab(&["run", ID, "--out", file.to_str().unwrap()]).output().unwrap(), 1);
    assert!(said.contains("cannot write") && said.contains("file"), "{said}");
    let said = ends_with(&lab(&["report", directory.path().to_str().unwrap()]).output().unwrap(), 1);
    assert!(said.contains("has no results of experiments"), "{said}");
}

#[test]
fn the_list_has_every_experiment() {
    let list = lab(&["list"]).output().unwrap();
    ends_with(&list, 0);
    assert!(text(&list.stdout).lines().any(|line| line.starts_with(ID)));
}

#[test]
fn real_runs_that_cannot_be_made_are_told_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let real = |more: &[&str]| {
        lab(&[&["run", "--real", "--quick", "--out", out.to_str().unwrap()], more].concat()).output().unwrap()
    };
    let said = ends_with(&real(&[ID]), 2);
    assert!(said.contains("none of these experiments has real runs") && said.contains("vps-fig3"), "{said}");
    let none = directory.path().join("no-testbed");
    let said = ends_with(&real(&["vps-fig3", "--testbed", none.to_str().unwrap()]), 1);
    assert!(said.contains("no-testbed") && said.contains("--testbed FILE says where it is"), "{said}");
    assert!(!out.exists());
    ends_with(&lab(&["run", ID, "--testbed", "file"]).output().unwrap(), 2);
    let list = lab(&["list"]).output().unwrap();
    let marked = text(&list.stdout).lines().filter(|line| line.ends_with("; --real)")).count();
    assert_eq!(marked, anabranch_lab::experiments::REAL.len());
}

/// How many finished runs are kept.
fn kept(directory: &Path) -> usize {
    let programs = fs::read_dir(directory.join("runs")).into_iter().flatten();
    programs.map(|program| fs::read_dir(program.unwrap().path()).map_or(0, Iterator::count)).sum()
}

#[test]
fn a_run_that_was_killed_goes_on_without_repeating_what_was_done() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let start = |more: &[&str]| lab(&[&["run", ID, "--jobs", "1", "--out", out], more].concat());
    let child = start(&[]).stderr(Stdio::null()).spawn().unwrap();
    wait_until("some finished runs", || kept(directory.path()) > 2);
    kill(&child, Signal::KILL);
    child.wait_with_output().unwrap();
    // A run that was killed while it was written is none.
    let files = || {
        let program = fs::read_dir(directory.path().join("runs")).unwrap().next().unwrap().unwrap().path();
        let runs = fs::read_dir(program).unwrap().map(|file| file.unwrap());
        let mut runs: Vec<_> = runs
            .filter(|file| file.path().extension().is_some_and(|end| end == "json"))
            .map(|file| (file.path(), file.metadata().unwrap().modified().unwrap()))
            .collect();
        runs.sort();
        runs
    };
    let before = files();
    assert!(before.len() < 13, "it was killed too late for this test");
    ends_with(&start(&[]).output().unwrap(), 0);
    let after = files();
    assert_eq!(after.len(), 13);
    assert!(before.iter().all(|run| after.contains(run)), "a finished run was made again");

    ends_with(&start(&["--fresh"]).output().unwrap(), 0);
    let fresh = files();
    assert_eq!(fresh.len(), 13);
    assert!(after.iter().all(|run| !fresh.contains(run)), "--fresh kept a run");
}

#[test]
fn an_interrupted_run_goes_on_and_its_verdicts_are_told_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let start = || lab(&["run", ID, "--jobs", "1", "--out", out]);
    let child = start().stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a finished run", || kept(directory.path()) > 0);
    kill(&child, Signal::INT);
    let said = ends_with(&child.wait_with_output().unwrap(), 130);
    assert!(said.contains("13 runs were done; the same command goes on from there"), "{said}");
    assert!(!directory.path().join("verdicts.json").exists());

    let run = start().output().unwrap();
    let said = ends_with(&run, 0);
    assert!(said.contains(ID) && said.contains("seeds 1 to 5; runs at a time: 1"), "{said}");
    let verdicts = fs::read(directory.path().join("verdicts.json")).unwrap();
    let verdicts: Vec<Value> = serde_json::from_slice(&verdicts).unwrap();
    let told = text(&run.stdout);
    assert_eq!(told.lines().count(), verdicts.len() + 1, "{told}");
    for (line, verdict) in told.lines().zip(&verdicts) {
        assert!(line.starts_with(verdict["verdict"].as_str().unwrap()), "{line}");
        assert!(line.contains(ID) && line.contains(verdict["relation"].as_str().unwrap()), "{line}");
    }
    let report = fs::read(directory.path().join("report.html")).unwrap();
    fs::remove_file(directory.path().join("report.html")).unwrap();
    let markdown = directory.path().join("reproduction.md");
    let bound = lab(&["report", out, "--markdown", markdown.to_str().unwrap()]).output().unwrap();
    ends_with(&bound, 0);
    assert_eq!(text(&bound.stdout), told);
    let relations = format!("| MultiTCP | 1 | {} |", verdicts.len());
    assert!(fs::read_to_string(markdown).unwrap().contains(&relations), "{relations}");
    assert_eq!(fs::read(directory.path().join("report.html")).unwrap(), report);
}

#[test]
fn folders_of_ones_own_are_experiments() {
    let directory = tempfile::tempdir().unwrap();
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/vps/dilution");
    let folder = directory.path().join("vps/mine");
    fs::create_dir_all(&folder).unwrap();
    for file in ["plan.toml", "scenario.toml", "published.csv"] {
        fs::copy(built_in.join(file), folder.join(file)).unwrap();
    }
    let papers = directory.path().to_str().unwrap();
    let list = lab(&["list", "--papers", papers]).output().unwrap();
    ends_with(&list, 0);
    assert!(text(&list.stdout).contains("vps-mine"), "{}", text(&list.stdout));

    let out = directory.path().join("results");
    let arguments = ["run", "vps-mine", "--papers", papers, "--quick", "--out", out.to_str().unwrap()];
    let run = lab(&arguments).output().unwrap();
    ends_with(&run, 0);
    // One seed of short flows decides nothing; both relations are judged.
    let told = text(&run.stdout);
    assert_eq!(told.lines().filter(|line| line.contains("vps-mine  ")).count(), 2, "{told}");

    let plan = fs::read_to_string(folder.join("plan.toml")).unwrap();
    fs::write(folder.join("plan.toml"), plan.replace("name = \"VPS\"", "name = \"VPSS\"")).unwrap();
    let said = ends_with(&lab(&["list", "--papers", papers]).output().unwrap(), 1);
    assert!(said.contains("plan.toml:") && said.contains("did you mean 'VPS'?"), "{said}");
    let said = ends_with(&lab(&["list", "--papers", "/nowhere/at/all"]).output().unwrap(), 1);
    assert!(said.contains("/nowhere/at/all"), "{said}");
}
