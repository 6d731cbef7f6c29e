//! What a sender may send.
//!
//! This crate has no I/O, no clock and no entropy.
//!
//! - [`control`]: the contract of a window controller; [`cubic`] and [`reno`] keep it.
//! - [`response`]: what a window, a loss rate and a number of flows give on a path.

pub mod control;
pub mod cubic;
pub mod reno;
pub mod response;
