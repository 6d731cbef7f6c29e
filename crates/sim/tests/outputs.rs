//! The outputs of whole runs: the same for the same seed, on every machine, and readable.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anabranch_sim::Simulation;
use anabranch_sim::model::{Jitter, Model, Spread};
use anabranch_sim::output::{Output, Summary};
use anabranch_sim::report::Observer;
use anabranch_units::Duration;
use sha2::{Digest, Sha256};

const FILES: [&str; 5] = ["flows.csv", "links.csv", "events.jsonl", "summary.json", "packets.pcapng"];

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn load(name: &str, seed: Option<u64>) -> Model {
    anabranch_sim::scenario::load(&here(name), seed).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a model in steps of this length, and answers its files by name.
fn run(model: Model, step: Duration) -> BTreeMap<&'static str, Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let mut output = Output::default()
        .directory(directory.path(), &model)
        .unwrap()
        .capture(&directory.path().join("packets.pcapng"), &model)
        .unwrap()
        .loss_events(true);
    let mut simulation = Simulation::new(model).unwrap();
    while simulation.now() < simulation.end() {
        simulation.run_until(simulation.now() + step, &mut output);
    }
    let summary = Summary::new("test", simulation.model(), simulation.now(), &simulation.totals());
    output.finish(&summary).unwrap();
    FILES.map(|name| (name, fs::read(directory.path().join(name)).unwrap())).into()
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digests are those of every machine. A change of what is simulated changes them: then run the tests
/// that compare the simulator with others, and write the new ones here.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let first = run(load("tests/mixed.toml", None), Duration::MAX);
    for step in [Duration::MAX, Duration::from_millis(70)] {
        let again = run(load("tests/mixed.toml", None), step);
        for name in FILES {
            assert!(first[name] == again[name], "{name} of two runs differ, steps of {step}");
        }
    }
    let other = run(load("tests/mixed.toml", Some(6)), Duration::MAX);
    for name in FILES {
        assert!(first[name] != other[name], "{name} does not depend on the seed");
        assert!(first[name].len() > 500, "{name} is nearly empty");
    }
    let found: Vec<_> = FILES.iter().map(|name| format!("{name} {}", digest(&first[name]))).collect();
    let expected = [
        "flows.csv c5c14bf14d1fea72a1e8f2a5582b106cde6caf486187eac30e9eeb582abb2059",
        "links.csv 4b5d0e8ba5ee7e23967b130daed19d3bfe34b465155be4c5607d64a163f1a97d",
        "events.jsonl 2318e97d9b67c63958f1a4640d0437f86916309ff696f63d2ca590f3c0e3b0d9",
        "summary.json ee844348946a6591484ecb6eef275fffbb70b819be06f189fe61cc57f85d14c7",
        "packets.pcapng 7e80de58650939d0066d7369b19bab41c44135504290523435b6dbe70073f1ac",
    ];
    assert_eq!(found, expected);
}

#[test]
fn rows_have_their_columns_and_add_up() {
    let model = load("tests/mixed.toml", None);
    let (flows, links) = (model.flows.len(), model.links.len());
    let files = run(model, Duration::MAX);
    for (name, things) in [("flows.csv", flows), ("links.csv", links)] {
        let mut reader = csv::Reader::from_reader(&files[name][..]);
        let width = reader.headers().unwrap().len();
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), things * 12 * 4, "{name}");
        assert!(rows.iter().all(|row| row.len() == width));
        assert_eq!((&rows[0][0], &rows[rows.len() - 1][0]), ("0.250000", "12.000000"));
        if name == "links.csv" {
            let within = |row: &csv::StringRecord| {
                row[2].is_empty() || (0.0..1.01).contains(&row[2].parse::<f64>().unwrap())
            };
            assert!(rows.iter().all(within), "a link carried more than it could");
            let bottleneck =
                rows.iter().filter(|row| &row[1] == "left-right" && row[0].parse::<f64>().unwrap() > 2.0);
            let bytes: u64 = bottleneck.map(|row| row[3].parse::<u64>().unwrap()).sum();
            let summary: serde_json::Value = serde_json::from_slice(&files["summary.json"]).unwrap();
            let link = summary["links"].as_array().unwrap().iter().find(|link| link["name"] == "left-right");
            assert_eq!(link.unwrap()["transmitted_bytes"], bytes);
            assert_eq!(summary["counted_s"], 10.0);
        }
    }
    let events = String::from_utf8(files["events.jsonl"].clone()).unwrap();
    let mut kinds: Vec<String> = Vec::new();
    for line in events.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["at_s"].is_number() && event["flow"].is_string(), "{line}");
        kinds.push(event["event"].as_str().unwrap().into());
    }
    for kind in ["open", "request", "window", "loss_event"] {
        assert!(kinds.iter().any(|found| found == kind), "no {kind}");
    }
}

