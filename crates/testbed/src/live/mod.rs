//! Live media through a sender and a receiver: fed at its own rate, collected, and judged packet by packet.
//!
//! Both ends are in one machine and one clock, so the time from a packet's way into the sender to its way out
//! of the receiver needs no synchronisation.

mod collect;
mod deficit;
mod feed;
mod judge;

pub use collect::{Collected, Collector};
pub use deficit::Deficit;
pub use feed::{Fed, feed};
pub use judge::{Judgement, Latency, judge};

/// Bytes of an MPEG-TS packet (ISO/IEC 13818-1, 2.4.3.2).
pub const PACKET: usize = 188;
/// Bytes of a datagram: seven packets, as encoders send them and as fits every link's frame.
pub const DATAGRAM: usize = 7 * PACKET;
/// The UDP port of its loopback at which a sender takes the film.
pub const INPUT_PORT: u16 = 5000;
/// The UDP port of its loopback to which a receiver sends the film.
pub const OUTPUT_PORT: u16 = 6000;

/// The niceness of the threads that feed and collect: their times are what is measured.
const NICENESS: i32 = -15;

/// Makes the calling thread one that others do not hold up, where the user may do that.
fn hurry() {
    // Linux takes this for the calling thread alone. Without the right to it the threads are as nice as
    // others.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
