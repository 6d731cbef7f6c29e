//! The lab: published results as experiments that are run again, judged, drawn and reported.
//!
//! - [`experiment`]: what an experiment is; [`experiments`] has them all, [`select()`] finds those that are
//!   meant, [`copy()`] writes a built-in one into a directory.
//! - [`run()`]: runs their jobs side by side, [`run_share()`] those of one of several machines; [`case`]: which run, and what it gave; [`results`] are read by
//!   relations, plots and tables.
//! - [`real`]: the same from real programs; [`comparison`]: how far the simulation is from them.
//! - [`outcome`]: the verdicts; [`files`]: everything that is written; [`reproduction`]: all in a page of
//!   documentation.
//! - [`readings`]: which values of what a paper leaves open reproduce most of its relations.
//! - [`sweep`]: a scenario at many points of its parameters, in shares.
//! - [`campaign`]: benchmarks of real programs, their raw results and the tables made of these.
//! - [`scheme`], [`statistics`]: what all have in common.

pub mod campaign;
pub mod case;
pub mod comparison;
pub mod experiment;
pub mod experiments;
pub mod files;
pub mod outcome;
pub mod paper;
pub mod papers;
pub mod path_error;
pub mod plan;
pub mod readings;

pub mod real;
pub mod reproduction;
pub mod results;
pub mod scheme;
pub mod simulate;
pub mod statistics;
pub mod sweep;
pub mod validation;

mod cache;
mod copy;
mod curve;
mod draw;
mod plot;
mod progress;
mod report;
mod run;
mod select;
mod share;

pub use cache::forget_runs;
pub use copy::{CopyError, copy};
pub use progress::Progress;
pub use run::{RunError, RunOptions, run, run_share};
pub use select::{UnknownExperiment, select};
pub use share::Share;
