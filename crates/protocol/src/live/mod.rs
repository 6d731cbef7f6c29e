//! Live media on the wire: `docs/live-protocol.md`.
//!
//! - [`hello`]: the messages before and after the stream.
//! - [`wire`]: what a datagram holds.
//! - [`packed`]: the form in which parts of a stream travel, without what the receiver can put back.
//! - [`stuffing`]: makes these parts.
//! - [`standing`]: what senders that share an uplink tell each other.

mod follows;
pub mod hello;
pub mod packed;
pub mod standing;
pub mod stuffing;
pub mod wire;
