//! The simulator held against ns-2: the same scenarios, the same metrics, and how far apart they are.
//!
//! Every scenario runs by the rules of the RFCs, which is what programs use, and by those of ns-2 (see
//! [`anabranch_sim::model::Recovery`] and [`anabranch_congestion::tfrc::Parameters::NS2`]), which shows which
//! differences come from there.

mod finding;
mod job;
mod network;
mod r1;
mod r2;
mod r3;
mod r4;
mod r5;
mod r6;
mod reference;
mod table;

use std::collections::BTreeMap;

use anabranch_sim::model::Recovery;

use crate::experiment::{Experiment, Job, Jobs};
use crate::papers;
use crate::results::Results;
use crate::run::{RunError, RunOptions, run};
use crate::scheme;
use job::RECOVERIES;
use reference::{Metrics, Summary, configurations, setting, windows};

pub use finding::{Finding, Ns2Comparison};
pub use table::{everything, page, summary};

/// A group of scenarios: what ns-2 gave by configuration, and how one of them is run.
struct Group {
    name: &'static str,
    reference: BTreeMap<String, Metrics>,
    jobs: fn(configuration: &str, seed: u64, recovery: Recovery) -> Option<Job>,
}

/// Reads a file of the reference; phases become part of the metrics' names.
fn reference_of(file: &str) -> BTreeMap<String, Metrics> {
    let mut found: BTreeMap<String, Metrics> = BTreeMap::new();
    for (configuration, metrics) in configurations(file) {
        match configuration.split_once(" phase=") {
            None => {
                found.insert(configuration, metrics);
            }
            Some((before, phase)) => {
                let with_phase =
                    metrics.into_iter().map(|(name, summary)| (format!("{phase}/{name}"), summary));
                found.entry(before.to_owned()).or_default().extend(with_phase);
            }
        }
    }
    found
}

/// What the traces have to show: nineteen samples of twenty within a segment, and the same number of
/// reductions.
fn reference_of_traces() -> BTreeMap<String, Metrics> {
    let metrics = |last: &reference::Window| {
        let exact = |mean| Summary { mean, sd: 0.0 };
        Metrics::from([
            ("samples_within_a_segment".to_owned(), exact(1.0)),
            ("cuts".to_owned(), exact(last.cuts)),
            ("timeouts".to_owned(), exact(last.timeouts)),
        ])
    };
    windows()
        .iter()
        .filter_map(|(label, trace)| Some(((*label).to_owned(), metrics(trace.last()?))))
        .collect()
}

fn trace_job(configuration: &str, _seed: u64, recovery: Recovery) -> Option<Job> {
    let (label, trace) = windows().into_iter().find(|(label, _)| *label == configuration)?;
    Some(r6::run(label, trace, recovery))
}

fn groups() -> Vec<Group> {
    let of = |name, file, jobs| Group { name, reference: reference_of(file), jobs };
    vec![
        of("R1", "r1_multitcp.csv", |c, seed, r| Some(r1::run(c, seed, r))),
        of("R1 variants", "r1_multitcp_variants.csv", |c, seed, r| Some(r1::run(c, seed, r))),
        of("R2", "r2_tcp_loss.csv", |c, seed, r| Some(r2::run(c, seed, r))),
        of("R3 TFRC", "r3_tfrc_wireless.csv", |c, seed, r| Some(r3::wireless(c, seed, r))),
        of("R3 table V", "r3_tableV_tcp.csv", |c, seed, r| Some(r3::table_v(c, seed, r))),
        of("R4", "r4_vps_baseline.csv", |c, seed, r| Some(r4::run(c, seed, r))),
        of("R5 dumbbell", "r5_dumbbell.csv", |c, seed, r| Some(r5::dumbbell(c, seed, r, false))),
        of("R5 overhead", "r5_dumbbell_overhead.csv", |c, seed, r| Some(r5::dumbbell(c, seed, r, true))),
        of("R5 SlowCC", "r5_slowcc.csv", |c, seed, r| Some(r5::slow_cc(c, seed, r))),
        Group { name: "R6", reference: reference_of_traces(), jobs: trace_job },
    ]
}

/// The names of the groups of scenarios.
pub fn names() -> Vec<&'static str> {
    groups().iter().map(|group| group.name).collect()
}

