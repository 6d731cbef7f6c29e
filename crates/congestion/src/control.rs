//! The contract between a window controller and whoever drives it: the simulator's TCP, QUIC, kernel vectors.
//!
//! The driver owns what is the same for every controller: which segments are lost and when they are sent
//! again (RFC 6675), the retransmission timer (RFC 6298), and counting what is in flight. It tells the
//! controller of acknowledgements, loss events and time-outs, and obeys its window.

use std::fmt::Debug;

use anabranch_units::{Bytes, Duration, Time};

/// New data was acknowledged while nothing was being recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// When.
    pub now: Time,
    /// How much is newly acknowledged.
    pub acked: Bytes,
    /// What was in flight before this acknowledgement.
    pub flight: Bytes,
    /// The round trip that this acknowledgement measured, if it measured one.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298); zero before the first measurement.
    pub srtt: Duration,
    /// Whether the window was what held the sender back; a window that nobody fills must not grow (RFC 7661).
    pub is_cwnd_limited: bool,
}

/// A loss event: the first segment of a window was found lost, and recovery begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When.
    pub now: Time,
    /// What was in flight, without what limited transmit added (RFC 5681, section 3.1, FlightSize).
    pub flight: Bytes,
}

/// The retransmission timer ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// When.
    pub now: Time,
    /// What was in flight.
    pub flight: Bytes,
    /// Whether it ran out for the same segment before, so that `ssthresh` stays (RFC 5681, equation 4).
    pub is_repeated: bool,
}

/// Decides the congestion window of one flow.
pub trait Controller: Debug + Send {
    /// New data was acknowledged outside recovery.
    fn on_ack(&mut self, ack: &Ack);

    /// A loss event. The window that is answered from now on holds through recovery.
    fn on_loss(&mut self, loss: &Loss);

    /// The retransmission timer ran out.
    fn on_timeout(&mut self, timeout: &Timeout);

    /// Nothing was sent for longer than the retransmission time-out: the window is at most the restart window
    /// from now on (RFC 5681, section 4.1).
    fn on_idle(&mut self, now: Time);

    /// The congestion window.
    fn cwnd(&self) -> Bytes;

    /// The slow start threshold, [`Bytes::MAX`] before the first loss unless it was set.
    fn ssthresh(&self) -> Bytes;
}

/// What every window controller begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Payload of a full segment (SMSS).
    pub segment: Bytes,
    /// Initial window (RFC 6928: ten segments).
    pub initial_window: Bytes,
    /// Initial slow start threshold; `None`: as large as can be (RFC 5681, section 3.1).
    pub initial_ssthresh: Option<Bytes>,
}
