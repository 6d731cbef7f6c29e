//! Grids of paths: what counts in a number of many paths.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::sync::atomic::AtomicBool;

use anabranch_lab::outcome::{Outcome, Verdict};
use anabranch_lab::papers::Papers;
use anabranch_lab::plan::load_all;
use anabranch_lab::results::Results;
use anabranch_lab::simulate::simulate;

const SCENARIO: &str = r#"
[run]
duration = "10s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "path"
from = "a"
to = "b"
rate = "1Mbps"
delay = "10ms"
[[flow]]
name = "stream"
kind = "udp"
from = "a"
to = "b"
rate = "500k"
"#;

/// A stream of 500 kbps over links of 100, 200 and 1000 kbps or half of each, and on some one of 50 kbps.
const PLAN: &str = r#"
title = ""
place = ""
claim = ""
random = false
scenario = "scenario.toml"

[[scheme]]
name = "first"

[[scheme]]
name = "second"
set = { "flow.stream.rate" = "50k" }

[grid]
paths = 24
quick = 1
seed = 1
halves = 2
fixed = ["first"]
holds = "throughput"
on_first = { paths = 8, schemes = ["second"] }

[grid.computed]
"link.path.rate" = { value = "rate", unit = "kbps" }

[[axis]]
name = "rate"
values = [100, 200, 1000]

[[axis]]
name = "part"
values = [{ label = "whole" }, { label = "half", set = { "link.path.delay" = "20ms" }, computed = { "link.path.rate" = { value = "0.5 * rate", unit = "kbps" } } }]

[[figure]]
name = "throughput"
measure = "throughput"
flows = ["stream"]
unit = "kbps"
"#;

/// Reads and runs the plan with a relation of these keys, which has to be about so much.
fn verdict(keys: &str, expected: f64) -> Result<Verdict, String> {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("mine/grid");
    fs::create_dir_all(&folder).unwrap();
    let relation = format!(
        "{PLAN}\n[[relation]]\nid = \"n\"\nclaim = \"\"\nours = true\nhalf = \"chosen\"\n{keys}\n\
         expect = {{ about = {expected}, within = 0.05 }}\n"
    );
    fs::write(directory.path().join("mine/paper.toml"), "name = \"Mine\"\nplace = 9\ncitation = \"\"\n")
        .unwrap();
    fs::write(folder.join("plan.toml"), relation).unwrap();
    fs::write(folder.join("scenario.toml"), SCENARIO).unwrap();
    let all = load_all(&Papers::At(directory.path().to_owned())).map_err(|error| error.to_string())?;
    let experiment = all.into_iter().find(|one| one.id == "mine-grid").unwrap();
    let mut results = Results::default();
    for job in experiment.jobs.of(1).unwrap() {
        let simulated = job.models.iter().map(|model| {
            simulate(model, job.decisions, &AtomicBool::new(false)).unwrap().expect("it was not stopped")
        });
        let measured = (job.measure)(&simulated.collect::<Vec<_>>());
        assert!(results.add(1, job.case, measured), "a case is there twice");
    }
    Ok(Outcome::of(&experiment, &results).verdicts[0].verdict)
}

#[test]
fn only_paths_with_the_values_that_are_meant_count() {
    for (keys, expected) in [
        ("take = \"largest\"", 500.0),
        ("take = \"largest\"\nonly = { rate = \"200\" }", 200.0),
        ("take = \"least\"\nonly = { rate = [\"200\", \"1000\"] }", 100.0),
        ("take = \"least\"\nonly = { rate = [\"200\", \"1000\"], part = \"whole\" }", 200.0),
    ] {
        let keys = format!("scheme = \"first\"\nvalue = \"throughput\"\n{keys}");
        assert_eq!(verdict(&keys, expected), Ok(Verdict::Reproduces), "{keys}");
    }
}

#[test]
fn a_scheme_on_the_first_paths_stands_beside_another_on_the_same_paths() {
    let of = |scheme: &str, value: &str, take: &str, expected: f64| {
        let keys = format!("scheme = \"{scheme}\"\nvalue = \"{value}\"\ntake = \"{take}\"");
        assert_eq!(verdict(&keys, expected), Ok(Verdict::Reproduces), "{keys}");
    };
    // Half of the paths are chosen: some of the first eight, and twelve of all.
    of("first", "throughput", "count", 12.0);
    of("second", "{second throughput}", "largest", 50.0);
    of("second", "{first throughput} - throughput", "largest", 450.0);
    let keys = "scheme = \"second\"\nvalue = \"throughput\"\ntake = \"count\"";
    let on_chosen = (1..=8).find(|count| verdict(keys, f64::from(*count)) == Ok(Verdict::Reproduces));
    assert!(on_chosen.is_some(), "it has run on other paths than the first eight");
}

#[test]
fn a_value_or_an_axis_that_is_not_there_is_told() {
    let said = |only: &str| {
        let keys =
            format!("scheme = \"first\"\nvalue = \"throughput\"\ntake = \"least\"\nonly = {{ {only} }}");
        verdict(&keys, 1.0).unwrap_err()
    };
    assert!(said("part = \"hole\"").contains("did you mean 'whole'"), "{}", said("part = \"hole\""));
    assert!(said("rat = \"100\"").contains("did you mean 'rate'"), "{}", said("rat = \"100\""));
}
