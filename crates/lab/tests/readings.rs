//! The search of what a paper leaves open.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anabranch_lab::RunOptions;
use anabranch_lab::readings::{Found, ReadingsError, Search};

const PUBLISHED: &str =
    "name,x,value,told,place\nwhole,,1,all of it,section 1\nall,,1,,section 1\ncurve,500,500,,figure 1\n";

/// A link of 1 Mbps, and a stream that is whole over links of its rate.
const READINGS: &str = r#"
[[open]]
name = "link"
experiments = ["one", "two"]

[[open.value]]
label = "narrow"
set = { "link.a-b.rate" = "100kbps" }

[[open.value]]
label = "wide in one, that is"

[[open.value.part]]
experiments = ["one"]
set = { "link.a-b.rate" = "9Mbps" }

[[open.value.part]]
experiments = ["two"]
schemes = ["second"]
set = { "link.a-b.rate" = "100kbps" }

[[open]]
name = "delay"
experiments = ["two"]

[[open.value]]
label = "short"

[[open.value]]
label = "long"
set = { "link.a-b.delay" = "20s" }
"#;

/// The same stream over a link as wide as what is computed from its rate.
const ONE_BY_ONE: &str = r#"
one_by_one = true
together = [{ "link" = "wide", "delay" = "long" }]

[[open]]
name = "link"
experiments = ["one"]

[[open.value]]
label = "1 Mbps"

[[open.value]]
label = "narrow"
set = { "link.a-b.rate" = "100kbps" }

[[open.value]]
label = "wide"
computed = { "link.a-b.rate" = { value = "2 * point", unit = "kbps" } }

[[open]]
name = "delay"
experiments = ["one", "two"]

[[open.value]]
label = "short"

[[open.value]]
label = "long"
set = { "link.a-b.delay" = "20s" }
"#;

fn found(search: Search) -> Found {
    let options = RunOptions {
        seeds: 1,
        quick: false,
        jobs: NonZeroUsize::MIN,
        cache: None,
        stop: &AtomicBool::new(false),
        progress: &|_| {},
    };
    search.run(&options).expect("runs that can be made")
}

fn written(directory: &Path, readings: &str) {
    for name in ["one", "two"] {
        let folder = directory.join("mine").join(name);
        fs::create_dir_all(&folder).expect("a directory that can be written");
        fs::write(folder.join("plan.toml"), include_str!("plan_folder/plan.toml"))
            .expect("a directory that can be written");
        fs::write(folder.join("scenario.toml"), include_str!("plan_folder/scenario.toml"))
            .expect("a directory that can be written");
        fs::write(folder.join("published.csv"), PUBLISHED).expect("a directory that can be written");
    }
    fs::write(directory.join("mine/paper.toml"), include_str!("plan_folder/paper.toml"))
        .expect("a directory that can be written");
    fs::write(directory.join("mine/readings.toml"), readings).expect("a directory that can be written");
}

#[test]
fn the_best_set_is_first_with_the_best_of_what_is_of_one_experiment() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), READINGS);
    let search = Search::load("mine", Some(directory.path()), &[]).unwrap();
    assert_eq!(search.sets(), 4);
    assert!(!search.is_one_by_one());
    let found = found(search);
    let table = found.table();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "link,delay,reproduce,one,two");
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[1].starts_with("\"wide in one, that is\",short,"), "{table}");
    assert!(lines[2].starts_with("narrow,short,0,0,0"), "{table}");
    let count = lines[1].rsplit(',').nth(2).unwrap();
    assert!(
        found.best(1).contains(&format!("| link: wide in one, that is | {count} |")),
        "{}",
        found.best(1)
    );
    assert!(found.relations().contains("two,\"wide in one"), "{}", found.relations());
}

#[test]
fn one_by_one_each_value_is_beside_the_first_ones_and_told_by_what_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), ONE_BY_ONE);
    let search = Search::load("mine", Some(directory.path()), &[]).unwrap();
    assert_eq!(search.sets(), 5);
    assert!(search.is_one_by_one());
    let best = found(search).best(5);
    let lines: Vec<&str> = best.lines().collect();
    // Of a slow stream all arrives but over the narrow link, and of a fast one half; within 20 s nothing.
    assert_eq!(lines[2], "| baseline | 2 |  |", "{best}");
    assert_eq!(lines[3], "| link: wide | 3 | `one` all reproduces (0.9984) |", "{best}");
    assert!(lines[4..].contains(&"| link: narrow | 1 | `one` whole differs (0.1984) |"), "{best}");
    let together = lines.iter().find(|line| line.starts_with("| link: wide; delay: long | 0 |"));
    assert!(together.is_some_and(|line| line.contains("`two` whole differs (0)")), "{best}");
    assert_eq!(lines.last(), Some(&"of 4 relations, in 5 sets"), "{best}");
}

#[test]
fn only_what_is_asked_for_is_searched() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), ONE_BY_ONE);
    let load = |only: &[&str]| {
        let only: Vec<String> = only.iter().map(|text| (*text).to_owned()).collect();
        Search::load("mine", Some(directory.path()), &only)
    };
    assert_eq!(load(&["wide"]).unwrap().sets(), 2);
    assert_eq!(load(&["delay"]).unwrap().sets(), 2);
    assert_eq!(load(&["wide", "long"]).unwrap().sets(), 4);
    let error = load(&["wide", "broad"]).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("'broad'") && error.contains("link; delay"), "{error}");
    written(directory.path(), READINGS);
    assert_eq!(load(&["delay"]).unwrap().sets(), 2);
}

#[test]
fn an_unknown_paper_is_told_with_those_that_there_are() {
    let error = Search::load("eifel", None, &[]).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("'eifel'"), "{error}");
    assert!(error.ends_with("multfrc, multitcp, rome, ttfwc, vps"), "{error}");
    // One that leaves nothing open.
    assert!(matches!(Search::load("criteria", None, &[]), Err(ReadingsError::Unknown { .. })));
}

#[test]
fn what_the_papers_leave_open_fits_to_their_experiments() {
    for (paper, sets) in [("multfrc", 17), ("ttfwc", 10), ("vps", 9)] {
        let search = Search::load(paper, None, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(search.sets(), sets, "{paper}");
    }
    for paper in ["multitcp", "rome"] {
        assert!(Search::load(paper, None, &[]).is_ok(), "{paper}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    for (wrong, told) in [
        (READINGS.replace("label = \"short\"", "labels = \"short\""), "label"),
        (READINGS.replace("\"second\"", "\"N = 99\""), "N = 99"),
        (READINGS.replace("link.a-b.delay", "link.a-c.delay"), "a-c"),
        (READINGS.replace("[\"two\"]", "[\"three\"]"), "three"),
        ("[[open]]\nname = \"x\"\nexperiments = []\n".into(), "value"),
        (ONE_BY_ONE.replace("{ \"link\" = \"wide\"", "{ \"links\" = \"wide\""), "'links'"),
        (ONE_BY_ONE.replace("\"delay\" = \"long\"", "\"delay\" = \"wide\""), "'wide'"),
        (ONE_BY_ONE.replace("one_by_one = true", ""), "one_by_one"),
        (ONE_BY_ONE.replace("2 * point", "2 * rate"), "point"),
    ] {
        written(directory.path(), &wrong);
        let error = Search::load("mine", Some(directory.path()), &[]).err().map(|error| error.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains(told)), "{told}: {error:?}");
    }
}
