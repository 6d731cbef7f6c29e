//! A live MPEG transport stream as segments of HLS (RFC 8216), without decoding or muxing anything again.
//!
//! - [`Segmenter`]: cuts the stream where players can begin.
//! - [`Part`]: what players get of a segment before it is whole, for low latency.
//! - [`Window`]: the playlist of the newest segments, and which older ones nobody needs any more.
//!
//! The crate `mpeg2ts-reader` reads packets, tables and time stamps. Its demultiplexer is not used: it takes
//! packets apart, and these pass on as they are.

mod cutter;
mod parts;
mod program;
mod unit;
mod window;

pub use cutter::{Cut, Segmenter};
pub use parts::{Part, Start};
pub use window::{Listed, Window, WindowError};

#[cfg(test)]
mod tests;
