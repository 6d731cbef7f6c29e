//! What a link of a scenario does to packets where simulator and testbed do the same: they drive these states
//! with simulated and with real packets.
//!
//! Here is what decides: whether a packet is dropped or marked early ([`PieState`], with [`Codepoint`] and
//! [`Verdict`]), whose turn it is ([`FlowTurns`], [`DualPi2State`]), when
//! a token bucket lets one pass ([`Bucket`]), how much longer one takes ([`delay_beyond`]). Packets, and the
//! queues that hold them, are their drivers' own. Times are nanoseconds since a beginning that the driver
//! chooses; there is no clock and no entropy.

mod bucket;
mod dualpi2;
mod ecn;
mod jitter;
mod pie;
mod turns;

pub use bucket::Bucket;
pub use dualpi2::{DualPi2State, Leaving};
pub use ecn::{Codepoint, Verdict};
pub use jitter::delay_beyond;
pub use pie::PieState;
pub use turns::FlowTurns;
