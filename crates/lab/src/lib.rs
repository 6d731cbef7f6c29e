//! The lab: published results as experiments that are run again, judged, drawn and reported.
//!
//! - [`experiment`]: what an experiment is; [`experiments`] has them all, [`select()`] finds those that are meant.
//! - [`run()`]: runs their jobs side by side; [`results`] are read by relations, plots and tables.
//! - [`outcome`]: the verdicts; [`files`]: everything that is written.
//! - [`scheme`], [`statistics`]: what all have in common.

pub mod experiment;
pub mod experiments;
pub mod files;
pub mod outcome;
pub mod results;
pub mod scheme;
pub mod simulate;
pub mod statistics;
pub mod validation;

mod cache;
mod curve;
mod plot;
mod report;
mod run;
mod select;

pub use run::{Options, RunError, run};
pub use select::{UnknownExperiment, select};
