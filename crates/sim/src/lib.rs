//! A deterministic packet-level network simulator.
//!
//! - [`model`]: what is simulated, as plain data.
//! - [`report`]: what a simulation tells.

pub mod model;
pub mod report;
