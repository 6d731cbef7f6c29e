//! Quantities of the core: [`Time`] and [`Duration`], [`Bytes`], [`Packets`], [`Rate`] and [`Ratio`].
//!
//! Every quantity is a newtype with defined arithmetic, so that bits are never added to bytes nor
//! milliseconds to microseconds. This crate is the only place of the core that casts between number types.
//! All arithmetic saturates: a quantity that comes from the network can be absurd, never a panic.

mod bytes;
mod parse;
mod rate;
mod ratio;
mod time;

pub use bytes::{Bytes, Packets};
pub use parse::{ParseError, Quantity};
pub use rate::Rate;
pub use ratio::Ratio;
pub use time::{Duration, Time};
