//! Live media through a sender and a receiver: fed as it is due, collected, and judged packet by packet.
//!
//! Both ends are in one machine and one clock, so the time from a packet's way into the sender to its way out
//! of the receiver needs no synchronisation.

use mpeg2ts_reader::packet::Packet;

mod collect;
mod deficit;
mod feed;
mod judge;
mod media;

pub use collect::{Collected, Collector};
pub use deficit::Deficit;
pub use feed::{Fed, feed};
pub use judge::{Gap, Judgement, Latency, Rules, Second, judge};
pub use media::Media;

/// Bytes of an MPEG-TS packet (ISO/IEC 13818-1, 2.4.3.2).
pub const PACKET: usize = 188;
/// Bytes of a datagram: seven packets, as encoders send them and as fits every link's frame.
pub const DATAGRAM: usize = 7 * PACKET;
/// The UDP port of its loopback at which a sender takes the film.
pub const INPUT_PORT: u16 = 5000;
/// The UDP port of its loopback to which a receiver sends the film.
pub const OUTPUT_PORT: u16 = 6000;

/// The packet identifier of stuffing, which carries nothing (ISO/IEC 13818-1, table 2-3).
const STUFFING: u16 = 0x1fff;

/// Whether a packet is stuffing.
fn is_stuffing(packet: &[u8]) -> bool {
    Packet::try_new(packet).is_some_and(|packet| u16::from(packet.pid()) == STUFFING)
}

/// The niceness of the threads that feed and collect: their times are what is measured.
const NICENESS: i32 = -15;

/// Makes the calling thread one that others do not hold up, where the user may do that.
fn hurry() {
    // Linux takes this for the calling thread alone. Without the right to it the threads are as nice as
    // others.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
