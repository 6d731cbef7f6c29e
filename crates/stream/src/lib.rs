//! What a receiver asks for, and how a stream is put together.
//!
//! This crate has no I/O, no clock and no entropy: a driver (sockets, simulator) feeds it events with their
//! time, and it answers with decisions. Every decision carries its reason.
//!
//! - [`control`]: the contract between a receiver session and a rate controller.

pub mod control;
