//! The experiments: one file for each published result or family of results.

mod describe;
mod draw;
mod multfrc;
mod multitcp;
mod multitcp_eq6_4;
mod rome;
mod ttfwc;
mod vps;

use crate::experiment::Experiment;

/// Every experiment, by paper and place.
pub fn all() -> Vec<Experiment> {
    let mut all = multitcp::experiments();
    all.push(multitcp_eq6_4::experiment());
    all.extend(rome::experiments());
    all.extend(multfrc::experiments());
    all.extend(vps::experiments());
    all.extend(ttfwc::experiments());
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_experiment_holds_together() {
        let mut ids = BTreeSet::new();
        for experiment in all() {
            let id = experiment.id;
            assert!(ids.insert(id), "{id} is there twice");
            assert!(
                id.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-')),
                "{id} is a file's name"
            );
            assert!(!experiment.relations.is_empty(), "{id} checks nothing");
            let mut files: Vec<&str> = experiment.plots.iter().map(|plot| &*plot.id).collect();
            files.extend(experiment.tables.iter().map(|table| &*table.id));
            files.push("runs");
            assert_eq!(files.iter().collect::<BTreeSet<_>>().len(), files.len(), "{id}: {files:?}");
            for table in &experiment.tables {
                let widths = table.rows.iter().map(|row| row.cells.len() + 1);
                assert!(widths.into_iter().all(|width| width == table.columns.len()), "{id}: {}", table.id);
            }
            for job in (experiment.jobs)(1) {
                for model in job.models {
                    if let Err(error) = sim::Simulation::new(model) {
                        panic!("{id}, {}: {:?}: {error}", job.case, error.place);
                    }
                }
            }
        }
    }
}
