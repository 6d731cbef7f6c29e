//! A deterministic packet-level network simulator.
//!
//! - [`model`]: what is simulated, as plain data.
//! - [`Simulation`]: a run of a model.
//! - [`report`]: what a simulation tells.
//! - [`scenario`]: a model as a TOML file.

mod check;
mod counted;
mod link;
mod media;
pub mod model;
mod network;
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
