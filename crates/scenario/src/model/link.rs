//! Links: how fast, how long, and what they lose.

use anabranch_units::{Bytes, Duration, Rate, Time};

use super::ids::NodeId;

/// One direction of a link: a queue, a transmitter, a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name in the outputs.
    pub name: String,
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Bits per second on the wire, headers included.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Where packets wait.
    pub queue: Queue,
    /// What drops packets before they come to the queue.
    pub policer: Option<TokenBucket>,
    /// What lets packets wait in the queue, beyond what the rate does.
    pub shaper: Option<TokenBucket>,
    /// What gets lost on the wire, after it was transmitted.
    pub loss: LossModel,
    /// What a packet's way takes beyond the delay.
    pub jitter: Option<Jitter>,
    /// The probability that a packet which arrives does so twice.
    pub duplicate: f64,
    /// What changes while the simulation runs, in the order of time.
    pub changes: Vec<Change>,
    /// The times at which it can transmit, instead of its rate.
    pub opportunities: Option<Opportunities>,
}

/// A queue before a transmitter. Its limit counts the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// How much it holds.
    pub limit: Limit,
    /// Which packets it drops.
    pub discipline: Discipline,
}

/// How much a queue holds, with the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets, of any size.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(Bytes),
}

/// Which packets a queue drops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// Those that find it full.
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Controlled delay (RFC 8289).
    CoDel(CoDel),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
    /// Queues of flows, each with CoDel (RFC 8290).
    FqCoDel(FqCoDel),
    /// A short queue for L4S beside a classic one (RFC 9332).
    DualPi2(DualPi2),
}

impl Discipline {
    /// Whether it marks packets of flows that know marks (RFC 3168).
    pub fn marks(&self) -> bool {
        match self {
            Self::DropTail => false,
            Self::Red(red) => red.ecn,
            Self::CoDel(codel) | Self::FqCoDel(FqCoDel { codel, .. }) => codel.ecn,
            Self::Pie(pie) => pie.ecn,
            Self::DualPi2(_) => true,
        }
    }
}

/// Random early detection (Floyd and Jacobson 1993), with the gentle slope above the upper threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Below this average queue nothing is dropped, in packets.
    pub low: f64,
    /// From here on the gentle slope leads up to dropping everything at twice this average.
    pub high: f64,
    /// Probability of a drop at `high`.
    pub most: f64,
    /// Weight of a new sample in the average.
    pub weight: f64,
    /// Whether packets that can be marked are, below `high`, in place of a drop (RFC 3168, section 7).
    pub ecn: bool,
}

/// Controlled delay (RFC 8289, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The sojourn time that is tolerated: 5 ms.
    pub target: Duration,
    /// For how long it may be exceeded: 100 ms.
    pub interval: Duration,
    /// Whether packets that can be marked are, in place of a drop (RFC 8290, section 4.2).
    pub ecn: bool,
}

/// Proportional integral controller enhanced (RFC 8033, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pie {
    /// The queueing delay that it keeps: 15 ms.
    pub target: Duration,
    /// Whether packets that can be marked are, at a low probability, in place of a drop (section 5.1).
    pub ecn: bool,
}

/// Queues of flows in turn, each with CoDel (RFC 8290). Where there is no room the longest loses its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDel {
    /// Of each queue.
    pub codel: CoDel,
    /// What a queue may send in its turn: 1514 bytes.
    pub quantum: Bytes,
}

/// DualPI2 (RFC 9332, appendix A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// The queueing delay that classic packets are kept at: 15 ms.
    pub target: Duration,
    /// How many times the square root of the classic probability L4S packets are marked with (k): 2.
    pub coupling: f64,
    /// L4S packets that wait longer than this may be marked for it (minTh): 800 us.
    pub threshold: Duration,
    /// So much longer, all of them are: 400 us. Zero makes the ramp a step.
    pub range: Duration,
}

/// Losses on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// None.
    None,
    /// Each packet with this probability.
    Bernoulli(f64),
    /// Bursts: two states, each packet moves first and is lost then with the state's probability (Gilbert
    /// 1960, Elliott 1963).
    GilbertElliott(GilbertElliott),
    /// Those at these places in the order of arrival, from 0.
    Listed(Vec<u64>),
}

/// A Markov chain of a good and a bad state; it begins in the good one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of moving from good to bad, at each packet.
    pub to_bad: f64,
    /// Probability of moving from bad to good.
    pub to_good: f64,
    /// Probability of a loss in the good state.
    pub loss_good: f64,
    /// Probability of a loss in the bad state.
    pub loss_bad: f64,
}

/// A token bucket: a policer drops what comes faster, a shaper lets it wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bits per second in the long run, headers included.
    pub rate: Rate,
    /// What can pass at once after a rest.
    pub burst: Bytes,
}

/// What a packet's way takes beyond the delay, drawn for each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// From which distribution.
    pub spread: Spread,
    /// Whether packets overtake each other. Otherwise one that would waits for the one before it.
    pub reorders: bool,
}

/// A distribution of times, of which what is below zero is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Uniform from zero.
    Uniform {
        /// The longest.
        most: Duration,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: Duration,
        /// The standard deviation.
        deviation: Duration,
    },
}

/// A change of a link at a moment. What is `None` stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// A new rate; zero: nothing is transmitted until the next change.
    pub rate: Option<Rate>,
    /// A new delay. Packets do not overtake each other for it.
    pub delay: Option<Duration>,
    /// A new loss.
    pub loss: Option<LossModel>,
}

/// A link that transmits up to `size` bytes at given moments, again and again (mahimahi's trace: 1500 bytes
/// each). What an opportunity does not use is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// The moments, in order, counted from the beginning of a period.
    pub at: Vec<Time>,
    /// Length of the period, at least the last moment.
    pub period: Duration,
    /// What goes in one of them.
    pub size: Bytes,
}

impl Link {
    /// A link that changes nothing and loses nothing, behind a DropTail queue of so many packets; its name is
    /// made of its ends.
    pub fn drop_tail(from: NodeId, to: NodeId, rate: Rate, delay: Duration, packets: u32) -> Self {
        Self {
            name: format!("{from}-{to}"),
            from,
            to,
            rate,
            delay,
            queue: Queue { limit: Limit::Packets(packets), discipline: Discipline::DropTail },
            policer: None,
            shaper: None,
            loss: LossModel::None,
            jitter: None,
            duplicate: 0.0,
            changes: Vec::new(),
            opportunities: None,
        }
    }
}
