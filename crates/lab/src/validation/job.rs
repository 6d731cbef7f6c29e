//! A scenario of the validation as a job of the lab.

use anabranch_sim::model::Recovery;

use super::network::Network;
use crate::case::{Case, Measured};
use crate::experiment::Job;
use crate::scheme;
use crate::simulate::Recording;

/// The variants of every scenario: TCP's recovery, and with it the rules of TFRC.
pub(super) const RECOVERIES: [(&str, Recovery); 2] = [("RFC", Recovery::Sack), ("ns-2", Recovery::Ns2Sack1)];

/// Turns a scenario into a job of the lab.
pub(super) fn job(
    configuration: &str,
    recovery: Recovery,
    network: Network,
    decisions: &'static [&'static str],
    measure: impl Fn(&Recording) -> Measured + Send + Sync + 'static,
) -> Job {
    let variant = RECOVERIES.iter().find(|(_, other)| *other == recovery).map_or("", |(name, _)| *name);
    Job {
        case: Case { setting: setting(configuration, variant), scheme: scheme::SACK, point: 0.0 },
        models: vec![network.model],
        decisions,
        measure: Box::new(move |recordings| recordings.first().map(&measure).unwrap_or_default()),
    }
}

/// A configuration with one of the recoveries.
pub(super) fn setting(configuration: &str, recovery: &str) -> String {
    format!("{configuration}, {recovery}")
}

/// The sum of a quantity over samples.
pub(super) fn phase_sum<'a, T: 'a>(
    samples: impl Iterator<Item = &'a T>,
    quantity: impl Fn(&T) -> u64,
) -> u64 {
    samples.map(quantity).sum()
}
