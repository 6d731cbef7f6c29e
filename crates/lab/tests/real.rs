//! Real runs, with a program in the testbed's place that writes what it is told to: how runs are made, kept,
//! stopped and reported.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_lab::case::{Case, Measured};
use anabranch_lab::experiment::{Axis, Curve, Expected, Experiment, Job, Jobs, Plot, Points, Relation};
use anabranch_lab::outcome::Outcome;
use anabranch_lab::papers;
use anabranch_lab::real::{Observed, Real, RealOptions, Testbed, Trial};
use anabranch_lab::results::Results;
use anabranch_lab::scheme::{N1, N2, Scheme};
use anabranch_lab::{Progress, RunError, RunOptions, files};
use anabranch_units::Duration;

/// Is asked `check`, or to `run SCENARIO --anabranch FILE --out DIR`. Every run leaves a line in `runs`; the
/// scenario says what it does.
const TESTBED: &str = r#"#!/bin/sh
case $1 in
check) exit 0 ;;
esac
echo run >> "$(dirname "$0")/runs"
cd "$6" && . "$2"
"#;
const TRAFFIC: &str = r#"
printf 'time_s,path,flow,payload_bps,network_bps,packets_sent,packets_arrived\n' > traffic.csv
printf '1.001,main,film,300000,310000,30,30\n2.002,main,film,500000,510000,50,50\n' >> traffic.csv
"#;

fn testbed(directory: &Path) -> Testbed {
    let program = directory.join("testbed");
    fs::write(&program, TESTBED).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Testbed::find(Some(program)).unwrap()
}

/// How many runs were made.
fn runs(directory: &Path) -> usize {
    fs::read_to_string(directory.join("runs")).map_or(0, |runs| runs.lines().count())
}

fn read(observed: &Observed) -> Result<Measured, String> {
    let rows = observed.traffic("film")?;
    let rates: Vec<f64> = rows.iter().map(|row| row.payload_bps / 1e3).collect();
    Ok(Measured::default()
        .figure("rate", rates.iter().sum::<f64>() / rates.len() as f64, "kbps")
        .series("course", rows.iter().map(|row| (row.time_s.round(), row.payload_bps / 1e3))))
}

fn trial(scheme: Scheme, scenario: &str) -> Trial {
    Trial {
        case: Case::new(scheme, 1.0),
        scenario: scenario.into(),
        files: vec![("beside.txt", "what is beside".into())],
        kernel: Vec::new(),
        programs: None,
        duration: Duration::from_secs(2),
        reading: Box::new(read),
    }
}

fn real(scenario: &'static str) -> Real {
    Real {
        differs: vec!["a <real> path".into()],
        needs: &["sh"],
        trials: Box::new(move |_| Ok(vec![trial(N1, scenario), trial(N2, scenario)])),
    }
}

fn made(
    directory: &Path,
    real: Real,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Results, RunError> {
    let testbed = testbed(directory);
    let (out, cache) = (directory.join("out"), directory.join("out/runs"));
    let options = RealOptions { seeds: 1, testbed: &testbed, directory: &out, cache: &cache, stop, progress };
    anabranch_lab::real::run(&[("synthetic".into(), real)], &options).map(|mut results| results.remove(0))
}

#[test]
fn finished_runs_are_not_repeated_and_a_run_finds_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = concat!(
        "test \"$(cat '{here}/beside.txt')\" = 'what is beside' || exit 1\n",
        "printf 'time_s,path,flow,payload_bps,network_bps,packets_sent,packets_arrived\\n1.0,main,film,300000,310000,30,30\\n' > traffic.csv"
    );
    let go = || made(directory.path(), real(scenario), &AtomicBool::new(false), &|_| ()).unwrap();
    let results = go();
    assert_eq!(results.runs().count(), 2);
    let seed = results.each_seed().next().unwrap();
    assert_eq!(seed.figure(N2, 1.0, "rate"), Some(300.0));
    assert_eq!(runs(directory.path()), 2);
    go();
    assert_eq!(runs(directory.path()), 2, "a finished run was made again");
    assert!(directory.path().join("out/synthetic/measured/n-1-at-1-seed-1/testbed.log").exists());
}

