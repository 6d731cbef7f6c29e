//! TCP-friendly rate control (TFRC, RFC 5348), both ends, without a clock.
//!
//! The driver, which has the clock and the network, moves what the two ends tell each other:
//!
//! - [`Sender::next_send`] says when the next packet may leave. When it does, [`Sender::sent`] gives the
//!   [`PacketInfo`] that it must carry.
//! - For each packet that arrives, [`Receiver::packet`] answers with a [`Feedback`] if one is to be sent at
//!   once.
//! - [`Sender::feedback`] takes it. Everything that the sender answers may have changed after it.
//! - When [`Sender::deadline`] or [`Receiver::deadline`] has come, the driver calls `tick` there; the
//!   receiver's may give a [`Feedback`]. A deadline may change with every other call. `Time::NEVER` means
//!   that there is none.
//!
//! A sender may stand for several connections, n of them, not necessarily a whole number
//! ([`Sender::set_flows`]): it sends at n times the rate of one.
//!
//! Only the receiver's times are compared with the receiver's, and the sender's with the sender's: the two
//! clocks need not agree.

mod loss_events;
mod losses;
mod parameters;
mod receive_rates;
mod receiver;
mod sender;
mod share;
mod timeout;
mod virtual_connections;

use anabranch_units::{Duration, Rate, Time};

pub use parameters::{Filter, Increase, InitialWindow, Parameters, Timeout};
pub use receiver::Receiver;
pub use sender::Sender;

/// What a data packet carries (RFC 5348, section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketInfo {
    /// Counts packets, from zero.
    pub sequence: u64,
    /// When it was sent, by the sender's clock.
    pub timestamp: Time,
    /// The sender's estimate of the round-trip time, if it has one yet.
    pub rtt: Option<Duration>,
    /// How often the sender has had a report, or has missed one. The RFC has no such field; ns-2's rule of
    /// loss events needs it, see [`Parameters::event_needs_report`].
    pub round: u64,
    /// How many connections the sender stands for (n), at least one; see [`Sender::set_flows`].
    pub flows: f64,
    /// Which of them this packet belongs to, from zero.
    pub connection: u16,
    /// Counts that connection's packets, from zero.
    pub connection_sequence: u64,
}

impl PacketInfo {
    /// A packet of a sender that stands for a single connection.
    pub const fn single(sequence: u64, timestamp: Time, rtt: Option<Duration>, round: u64) -> Self {
        Self { sequence, timestamp, rtt, round, flows: 1.0, connection: 0, connection_sequence: sequence }
    }
}

/// What the receiver reports (RFC 5348, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The timestamp of the newest packet that arrived (t_recvdata), by the sender's clock.
    pub timestamp: Time,
    /// How long the receiver has had that packet (t_delay).
    pub delay: Duration,
    /// The rate at which data arrived in the last round trip (X_recv).
    pub receive_rate: Rate,
    /// The loss event rate (p), from zero to one.
    pub loss_event_rate: f64,
}
