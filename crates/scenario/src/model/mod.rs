//! What is described, as plain data: nodes, links, flows and how long. A scenario file becomes this, and a
//! program may build its network itself; the world that runs it says whether it can.

mod drawn;
mod ids;
mod link;
mod live;
mod media;
mod server;
mod tcp;

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::tfrc;
use anabranch_units::{Bytes, Duration, Rate, Time};

pub use ids::{FlowId, LinkId, NodeId};
pub use link::{
    Change, CoDel, Discipline, DualPi2, FqCoDel, GilbertElliott, Jitter, Limit, Link, LossModel,
    Opportunities, Pie, Queue, Red, Spread, TokenBucket,
};
pub use live::{KeyFrames, Live, LiveShare};
pub use media::{Act, Ladder, Media, RateControl, Reader};
pub use server::{Above, MostConnections, Server};
pub use tcp::{Congestion, DelayedAck, Ecn, Form, Recovery, Rto, Share, Tcp};

/// Everything that is described.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The nodes; others refer to them by their place in this list.
    pub nodes: Vec<Node>,
    /// The links, each in one direction.
    pub links: Vec<Link>,
    /// Who sends.
    pub flows: Vec<Flow>,
    /// How long, and what is written down.
    pub run: Run,
}

/// A host or a router: both forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name in the outputs.
    pub name: String,
    /// What a server of streams there allows its clients.
    pub server: Server,
}

impl Node {
    /// One whose server, if there is one, allows everything.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), server: Server::default() }
    }
}

/// Who sends what to whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name in the outputs.
    pub name: String,
    /// When it begins.
    pub start: When,
    /// When it stops sending; `None`: never.
    pub stop: Option<Time>,
    /// What it is.
    pub kind: Kind,
}

/// A moment, or one drawn anew for every seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This moment.
    At(Time),
    /// Uniformly distributed between two.
    Between(Time, Time),
}

/// Kinds of flows.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One TCP connection from a sender to a receiver.
    Tcp {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// How TCP behaves at both ends.
        tcp: Tcp,
        /// What the sender's application writes.
        source: Source,
    },
    /// Datagrams without any control.
    Udp {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// Size on the wire.
        size: Bytes,
        /// When they are sent.
        pattern: Pattern,
    },
    /// Datagrams at the rate that TFRC allows (RFC 5348), always more of them.
    Tfrc {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// Size on the wire, which is the packet size that TFRC reckons with.
        size: Bytes,
        /// How both ends behave.
        parameters: tfrc::Parameters,
        /// Over how many connections, or as if over how many.
        scheme: Scheme,
    },
    /// A media stream, received by the session of `stream` over TCP connections from one or more servers.
    Media(Box<Media>),
    /// A live stream over datagrams.
    Live(Box<Live>),
}

/// What the application at a TCP sender writes.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Always more.
    Greedy,
    /// So much, once.
    File(Bytes),
    /// At this rate all the time.
    Constant(Rate),
    /// Files of given sizes at given times, each as soon as its time has come.
    Timetable(Vec<(Time, Bytes)>),
}

/// When datagrams are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Evenly, at this rate on the wire.
    Constant {
        /// The rate.
        rate: Rate,
        /// Whether each interval is drawn between half and one and a half of the even one.
        jitter: bool,
    },
    /// At a rate while on, not at all while off; both times are fixed and it begins with off when
    /// `off_first`.
    OnOff {
        /// The rate while on.
        rate: Rate,
        /// How long on.
        on: Duration,
        /// How long off.
        off: Duration,
        /// Whether it begins with off.
        off_first: bool,
    },
    /// The same with exponentially distributed times of these means; begins with on.
    Exponential {
        /// The rate while on.
        rate: Rate,
        /// Mean of on.
        on: Duration,
        /// Mean of off.
        off: Duration,
    },
}

/// How long, and what is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Simulated time.
    pub duration: Duration,
    /// The source of all randomness.
    pub seed: u64,
    /// One row for every flow and link at this interval.
    pub sampling: Duration,
    /// Totals count from here on.
    pub warm_up: Duration,
}
