//! What the RFC and ns-2 do differently, and what the RFC leaves open.

use anabranch_units::{Bytes, Duration, Rate, Ratio};

use crate::response::{Equation, TcpModel};

/// The constants of TFRC, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// How much of the round-trip time stays when a sample comes (q).
    pub rtt_weight: Ratio,
    /// The same for the mean square root, with which the sender damps oscillations (q2); `None`: it does not.
    pub sqrt_rtt_weight: Option<Ratio>,
    /// What the sender begins with after the first feedback, in each round trip.
    pub initial_window: InitialWindow,
    /// How fast the rate follows the equation upwards.
    pub increase: Increase,
    /// How many round trips a reported receive rate limits the rate: the largest of them does.
    pub receive_rate_rtts: u32,
    /// So many packets in a round trip are within the limit that receive rates set, however small those are
    /// (ns-2: one).
    pub least_receive_limit: u32,
    /// How long TCP would wait before it sends again, for the equation.
    pub timeout: Timeout,
    /// Which form of the equation.
    pub equation: Equation,
    /// Packets that one ACK of the TCP in the equation acknowledges (b).
    pub packets_per_ack: u32,
    /// How many round trips without feedback halve the rate.
    pub nofeedback_rtts: u32,
    /// The longest interval between packets (t_mbi); it bounds the rate from below.
    pub longest_interval: Duration,
    /// The largest rate, of all connections that a sender stands for.
    pub maximum_rate: Rate,
    /// How coarse the driver's timer is (t_gran): packets may leave up to half of it early.
    pub granularity: Duration,
    /// How many packets a sender that is late may send at once; `None`: as many as a round trip's worth,
    /// which is the most that section 4.6 allows, or as that timer misses at the most.
    pub burst: Option<u32>,
    /// How many later packets show that a packet is lost (NDUPACK).
    pub later_packets: u32,
    /// Whether a loss event is over only when a packet has come that was sent after another report: then
    /// several losses in a row are one event, however long they take (ns-2, `PreciseLoss_`).
    pub event_needs_report: bool,
    /// Whether the lost packet with which an interval began counts while the interval is open (section 5.3;
    /// not in ns-2).
    pub lost_packet_counts: bool,
    /// Whether the first loss interval is no shorter than what arrived before the first loss. The RFC takes
    /// the interval that the largest receive rate stands for (section 6.3.1); of a sender with little to send
    /// that says what it sent, not what the path bears.
    pub first_interval_arrived: bool,
    /// How many loss intervals count (n).
    pub intervals: u8,
    /// The least discount factor of old loss intervals; `None`: they are not discounted.
    pub discounting: Option<Ratio>,
    /// How many reports the receiver sends in a round trip when nothing is lost.
    pub feedback_per_rtt: u32,
    /// The same before the first loss, in slow start, for fourteen round trips at most: each tells what came
    /// since the one before, and the rate follows each. One that tells of a whole round trip tells of a rate
    /// that is half a round trip old, and with one in a round trip the rate doubles in two or three.
    pub slow_start_feedback_per_rtt: u32,
    /// The least time between these reports. On a path whose round trip is shorter than the packets are
    /// apart, each packet would bring a report that tells nothing new. The sender waits as long for reports
    /// as if the round trip took this time.
    pub least_feedback_interval: Duration,
    /// What the receiver looks at when the sender stands for several connections.
    pub filter: Filter,
}

/// Which of the virtual connections of one sender give the loss event rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The first one: a stream of packets with the bandwidth of a single connection (AIO-TFRC; see
    /// `virtual_connections.rs`).
    First,
    /// The mean of all of them. It varies less, as the sum of n connections does.
    All,
}

/// The window that gives the first rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// Two to four packets, depending on their size (RFC 3390; RFC 5348, section 4.2, W_init).
    Rfc3390,
    /// So many packets.
    Packets(u32),
}

impl InitialWindow {
    /// In bytes.
    pub(super) fn bytes(self, packet_size: Bytes) -> f64 {
        let size = packet_size.as_f64();
        match self {
            Self::Rfc3390 => (4.0 * size).min((2.0 * size).max(4380.0)),
            Self::Packets(count) => f64::from(count.max(1)) * size,
        }
    }
}

