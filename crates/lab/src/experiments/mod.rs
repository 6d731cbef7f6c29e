//! The experiments, which are folders in `papers/`, and the drivers of those that real programs can run as
//! well.

mod field;
mod multfrc;
mod multitcp;
mod rome;
mod ttfwc;
mod vps;

use std::path::Path;

use anabranch_sim::scenario::Error;

use crate::experiment::Experiment;
use crate::papers::Papers;
use crate::plan;
use crate::real::Real;
use crate::scheme::{TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};

/// Every experiment: those of the built-in folders, and those of the folders in a directory, which take the
/// place of others with their names. By paper.
///
/// # Errors
/// A folder cannot be read, or something in it is wrong; the error says where.
pub fn all(directory: Option<&Path>) -> Result<Vec<Experiment>, Error> {
    let mut all = plan::load_all(&Papers::BuiltIn)?;
    if let Some(directory) = directory {
        for experiment in plan::load_all(&Papers::At(directory.to_owned()))? {
            all.retain(|known| known.id != experiment.id);
            all.push(experiment);
        }
    }
    all.sort_by(|one, other| one.paper.cmp(&other.paper));
    Ok(all)
}

/// The experiments that real programs can run as well.
pub const REAL: [&str; 27] = [
    "field-film",
    "field-crowd",
    "multitcp-fig8.2",
    "multitcp-fig8.3",
    "multitcp-fig8.4",
    "multitcp-fig8.5",
    "multitcp-fig8.7",
    "rome-fig8",
    "multfrc-eq3",
    "multfrc-fig7i",
    "multfrc-fig7ii",
    "multfrc-fig8",
    "multfrc-fig10",
    "vps-fig3",
    "vps-fig4",
    "vps-fig5",
    "vps-fig7",
    "ttfwc-fig5.6",
    "ttfwc-fig5.7",
    "ttfwc-fig5.8",
    "ttfwc-fig5.9",
    "ttfwc-fig5.12",
    "ttfwc-fig5.16",
    "ttfwc-fig5.17",
    "ttfwc-fig5.18",
    "ttfwc-tab5.1",
    "ttfwc-tab5.2",
];

/// The real runs of an experiment, if it has some.
pub fn real(id: &str) -> Option<Real> {
    let (paper, figure) = id.split_once('-')?;
    match (paper, figure) {
        ("field", "film") => Some(field::film()),
        ("field", "crowd") => Some(field::crowd()),
        ("multitcp", figure) => multitcp::figure(figure),
        ("rome", "fig8") => Some(rome::figure_8()),
        ("multfrc", figure) => multfrc::figure(figure),
        ("vps", "fig3") => Some(vps::figure_3()),
        ("vps", "fig4") => Some(vps::figure_4()),
        ("vps", "fig5") => Some(vps::figure_5()),
        ("vps", "fig7") => Some(vps::figure_7()),
        ("ttfwc", "fig5.6") => Some(ttfwc::as_many(TTFWC_0_0)),
        ("ttfwc", "fig5.7") => Some(ttfwc::as_many(TTFWC_0_4)),
        ("ttfwc", "fig5.8") => Some(ttfwc::as_many(TTFWC_0_9)),
        ("ttfwc", "fig5.9") => Some(ttfwc::smoothness()),
        ("ttfwc", "fig5.12") => Some(ttfwc::equal()),
        ("ttfwc", "fig5.16") => Some(ttfwc::beside_reno(TTFWC_0_0)),
        ("ttfwc", "fig5.17") => Some(ttfwc::beside_reno(TTFWC_0_4)),
        ("ttfwc", "fig5.18") => Some(ttfwc::beside_reno(TTFWC_0_9)),
        ("ttfwc", "tab5.1") => Some(ttfwc::procedure(ttfwc::Procedure::Avoidance)),
        ("ttfwc", "tab5.2") => Some(ttfwc::procedure(ttfwc::Procedure::Threshold)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::case::Case;

    #[test]
    fn every_experiment_holds_together() {
        let mut ids = BTreeSet::new();
        for experiment in all(None).unwrap() {
            let id = experiment.id;
            assert!(ids.insert(id.clone()), "{id} is there twice");
            assert!(
                id.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-')),
                "{id} is a file's name"
            );
            assert!(!experiment.relations.is_empty(), "{id} checks nothing");
            assert_eq!(real(&id).is_some(), REAL.contains(&id.as_str()), "{id}");
            let mut files: Vec<&str> = experiment.plots.iter().map(|plot| &*plot.id).collect();
            files.extend(experiment.tables.iter().map(|table| &*table.id));
            files.push("runs");
            assert_eq!(files.iter().collect::<BTreeSet<_>>().len(), files.len(), "{id}: {files:?}");
            for table in &experiment.tables {
                let widths = table.rows.iter().map(|row| row.cells.len() + 1);
                assert!(widths.into_iter().all(|width| width == table.columns.len()), "{id}: {}", table.id);
            }
            for job in experiment.jobs.of(1).unwrap() {
                for model in job.models {
                    if let Err(error) = anabranch_sim::Simulation::new(model) {
                        panic!("{id}, {}: {:?}: {error}", job.case, error.place);
                    }
                }
            }
        }
    }

    #[test]
    fn every_real_run_stands_beside_a_simulated_one() {
        for experiment in all(None).unwrap() {
            let Some(real) = real(&experiment.id) else { continue };
            assert!(!real.differs.is_empty(), "{}: a real path is never the simulated one", experiment.id);
            let simulated: Vec<Case> =
                experiment.jobs.of(1).unwrap().into_iter().map(|job| job.case).collect();
            for trial in (real.trials)(1).unwrap() {
                assert!(simulated.contains(&trial.case), "{}: {}", experiment.id, trial.case);
                let scenario = toml::from_str::<toml::Table>(&trial.scenario);
                assert!(scenario.is_ok(), "{}, {}: {scenario:?}", experiment.id, trial.case);
            }
        }
    }
}
