//! A deterministic packet-level network simulator.
//!
//! - [`model`]: what is simulated, as plain data.
//! - [`Simulation`]: a run of a model.
//! - [`report`]: what a simulation tells.
//! - [`scenario`]: a model as a TOML file.
//! - [`output`]: files of what a simulation tells.

mod check;
mod counted;
mod link;
mod media;
pub mod model;
mod network;
pub mod output;
mod packet;
mod queue;
mod random;
pub mod report;
mod route;
pub mod scenario;
mod simulation;
mod tcp;

pub use check::{ModelError, Place};
pub use simulation::Simulation;
