//! What a sender may send.
//!
//! This crate has no I/O, no clock and no entropy.
//!
//! - [`response`]: what a window, a loss rate and a number of flows give on a path.

pub mod response;