/// A column that is written and is not in the manual is one that nobody finds.
#[test]
fn the_manual_has_every_column() {
    let manual = fs::read_to_string(here("../../docs/sim.md")).unwrap();
    let mut names: Vec<String> = Vec::new();
    let files = run(load("tests/mixed.toml", None), Duration::MAX);
    for name in ["flows.csv", "links.csv"] {
        names.extend(csv::Reader::from_reader(&files[name][..]).headers().unwrap().iter().map(str::to_owned));
    }
    let summary: serde_json::Value = serde_json::from_slice(&files["summary.json"]).unwrap();
    let stream = summary["flows"].as_array().unwrap().iter().find(|flow| flow["kind"] == "media").unwrap();
    for object in [&summary, stream, &stream["media"], &summary["links"][0]] {
        names.extend(object.as_object().unwrap().keys().cloned());
    }
    let is_told = |name: &String| {
        let mut words = manual.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == name)
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_told(name)).collect();
    assert!(missing.is_empty(), "docs/sim.md does not have {missing:?}");
}

/// Every scenario that comes with the simulator, for a tenth of a simulated second a second of it.
#[test]
fn the_examples_run() {
    let mut count = 0;
    for entry in fs::read_dir(here("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let mut model = anabranch_sim::scenario::load(&path, None).unwrap_or_else(|error| panic!("{error}"));
        let run = &mut model.run;
        (run.duration, run.warm_up, run.sampling) =
            (Duration::from_secs(5), Duration::ZERO, Duration::from_millis(100));
        let mut simulation =
            Simulation::new(model).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        simulation.run_until(simulation.end(), &mut ());
        let delivered = simulation.totals().flows.iter().map(|flow| flow.delivered.get()).sum::<u64>();
        assert!(delivered > 100_000, "{}: {delivered} bytes", path.display());
        count += 1;
    }
    assert!(count >= 5, "{count} examples");
}

#[test]
fn a_file_that_cannot_be_written_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let model = load("tests/mixed.toml", None);
    fs::write(directory.path().join("file"), "").unwrap();
    let error = Output::default().directory(&directory.path().join("file/below"), &model).unwrap_err();
    assert!(error.to_string().contains("cannot write") && error.to_string().contains("below"), "{error}");
    // A device that is always full.
    let full = Output::default().capture(Path::new("/dev/full"), &model).unwrap();
    let mut simulation = Simulation::new(model).unwrap();
    let mut full = full;
    simulation.run_until(simulation.end(), &mut full);
    assert!(full.failed());
    assert!(full.wants_packets(), "what was asked for stays");
    let summary = Summary::new("test", simulation.model(), simulation.now(), &simulation.totals());
    assert!(full.finish(&summary).unwrap_err().to_string().contains("/dev/full"));
}

#[test]
fn all_kinds_of_flows_get_on_over_links_that_reorder_and_duplicate() {
    for seed in 1..=4 {
        let mut model = load("tests/mixed.toml", Some(seed));
        for link in &mut model.links {
            let spread = Spread::Exponential { mean: Duration::from_millis(3) };
            link.jitter = Some(Jitter { spread, reorders: true });
            link.duplicate = 0.1;
        }
        let files = run(model.clone(), Duration::MAX);
        let summary: serde_json::Value = serde_json::from_slice(&files["summary.json"]).unwrap();
        for flow in summary["flows"].as_array().unwrap() {
            assert!(flow["delivered_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "seed {seed}: {flow}");
        }
        assert!(files == run(model, Duration::from_millis(70)), "seed {seed} gives the same bytes again");
    }
}
