//! `anabranch lab sweep` and `merge` as their users see them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{anabranch, ends_with, kill, wait_until};
use rustix::process::Signal;

const SCENARIO: &str = r#"
[run]
duration = "1s"
[[node]]
name = "server"
[[node]]
name = "client"
[[link]]
from = "server"
to = "client"
rate = "2Mbps"
delay = "10ms"
[[flow]]
name = "download"
kind = "tcp"
from = "server"
to = "client"
"#;

/// 5 times 20 points, with two seeds each.
const GRID: &str = r#"
scenario = "path.toml"
seeds = 2
[[parameter]]
name = "loss rate"
key = "link.server-client.loss"
values = [0.0, 0.01, 0.02, 0.05, 0.1]
[[parameter]]
key = "link.1.rate"
values = ["0.1Mbps", "0.2Mbps", "0.3Mbps", "0.4Mbps", "0.5Mbps", "0.6Mbps", "0.7Mbps", "0.8Mbps", "0.9Mbps", "1Mbps",
  "1.1Mbps", "1.2Mbps", "1.3Mbps", "1.4Mbps", "1.5Mbps", "1.6Mbps", "1.7Mbps", "1.8Mbps", "1.9Mbps", "2Mbps"]
"#;

/// 200 points by chance.
const RANDOM: &str = r#"
scenario = "path.toml"
design = "random"
points = 200
seed = 5
[[parameter]]
key = "link.1.loss"
low = 0.001
high = 0.1
scale = "logarithmic"
[[parameter]]
key = "link.1.delay"
low = 1
high = 50
whole = true
unit = "ms"
"#;

fn directory(spec: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("path.toml"), SCENARIO).unwrap();
    fs::write(directory.path().join("sweep.toml"), spec).unwrap();
    directory
}

fn command(directory: &Path, words: &[&str]) -> Command {
    let mut command = anabranch();
    command.current_dir(directory).arg("lab").args(words).stdin(Stdio::null());
    command
}

fn lab(directory: &Path, words: &[&str]) -> Output {
    command(directory, words).output().unwrap()
}

fn cluster(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/cluster").join(file)
}

