//! One file in blocks over several connections: the sender's side of MultiTCP (section 7.3) and what its
//! receiver has to know, for a sender that speaks our own protocol (`docs/protocol.md`).
//!
//! - [`frame`]: the bytes on the wire.
//! - [`Striper`]: the sender; which block goes next, and on which connection.
//! - [`Arrivals`]: the receiver; what has come, and what was lost with a connection.

pub mod frame;

mod arrivals;
mod striper;

use http::HeaderName;

pub use arrivals::{Arrivals, UnexpectedFrame};
pub use striper::{Block, QueueEnd, Striper, WantError};

/// The token of a group in the request that joins it: 32 hexadecimal digits that the client drew at random.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("anabranch-stripe");
/// The file's size in bytes, in the answer 101.
pub const SIZE_HEADER: HeaderName = HeaderName::from_static("anabranch-size");
/// The protocol's name in `Upgrade`.
pub const PROTOCOL: &str = "anabranch-stripe/1";
/// Most payload in one block. Small, so that blocks that overtake each other do not need a large buffer.
pub const MAX_BLOCK_BYTES: u64 = 16 * 1024;
/// Most ranges that a sender keeps queued.
pub const MAX_QUEUED_RANGES: usize = 1024;
/// Most connections in one group.
pub const MAX_CONNECTIONS: usize = 64;
