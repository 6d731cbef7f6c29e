//! The contract between a window controller and whoever drives it: the simulator's TCP, QUIC, kernel vectors.
//!
//! The driver owns what is the same for every controller: which segments are lost and when they are sent
//! again (RFC 6675), the retransmission timer (RFC 6298), and counting what is in flight. It tells the
//! controller of acknowledgements, loss events and time-outs, and obeys its window.
//!
//! A *paced* controller answers a rate beside the window, because it follows a model of the path and not the
//! clock of acknowledgements. Its driver also paces what it sends, keeps the books of
//! [`delivery_rate`](crate::delivery_rate), and tells what they say: where sending begins, every packet that
//! is lost, and every acknowledgement that delivers something, in recovery too.

use std::fmt::Debug;

use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::delivery_rate::{LostPacket, RateSample};

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

/// Data is about to be sent while nothing is in flight: the first of the flow, or the first after the
/// application had nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// When.
    pub now: Time,
    /// Smoothed round-trip time (RFC 6298); zero before the first measurement.
    pub srtt: Duration,
}

/// Nothing of what began the last recovery and was found lost in it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spurious {
    /// When that was found.
    pub now: Time,
    /// All that was delivered until now (`C.delivered`).
    pub total_delivered: Bytes,
}

/// An acknowledgement that delivered something, in recovery or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When.
    pub now: Time,
    /// What it says of the path.
    pub sample: RateSample,
    /// Whether losses are being recovered.
    pub is_in_recovery: bool,
    /// Whether the window was full at any time since the newest packet was sent that is acknowledged now.
    pub is_cwnd_limited: bool,
}

/// How much of what was acknowledged had been marked (ECN), as a receiver with accurate feedback tells (RFC
/// 9768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// How much is newly acknowledged.
    pub acked: Bytes,
    /// How much came marked since the last acknowledgement.
    pub marked: Bytes,
    /// What is in flight after this acknowledgement.
    pub flight: Bytes,
}

/// How a paced controller's packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// No faster than this: the payload of a packet that leaves, divided by this rate, passes before the next
    /// one.
    pub rate: Rate,
    /// The most that leaves at once where a driver sends several packets in one piece (TSO, GSO).
    pub quantum: Bytes,
    /// Whether the controller holds the flow below what the path carries: samples of what is sent now count
    /// as if the application had held it back.
    pub is_held_back: bool,
}

/// Decides the congestion window of one flow.
pub trait Controller: Debug + Send {
    /// New data was acknowledged outside recovery.
    fn on_ack(&mut self, ack: &Ack);

    /// A loss event. The window that is answered from now on holds through recovery.
    fn on_loss(&mut self, loss: &Loss);

    /// Something was acknowledged, in recovery or not; told before everything else of the same
    /// acknowledgement. Only a controller is told that goes by how much is marked
    /// ([`is_scalable`](crate::algorithm::Algorithm::is_scalable)).
    fn on_feedback(&mut self, _feedback: &Feedback) {}

    /// The path has marked packets (ECN, RFC 3168) and lost none: told at most once a round trip. Without an
    /// answer of its own a controller does what it does at a loss event.
    fn on_marks(&mut self, marks: &Loss) {
        self.on_loss(marks);
    }

    /// The retransmission timer ran out.
    fn on_timeout(&mut self, timeout: &Timeout);

    /// Nothing was sent for longer than the retransmission time-out: the window is at most the restart window
    /// from now on (RFC 5681, section 4.1).
    fn on_idle(&mut self, now: Time);

    /// Sending begins, or begins again. Only a paced controller is told.
    fn on_begin(&mut self, _begin: &Begin) {}

    /// A packet was found lost; told before the delivery with the same acknowledgement, and after the loss
    /// event that it begins. Only a paced controller is told.
    fn on_packet_lost(&mut self, _lost: &LostPacket) {}

    /// All that the last loss event began with and led to, or all that the last time-out took for lost, has
    /// arrived after all: the recovery is over, and what it changed may be taken back (RFC 4015, section 1;
    /// draft-ietf-ccwg-bbr-06, section 5.2.5). At most once for each, before the delivery with the same
    /// acknowledgement, and also after the recovery has ended. Only a paced controller is told, where its
    /// driver can tell.
    fn on_spurious(&mut self, _spurious: &Spurious) {}

    /// Something was delivered; told after everything else of the same acknowledgement. Only a paced
    /// controller is told.
    fn on_delivery(&mut self, _delivery: &Delivery) {}

    /// How packets leave; `None`: as the window lets them. A controller is paced for all of its life or
    /// never.
    fn pacing(&self) -> Option<Pacing> {
        None
    }

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
    /// What the random numbers of a controller follow from that needs some: the same seed, the same numbers.
    pub seed: u64,
}
