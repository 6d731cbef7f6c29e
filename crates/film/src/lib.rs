//! What a receiver of a film decides.
//!
//! This crate has no I/O, no clock and no entropy: a driver (sockets, simulator) feeds it events with their
//! time, and it answers with decisions. Every decision carries its reason.
//!
//! - [`adaptation`]: which rung of a ladder a player of segments fetches next.
//! - [`auto`]: ours: the smallest number of connections and windows that holds the rate.
//! - [`content`]: the content coordinator of TCP-ROME: which bytes are asked for on which connection.
//! - [`playback`]: when a player starts, stalls and ends.
//! - [`playlist`]: what is fetched ahead of a player that asks for segments, and what is known from one to
//!   the next.
//! - [`session`]: everything that the receiver of a stream decides, in one place.
//! - [`fixed`]: so many connections, as download programs have them.
//! - [`interval`]: how often a rate controller measures.
//! - [`multitcp`]: the rate controllers of MultiTCP, basic and advanced.
//! - [`mul`]: MUL-TCP: the number of connections as MULTFRC controls it.
//! - [`rome`]: the rate coordinator of TCP-ROME.
//! - [`control`]: the contract between a receiver session and a rate controller.

pub mod adaptation;
pub mod auto;
pub mod content;
pub mod control;
pub mod fixed;
pub mod interval;
pub mod mul;
pub mod multitcp;
mod orders;
#[cfg(test)]
mod path_model;
pub mod playback;
pub mod playlist;
pub mod rome;
pub mod session;