#[test]
fn a_run_is_stopped_in_its_middle_and_the_rest_made_later() {
    let directory = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let slow = Real {
        trials: Box::new(|_| Ok(vec![trial(N1, TRAFFIC), trial(N2, "exec sleep 100")])),
        ..real(TRAFFIC)
    };
    let progress = |progress: Progress| stop.store(progress.done == 1, Ordering::Relaxed);
    let stopped = made(directory.path(), slow, &stop, &progress).unwrap_err();
    assert!(matches!(stopped, RunError::Stopped { done: 1, total: 2 }), "{stopped}");
    let before = runs(directory.path());
    made(directory.path(), real(TRAFFIC), &AtomicBool::new(false), &|_| ()).unwrap();
    assert_eq!(runs(directory.path()), before + 1, "the first run was there, the second one was not");
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let failed = |scenario| {
        made(directory.path(), real(scenario), &AtomicBool::new(false), &|_| ()).unwrap_err().to_string()
    };
    let said = failed("echo 'no such path' >&2; exit 3");
    assert!(
        said.contains("synthetic, N = 1 at 1, seed 1, measured") && said.contains("no such path"),
        "{said}"
    );
    let said = failed("echo > traffic.csv");
    assert!(said.contains("traffic.csv has nothing of 'film'"), "{said}");
    let missing = Testbed::find(Some(directory.path().join("none"))).unwrap();
    let said = missing.check(&["sh"]).unwrap_err().to_string();
    assert!(said.contains("--testbed FILE"), "{said}");
    let said = testbed(directory.path()).check(&["sh", "no-such-program"]).unwrap_err().to_string();
    assert!(said.contains("apt-get install no-such-program"), "{said}");
}

#[test]
fn the_testbed_knows_every_scenario() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.toml");
    for id in anabranch_lab::experiments::REAL {
        for trial in (anabranch_lab::experiments::real(id).unwrap().trials)(1).unwrap() {
            fs::write(&file, &trial.scenario).unwrap();
            if let Err(error) = anabranch_testbed::scenario::Scenario::load(&file) {
                panic!("{id}, {}: {error}", trial.case);
            }
        }
    }
}

/// Simulated, the rate is 200 kbps.
fn experiment() -> Experiment {
    let curve = |points| Curve { label: "one".into(), look: N1, points };
    let plot = |id: &str, points| Plot {
        id: id.into(),
        title: id.into(),
        x: Axis::new("x", ""),
        y: Axis::new("rate", "kbps"),
        curves: vec![curve(points)],
    };
    Experiment {
        id: "synthetic".into(),
        title: "Synthetic".into(),
        paper: papers::of("multitcp"),
        place: "nowhere".into(),
        claim: "nothing".into(),
        assumed: Vec::new(),
        random: false,
        least_seeds: 1,
        jobs: Jobs::new(|_| {
            let job = |scheme| Job {
                case: Case::new(scheme, 1.0),
                models: Vec::new(),
                decisions: &[],
                measure: Box::new(|_| {
                    Measured::default().figure("rate", 200.0, "kbps").series("course", [(1.0, 200.0)])
                }),
            };
            vec![job(N1), job(N2)]
        }),
        real_relations: vec![Relation::new(
            ("time", "the time of a call", "400 ns", "ns"),
            |seed| seed.figure(N1, 1.0, "rate"),
            Expected::AtMost(400.0),
        )],
        relations: vec![Relation::new(
            ("rate", "the rate", "200 kbps", "kbps"),
            |seed| seed.figure(N1, 1.0, "rate"),
            Expected::Between(200.0, 200.0),
        )],
        plots: vec![
            plot("rates", Points::Figure { scheme: N1, setting: String::new(), name: "rate".into() }),
            plot(
                "courses",
                Points::Series { scheme: N1, setting: String::new(), point: 1.0, name: "course".into() },
            ),
        ],
        tables: Vec::new(),
    }
}