/// Runs the scenarios of the groups whose names begin with one of `wanted` (all if there is none) and
/// compares.
///
/// # Errors
/// As [`run`].
pub fn validate(wanted: &[String], options: &RunOptions<'_>) -> Result<Vec<Ns2Comparison>, RunError> {
    let mut groups = groups();
    groups
        .retain(|group| wanted.is_empty() || wanted.iter().any(|name| group.name.starts_with(name.as_str())));
    let experiments: Vec<Experiment> = groups.iter().map(experiment).collect();
    let results = run(&experiments, options)?;
    let mut comparisons: Vec<_> =
        groups.iter().zip(&results).flat_map(|(group, results)| compare(group, results)).collect();
    let explained: Vec<_> =
        comparisons.iter().map(|one| one.is_phase_effect || is_dephased(one, &comparisons)).collect();
    for (comparison, is_phase_effect) in comparisons.iter_mut().zip(explained) {
        comparison.is_phase_effect = is_phase_effect;
    }
    Ok(comparisons)
}

/// Whether the same comparison agrees where a random delay of sending takes the phases away: then it was they
/// that made the difference.
fn is_dephased(comparison: &Ns2Comparison, all: &[Ns2Comparison]) -> bool {
    let (group, configuration) = match comparison.group {
        "R5 dumbbell" => ("R5 overhead", comparison.configuration.clone()),
        "R1" | "R1 variants" => {
            let label = setting(&comparison.configuration, "label");
            let windows = label.split_once('_').map_or(label, |(windows, _)| windows);
            let delayed = comparison.configuration.replacen(label, &format!("{windows}_fastjit"), 1);
            ("R1 variants", delayed)
        }
        _ => return false,
    };
    let same = |other: &&Ns2Comparison| {
        other.group == group && other.configuration == configuration && other.metric == comparison.metric
    };
    let agrees = |other: &Ns2Comparison| matches!(other.finding(), Finding::Within | Finding::Ns2Rules);
    all.iter().find(same).is_some_and(agrees)
}

fn experiment(group: &Group) -> Experiment {
    let configurations: Vec<String> = group.reference.keys().cloned().collect();
    let jobs = group.jobs;
    Experiment {
        id: group.name.to_string(),
        title: "".into(),
        paper: papers::of("multitcp"),
        place: "".into(),
        claim: "".into(),
        assumed: Vec::new(),
        random: group.name != "R6",
        least_seeds: 1,
        jobs: Jobs::new(move |seed| {
            let of = |configuration: &String| {
                let job = |(_, recovery)| jobs(configuration, seed, recovery);
                RECOVERIES.into_iter().filter_map(job).collect::<Vec<_>>()
            };
            configurations.iter().flat_map(of).collect()
        }),
        real_relations: Vec::new(),
        relations: Vec::new(),
        plots: Vec::new(),
        tables: Vec::new(),
    }
}

fn compare(group: &Group, results: &Results) -> Vec<Ns2Comparison> {
    let mut comparisons = Vec::new();
    for (configuration, metrics) in &group.reference {
        for (metric, summary) in metrics {
            let [measured, with_ns2_rules] = RECOVERIES.map(|(variant, _)| {
                let setting = job::setting(configuration, variant);
                let value = |seed: crate::results::OneSeed<'_>| {
                    seed.setting(&setting).figure(scheme::SACK, 0.0, metric)
                };
                results.estimate(value).0.map(|estimate| estimate.mean)
            });
            // The reference's spreads and ratios between its own columns are not compared.
            let (Some(measured), Some(with_ns2_rules)) = (measured, with_ns2_rules) else { continue };
            comparisons.push(Ns2Comparison {
                group: group.name,
                configuration: configuration.clone(),
                metric: metric.clone(),
                reference: summary.mean,
                tolerance: (0.05 * summary.mean.abs()).max(3.0 * summary.sd),
                measured,
                with_ns2_rules,
                is_phase_effect: is_phase_effect(configuration, metric),
            });
        }
    }
    comparisons
}

/// The phases with TCPs of MultiTCP's dumbbell with every link at the same rate: "no target" by the
/// reference's README, unless the sender's processing takes a random time and the access links are fast.
fn is_phase_effect(configuration: &str, metric: &str) -> bool {
    let is_dephased = configuration.contains("fastjit") && setting(configuration, "gen_delay_ms") == "20";
    metric.starts_with("tcp") && metric.contains('/') && !is_dephased
}
