//! The simulator beside ns-2, in the scenarios that take seconds. `anabranch lab validate` runs all of them
//! with more seeds.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use anabranch_lab::RunOptions;
use anabranch_lab::validation::{Finding, Ns2Comparison, validate};

fn compare(groups: &[&str], seeds: u64) -> Vec<Ns2Comparison> {
    let groups: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
    let jobs = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let stop = AtomicBool::new(false);
    let options = RunOptions { seeds, quick: false, jobs, cache: None, stop: &stop, progress: &|_| () };
    validate(&groups, &options).expect("possible models")
}

#[test]
fn congestion_windows_follow_those_of_ns2_segment_by_segment() {
    let comparisons = compare(&["R6"], 1);
    assert_eq!(comparisons.len(), 18);
    for comparison in comparisons {
        // Slow start's overflow is repaired as RFC 6675 says, and by ns-2's rules as in ns-2.
        let expected: &[Finding] = if comparison.configuration.starts_with("ss64") {
            &[Finding::Within]
        } else {
            &[Finding::Within, Finding::Ns2Rules]
        };
        assert!(expected.contains(&comparison.finding()), "{comparison:?}");
    }
}

#[test]
fn losses_fairness_and_rates_are_those_of_ns2() {
    let comparisons = compare(&["R2", "R5 overhead", "R5 SlowCC"], 2);
    assert!(comparisons.len() > 200, "{}", comparisons.len());
    let differing: Vec<_> =
        comparisons.iter().filter(|comparison| comparison.finding() == Finding::Differs).collect();
    for comparison in &differing {
        let main = ["goodput_kbps", "sendrate_kbps", "util", "util_idle_wire", "loss_rate", "jain"];
        assert!(!main.contains(&comparison.metric.as_str()), "{comparison:?}");
    }
    assert!(differing.len() * 20 < comparisons.len(), "{differing:#?}");
}

#[test]
fn a_comparison_that_is_far_off_differs() {
    let mut one = compare(&["R6"], 1).remove(0);
    (one.measured, one.with_ns2_rules, one.is_phase_effect) =
        (2.0 * one.reference + 1.0, 2.0 * one.reference + 1.0, false);
    assert_eq!(one.finding(), Finding::Differs);
    one.with_ns2_rules = one.reference;
    assert_eq!(one.finding(), Finding::Ns2Rules);
    one.measured = one.reference + one.tolerance;
    assert_eq!(one.finding(), Finding::Within);
}
