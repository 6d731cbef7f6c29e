//! Every experiment of the papers, shortly: it runs, its figures are numbers, and its relations are judged.

use std::sync::atomic::AtomicBool;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::outcome::Outcome;
use anabranch_lab::results::Results;
use anabranch_lab::simulate::simulate;
use anabranch_units::Duration;

/// Runs the first seconds of every job of seed 1.
fn shortly(experiment: &Experiment) -> Results {
    let mut results = Results::default();
    for mut job in experiment.jobs.of(1).expect("a plan that was read") {
        let mut recordings = Vec::new();
        for model in &mut job.models {
            model.run.duration = Duration::from_secs(4);
            model.run.warm_up = model.run.warm_up.min(Duration::from_secs(2));
            let recording =
                simulate(model, job.decisions, &AtomicBool::new(false)).expect("a possible model");
            recordings.push(recording.expect("it was not stopped"));
        }
        let measured = (job.measure)(&recordings);
        assert!(!measured.figures.is_empty(), "{}, {}: nothing measured", experiment.id, job.case);
        assert!(
            measured.figures.iter().all(|(_, value, _)| value.is_finite()),
            "{}: {measured:?}",
            experiment.id
        );
        let case = job.case.to_string();
        assert!(results.add(1, job.case, measured), "{}, {case}: twice", experiment.id);
    }
    results
}

#[test]
fn every_experiment_of_a_paper_runs() {
    let of_a_paper = |experiment: &Experiment| {
        ["multitcp-", "rome-", "multfrc-", "vps-", "ttfwc-"]
            .iter()
            .any(|paper| experiment.id.starts_with(paper))
    };
    let experiments: Vec<_> =
        anabranch_lab::experiments::all(None).unwrap().into_iter().filter(of_a_paper).collect();
    assert_eq!(experiments.len(), 56);
    for experiment in experiments {
        let outcome = Outcome::of(&experiment, &shortly(&experiment));
        assert_eq!(outcome.verdicts.len(), experiment.relations.len());
        let stalls = outcome.tables.iter().flat_map(|table| &table.rows).flat_map(|(_, cells)| cells);
        assert!(stalls.into_iter().any(|cell| cell.measured.is_some()), "{}: empty tables", experiment.id);
    }
}