#[test]
fn what_was_measured_stands_beside_what_was_simulated() {
    let directory = tempfile::tempdir().unwrap();
    let measured = made(directory.path(), real(TRAFFIC), &AtomicBool::new(false), &|_| ()).unwrap();
    let options = RunOptions {
        seeds: 1,
        quick: false,
        jobs: std::num::NonZeroUsize::MIN,
        cache: None,
        stop: &AtomicBool::new(false),
        progress: &|_| (),
    };
    let experiment = experiment();
    let simulated = anabranch_lab::run(std::slice::from_ref(&experiment), &options).unwrap().remove(0);
    let out = directory.path().join("out");
    let outcome = files::write(&out, &experiment, &simulated, Some((&real(TRAFFIC), &measured))).unwrap();
    let row = &outcome.measured.as_ref().unwrap().rows[0];
    assert_eq!((&*row.figure, row.measured.mean, row.ratio()), ("rate", 400.0, Some(2.0)));
    let judged = |outcome: &Outcome| -> Vec<f64> {
        outcome.verdicts.iter().map(|judgement| judgement.measured.unwrap().mean).collect()
    };
    assert_eq!(
        judged(&outcome),
        [200.0, 400.0],
        "a verdict is that of the simulation, or of real runs alone"
    );

    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let kept: Outcome = serde_json::from_str(&read("synthetic/outcome.json")).unwrap();
    assert_eq!(kept, outcome);
    assert!(read("synthetic/measured.csv").contains(",N = 1,1,1,rate,400,kbps"));
    assert!(read("synthetic/runs.csv").contains(",N = 1,1,1,rate,200,kbps"));
    let course = read("synthetic/courses.csv");
    assert!(course.contains("\none,1,200,") && course.contains("\n\"one, measured\",2,500,"), "{course}");
    assert!(read("synthetic/rates.svg").contains(">one, measured</text>"));
    files::bind(&out).unwrap();
    let page = read("multitcp.html");
    for text in
        ["Simulated and measured", "anabranch lab run synthetic --real --real-seeds 1", "a &lt;real&gt; path"]
    {
        assert!(page.contains(text), "{text}");
    }
    let page = anabranch_lab::reproduction::page(std::slice::from_ref(&outcome));
    assert!(page.contains("Of 2 ratios 0 lie within a fifth of one."), "{page}");
    assert!(page.contains("| rate | 200.0 kbps | 400.0 | 2.00 |"), "{page}");
    // Without real runs nothing of them is told.
    let without = files::write(&out, &experiment, &simulated, None).unwrap();
    assert_eq!(without.measured, None);
    assert_eq!(judged(&without), [200.0]);
    files::bind(&out).unwrap();
    assert!(!read("multitcp.html").contains("Simulated and measured"));
}

#[test]
fn the_mean_of_a_flow_is_of_the_seconds_that_count() {
    let directory = tempfile::tempdir().unwrap();
    let head = "time_s,path,flow,payload_bps,network_bps,packets_sent,packets_arrived";
    let rows = "1,main,film,9,0,0,0\n2,main,film,3,0,0,0\n2,main,tcp,100,0,0,0\n3,main,film,5,0,0,0";
    fs::write(directory.path().join("traffic.csv"), format!("{head}\n{rows}\n")).unwrap();
    let observed = Observed::new(directory.path());
    assert_eq!(observed.mean("film", &(1.5..3.5), |row| row.payload_bps), Ok(4.0));
    let missing = observed.mean("tcp", &(2.5..3.5), |row| row.payload_bps).unwrap_err();
    assert!(missing.contains("'tcp'") && missing.contains("2.5..3.5"), "{missing}");
}