#[test]
fn four_shares_give_the_table_of_one_byte_for_byte() {
    for spec in [GRID, RANDOM] {
        let directory = directory(spec);
        let at = directory.path();
        ends_with(&lab(at, &["sweep", "sweep.toml", "--out", "one", "--jobs", "2"]), 0);
        for share in ["3/4", "1/4", "4/4", "2/4"] {
            ends_with(
                &lab(at, &["sweep", "sweep.toml", "--out", "four", "--shard", share, "--jobs", "3"]),
                0,
            );
        }
        ends_with(&lab(at, &["merge", "four", "--out", "merged.csv"]), 0);
        let one = fs::read_to_string(at.join("one/table.csv")).unwrap();
        assert_eq!(one, fs::read_to_string(at.join("merged.csv")).unwrap());

        let mut table = csv::Reader::from_reader(one.as_bytes());
        let heads: Vec<String> = table.headers().unwrap().iter().map(Into::into).collect();
        let column = |name: &str| {
            heads.iter().position(|head| head == name).unwrap_or_else(|| panic!("{name}: {heads:?}"))
        };
        let goodput = column("flow.download.goodput_bps");
        column("link.server-client.dropped_packets");
        let parameters = [heads[2].as_str(), heads[3].as_str()];
        assert!(
            [["loss rate", "link.1.rate"], ["link.1.loss", "link.1.delay"]].contains(&parameters),
            "{heads:?}"
        );
        let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 200);
        let different: BTreeSet<&str> = rows.iter().map(|row| &row[goodput]).collect();
        assert!(different.len() > 50, "the parameters change nothing: {different:?}");
        let runs: BTreeSet<(String, String)> =
            rows.iter().map(|row| (row[0].into(), row[1].into())).collect();
        assert_eq!(runs.len(), 200);
    }
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_ends_the_same() {
    // Long enough to be caught in the middle.
    let directory = directory(GRID);
    let at = directory.path();
    fs::write(at.join("path.toml"), SCENARIO.replace("1s", "100s")).unwrap();
    let lines =
        || fs::read_to_string(at.join("killed/shard-1-of-1.jsonl")).unwrap_or_default().lines().count();
    let child = command(at, &["sweep", "sweep.toml", "--out", "killed", "--jobs", "1"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("some runs", || lines() > 3);
    kill(&child, Signal::KILL);
    child.wait_with_output().unwrap();
    let kept = fs::read_to_string(at.join("killed/shard-1-of-1.jsonl")).unwrap();
    assert!(lines() < 200, "it was killed too late for this test");
    let said = ends_with(&lab(at, &["merge", "killed"]), 1);
    assert!(said.contains("of its 200 runs; run --shard 1/1 again"), "{said}");
    // As if it had been killed while it wrote a line.
    let mut torn = kept.clone();
    torn.push_str("{\"run\":199,\"val");
    fs::write(at.join("killed/shard-1-of-1.jsonl"), torn).unwrap();
    ends_with(&lab(at, &["sweep", "sweep.toml", "--out", "killed"]), 0);
    let whole = fs::read_to_string(at.join("killed/shard-1-of-1.jsonl")).unwrap();
    let whole_lines = &kept[..=kept.rfind('\n').unwrap()];
    assert!(whole.starts_with(whole_lines), "runs that were done were made again");
    ends_with(&lab(at, &["sweep", "sweep.toml", "--out", "fresh"]), 0);
    let table = |name: &str| fs::read(at.join(name).join("table.csv")).unwrap();
    assert_eq!(table("killed"), table("fresh"));
}

#[test]
fn the_scripts_of_clusters_make_the_shares() {
    let directory = directory(RANDOM);
    let at = directory.path();
    let program = env!("CARGO_BIN_EXE_anabranch");
    for task in 1..=4 {
        let task = task.to_string();
        let mut slurm = Command::new("bash");
        slurm.arg(cluster("sweep.slurm")).args(["sweep.toml", "slurm"]);
        slurm
            .env("SLURM_ARRAY_TASK_ID", &task)
            .env("SLURM_SUBMIT_DIR", cluster(""))
            .env("SLURM_CPUS_PER_TASK", "2");
        ends_with(&slurm.env("ANABRANCH", program).current_dir(at).output().unwrap(), 0);
    }
    for index in 0..4 {
        let mut job = Command::new(cluster("run-shard"));
        job.args(["sweep", "sweep.toml", "--out", "job"])
            .env("JOB_COMPLETION_INDEX", index.to_string())
            .env("SHARDS", "4");
        ends_with(&job.env("ANABRANCH", program).current_dir(at).output().unwrap(), 0);
    }
    for results in ["slurm", "job"] {
        ends_with(&lab(at, &["merge", results]), 0);
    }
    let table = |name: &str| fs::read(at.join(name).join("table.csv")).unwrap();
    assert_eq!(table("slurm"), table("job"));
    // Outside of a cluster, or without the number of shares, it says what is missing.
    let mut alone = Command::new(cluster("run-shard"));
    let said = ends_with(
        &alone
            .args(["sweep", "sweep.toml", "--out", "none"])
            .env("SHARDS", "4")
            .current_dir(at)
            .output()
            .unwrap(),
        2,
    );
    assert!(said.contains("SLURM_ARRAY_TASK_ID"), "{said}");
    let mut shares = Command::new(cluster("run-shard"));
    shares
        .args(["sweep", "sweep.toml", "--out", "none"])
        .env("JOB_COMPLETION_INDEX", "0")
        .env_remove("SHARDS");
    assert!(ends_with(&shares.current_dir(at).output().unwrap(), 2).contains("set SHARDS"));
}

#[test]
fn shares_that_are_missing_doubled_or_of_something_else_are_told() {
    let directory = directory(RANDOM);
    let at = directory.path();
    let share = |share: &str, out: &str| {
        ends_with(&lab(at, &["sweep", "sweep.toml", "--out", out, "--shard", share]), 0)
    };
    let merge = || ends_with(&lab(at, &["merge", "out"]), 1);
    fs::create_dir(at.join("out")).unwrap();
    assert!(merge().contains("there are no shares"));
    share("1/3", "out");
    share("3/3", "out");
    assert!(merge().contains("share 2/3 is missing; run it with --shard 2/3"), "{}", merge());
    fs::copy(at.join("out/shard-1-of-3.jsonl"), at.join("out/shard-2-of-3.jsonl")).unwrap();
    assert!(merge().contains("are the same share, 1/3"), "{}", merge());
    fs::remove_file(at.join("out/shard-2-of-3.jsonl")).unwrap();
    share("2/2", "out");
    assert!(merge().contains("of 3 shares and shard-2-of-2.jsonl of 2"), "{}", merge());
    fs::remove_file(at.join("out/shard-2-of-2.jsonl")).unwrap();
    fs::write(at.join("sweep.toml"), RANDOM.replace("seed = 5", "seed = 6")).unwrap();
    share("2/3", "out");
    assert!(merge().contains("not of the same sweep"), "{}", merge());
    let said = ends_with(&lab(at, &["sweep", "sweep.toml", "--out", "out", "--shard", "1/3"]), 1);
    assert!(said.contains("another sweep or scenario") && said.contains("--out"), "{said}");
    // A row of another share, one that is there twice, and one that is no row.
    let file = at.join("out/shard-2-of-3.jsonl");
    let right = fs::read_to_string(&file).unwrap();
    let second = right.lines().nth(1).unwrap().to_owned();
    for (line, expected) in [
        (second.as_str(), "twice"),
        ("{\"run\":0,\"values\":[\"\",\"\"],\"results\":[]}", "none of this share"),
        ("{}", "line 69"),
    ] {
        fs::write(&file, format!("{right}{line}\n")).unwrap();
        let said = merge();
        assert!(said.contains(expected) && said.contains("remove the file"), "{said}");
    }
}

#[test]
fn a_wrong_sweep_is_told_with_its_place() {
    let cases: &[(&str, &str, &str)] = &[
        ("seeds = 2", "seedz = 2", "sweep.toml:3:1: `seedz` is not a key of a sweep"),
        ("[0.0, 0.01, 0.02, 0.05, 0.1]", "[]", "sweep.toml:7:10: `values` is empty"),
        ("[0.0, 0.01, 0.02, 0.05, 0.1]", "[0.0, 2.0]", "sweep.toml:7:10: point 21"),
        ("[0.0, 0.01, 0.02, 0.05, 0.1]", "[[1]]", "sweep.toml:7:11: a value is"),
        ("seeds = 2", "seeds = 10000", "make more than 100000 runs"),
        ("seeds = 2", "seeds = 0", "sweep.toml:3:9: `seeds` is a whole number from 1"),
        ("path.toml", "none.toml", "sweep.toml:2:12: cannot read the scenario 'none.toml'"),
        (
            "link.server-client.loss",
            "link.client-server.loss",
            "sweep.toml:6:7: there is no link 'client-server'",
        ),
        ("link.server-client.loss", "link.server-client.los", "`los` is not a key of a [[link]]"),
        (
            "link.server-client.loss",
            "link.1.rate",
            "sweep.toml:9:7: the key of 'link.1.rate' is varied twice",
        ),
        ("[[parameter]]\nkey", "[setting]\nkey", "`setting` is not a key of a sweep"),
        ("seeds = 2", "design = \"list\"", "'link.1.rate' has 20 values and 'loss rate' 5"),
        ("seeds = 2", "design = \"random\"", "needs the key `points`"),
        ("seeds = 2", "design = \"random\"\npoints = 1000000000", "from 1 to 100000"),
        ("scenario", "scenario =", "sweep.toml:2:"),
    ];
    for (from, to, expected) in cases {
        assert!(GRID.contains(from), "{from}");
        let directory = directory(&GRID.replacen(from, to, 1));
        let said = ends_with(&lab(directory.path(), &["sweep", "sweep.toml", "--out", "out"]), 1);
        assert!(said.contains(expected), "{from} -> {to}: {said}");
        assert!(!directory.path().join("out/table.csv").exists());
    }
    let range = |from: &str, to: &str| {
        let directory = directory(&RANDOM.replacen(from, to, 1));
        ends_with(&lab(directory.path(), &["sweep", "sweep.toml", "--out", "out"]), 1)
    };
    assert!(range("low = 0.001", "low = 0").contains("begins above zero"));
    assert!(range("high = 0.1", "high = 0.0001").contains("is below `low`"));
    assert!(range("low = 1\n", "low = 1.5\n").contains("whole numbers"));
    let directory = directory(GRID);
    let usage = |words: &[&str]| ends_with(&lab(directory.path(), words), 2);
    assert!(
        usage(&["sweep", "sweep.toml", "--shard", "5/4"])
            .contains("there is no share 5 of 4: they are 1/4 to 4/4")
    );
    assert!(usage(&["sweep", "sweep.toml", "--shard", "four"]).contains("such as 1/4"));
    let said = ends_with(&lab(directory.path(), &["sweep", "none.toml"]), 1);
    assert!(said.contains("cannot read none.toml"), "{said}");
    fs::write(directory.path().join("path.toml"), SCENARIO.replace("2Mbps", "2Mqps")).unwrap();
    let said = ends_with(&lab(directory.path(), &["sweep", "sweep.toml"]), 1);
    assert!(said.contains("path.toml:"), "{said}");
}
