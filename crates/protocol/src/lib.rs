//! What the two ends of a stream say to each other, without how they decide it.
//!
//! This crate has no I/O, no clock and no entropy.
//!
//! - [`stripe`]: a film in blocks over the connections of a group, for a server that speaks our own protocol.
//! - [`live`]: the datagrams and messages of live media, and stuffing that is left out on the way.
//! - [`ranges`]: sets of byte positions.
//! - [`cmcd`]: what a player says of itself.
//!
//! What is asked for next is decided by `anabranch-film`, what of live media leaves next by `anabranch-live`;
//! sockets belong to `anabranch-client`, `anabranch-server` and `anabranch-contribution`.

use std::fmt;

pub mod cmcd;
pub mod live;
pub mod ranges;
pub mod stripe;

/// A connection between two ends, as whoever drives it numbers them; never used twice by one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}", self.0)
    }
}