/// How fast the rate follows the equation upwards. Downwards it follows at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// At once (RFC 5348, section 4.3).
    AtOnce,
    /// By a packet for each round trip, in each round trip, as TCP does (ns-2).
    PacketPerRtt,
}

/// Retransmission time-out for the equation (t_RTO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Four round-trip times (RFC 5348, section 3.1).
    FourRtts,
    /// TCP's estimate from mean and deviation, in whole ticks (ns-2, `tcp_tick_`).
    Coarse {
        /// A tick.
        tick: Duration,
    },
}

impl Parameters {
    /// As RFC 5348 has it. The driver's timer is exact.
    pub const RFC5348: Self = Self {
        rtt_weight: Ratio::new(9, 10),
        sqrt_rtt_weight: Some(Ratio::new(9, 10)),
        initial_window: InitialWindow::Rfc3390,
        increase: Increase::AtOnce,
        receive_rate_rtts: 2,
        least_receive_limit: 0,
        timeout: Timeout::FourRtts,
        equation: Equation::Rfc5348,
        packets_per_ack: 1,
        nofeedback_rtts: 4,
        longest_interval: Duration::from_secs(64),
        maximum_rate: Rate::MAX,
        granularity: Duration::ZERO,
        burst: None,
        later_packets: 3,
        event_needs_report: false,
        lost_packet_counts: true,
        first_interval_arrived: false,
        intervals: 8,
        discounting: Some(Ratio::new(1, 4)),
        feedback_per_rtt: 1,
        slow_start_feedback_per_rtt: 1,
        least_feedback_interval: Duration::ZERO,
        filter: Filter::All,
    };

    /// Ours, for live media.
    ///
    /// What one TCP connection would get is what today's would: its window grows as CUBIC's, and it waits for
    /// about a round trip and 0.2 s before it sends again. RFC 5348 reckons with Reno and four round trips, and
    /// gets a small part of a link with a long queue beside CUBIC. And a stream has a rate of its own: what it
    /// sent before the first loss is no measure of what the path bears. A report wakes both ends, and one in 10 ms is
    /// enough. Today's TCP begins with ten packets (RFC 6928) and doubles its window in every round trip; media
    /// cannot wait longer.
    pub const LIVE: Self = Self {
        equation: Equation::Cubic,
        // The least deviation, four times of which are added, is between 0.75 and one of these steps.
        timeout: Timeout::Coarse { tick: Duration::from_millis(50) },
        first_interval_arrived: true,
        least_feedback_interval: Duration::from_millis(10),
        initial_window: InitialWindow::Packets(10),
        slow_start_feedback_per_rtt: 4,
        ..Self::RFC5348
    };

    /// As `Agent/TFRC` and `Agent/TFRCSink` of ns-2.35 have it with their defaults.
    ///
    /// Not modelled, because it changes little of the rates: a start at 300 bytes per second and the ramp of
    /// slow start within a round trip; a packet that leaves at once, and is reported at once, when no
    /// feedback comes; reports that wait for the first packet a round trip after the last one, for one and a
    /// half round trips at most; the first loss interval from the receive rate of the moment.
    pub const NS2: Self = Self {
        rtt_weight: Ratio::new(19, 20),
        sqrt_rtt_weight: Some(Ratio::new(19, 20)),
        increase: Increase::PacketPerRtt,
        receive_rate_rtts: 0,
        least_receive_limit: 1,
        timeout: Timeout::Coarse { tick: Duration::from_millis(100) },
        equation: Equation::Padhye,
        nofeedback_rtts: 2,
        burst: Some(1),
        later_packets: 1,
        event_needs_report: true,
        lost_packet_counts: false,
        discounting: Some(Ratio::new(1, 2)),
        ..Self::RFC5348
    };

    /// The TCP in the equation.
    pub(super) fn tcp(&self, timeout: Duration) -> TcpModel {
        TcpModel { packets_per_ack: self.packets_per_ack, timeout }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self::RFC5348
    }
}
