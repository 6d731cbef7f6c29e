//! The search of what a paper leaves open.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anabranch_lab::RunOptions;
use anabranch_lab::readings::Search;

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
    let search = Search::load("mine", Some(directory.path())).unwrap();
    assert_eq!(search.sets(), 4);
    let found = search
        .run(&RunOptions {
            seeds: 1,
            quick: false,
            jobs: NonZeroUsize::MIN,
            cache: None,
            stop: &AtomicBool::new(false),
            progress: &|_| {},
        })
        .unwrap();
    let table = found.table();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "link,delay,reproduce,one,two");
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[1].starts_with("\"wide in one, that is\",short,"), "{table}");
    assert!(lines[2].starts_with("narrow,short,0,0,0"), "{table}");
    assert!(found.best(1).starts_with(lines[1].rsplit(',').nth(2).unwrap()), "{}", found.best(1));
    assert!(found.relations().contains("two,\"wide in one"), "{}", found.relations());
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
    ] {
        written(directory.path(), &wrong);
        let error = Search::load("mine", Some(directory.path())).err().map(|error| error.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains(told)), "{told}: {error:?}");
    }
}
