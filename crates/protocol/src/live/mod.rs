//! Live media on the wire: `docs/live-protocol.md`.
//!
//! - [`hello`]: the messages before and after the stream.
//! - [`wire`]: what a datagram holds.
//! - [`stuffing`]: null packets, which are left out on the way.

pub mod hello;
pub mod stuffing;
pub mod wire;
