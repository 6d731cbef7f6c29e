//! What is simulated, as plain data: nodes, links, flows and how long. A scenario file becomes this, and so does a program
//! that builds its network itself; [`Simulation::new`](crate::Simulation::new) checks it.

use anabranch_congestion::aggregate::Scheme;
/// Congestion controls of TCP.
pub use anabranch_congestion::algorithm::Algorithm as Congestion;
use anabranch_congestion::tfrc;
use anabranch_congestion::tfwc::BufferRule;
use anabranch_congestion::vps::Weight;
use anabranch_units::{Bytes, Duration, Packets, Rate, Time};

/// Everything that is simulated.
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

/// A node's place in [`Model::nodes`].
pub type NodeId = usize;
/// A link's place in [`Model::links`].
pub type LinkId = usize;
/// A flow's place in [`Model::flows`].
pub type FlowId = usize;

/// A host or a router: both forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name in the outputs.
    pub name: String,
}

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
    /// What gets lost on the wire, after it was transmitted.
    pub loss: Loss,
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
}

/// Controlled delay (RFC 8289, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The sojourn time that is tolerated: 5 ms.
    pub target: Duration,
    /// For how long it may be exceeded: 100 ms.
    pub interval: Duration,
}

/// Losses on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet with this probability.
    Bernoulli(f64),
    /// Bursts: two states, each packet moves first and is lost then with the state's probability (Gilbert 1960, Elliott 1963).
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

/// A change of a link at a moment. What is `None` stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// A new rate; zero: nothing is transmitted until the next change.
    pub rate: Option<Rate>,
    /// A new delay. Packets never overtake each other.
    pub delay: Option<Duration>,
    /// A new loss.
    pub loss: Option<Loss>,
}

/// A link that transmits up to `size` bytes at given moments, again and again (mahimahi's trace: 1500 bytes each). What an opportunity
/// does not use is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// The moments, in order, counted from the beginning of a period.
    pub at: Vec<Time>,
    /// Length of the period, at least the last moment.
    pub period: Duration,
    /// What goes in one of them.
    pub size: Bytes,
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
}

/// How a TCP behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// Payload of a full segment.
    pub segment: Bytes,
    /// Bytes of headers on every packet (IP and TCP: 40; each SACK block adds 8).
    pub header: Bytes,
    /// The congestion control.
    pub congestion: Congestion,
    /// Initial window in segments.
    pub initial_window: Packets,
    /// Initial slow start threshold in segments; `None`: as large as can be.
    pub initial_ssthresh: Option<Packets>,
    /// The receive window; `None`: as large as can be. The receiver may drive it while the flow runs.
    pub receive_window: Option<Bytes>,
    /// Delayed acknowledgements; `None`: one for every segment.
    pub delayed_ack: Option<DelayedAck>,
    /// Whether a duplicate acknowledgement lets a new segment out before the loss is certain (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the window shrinks to the initial one after an idle time (RFC 5681, section 4.1).
    pub idle_restart: bool,
    /// Whether every segment carries a timestamp (RFC 7323), so that every acknowledgement measures the RTT; otherwise one
    /// segment in flight at a time is timed.
    pub timestamps: bool,
    /// Bounds of the retransmission time-out, and its first value (RFC 6298).
    pub rto: Rto,
    /// Which recovery from losses.
    pub recovery: Recovery,
    /// Sending waits for a random time up to this one after what allowed it (ns-2's `overhead_`): zero for none.
    pub send_jitter: Duration,
    /// The group that the sender shares its windows with; `None`: it has one of its own.
    pub share: Option<Share>,
    /// How the buffer of a media stream's player tunes the senders of its connections; `None`: it does not.
    pub tuning: Option<BufferRule>,
}

/// How a group shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Credit passes from flow to flow, packet by packet (VPS).
    #[default]
    Vps,
    /// Each flow is told a window, with its own acknowledgements, as in a kernel (`anabranch_congestion::joint`).
    Window,
}

/// A flow's place in a weighted group: flows of one sender that share what as many plain flows would get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The group's name.
    pub group: String,
    /// The flow's weight in it.
    pub weight: Weight,
    /// Whether members behind different bottlenecks are noticed and parted.
    pub watches: bool,
    /// How the group shares; the same in all of its flows.
    pub form: Form,
}

/// Delayed acknowledgements (RFC 5681, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// One acknowledgement for so many full segments in order.
    pub every: u32,
    /// The longest delay.
    pub delay: Duration,
}

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Before the first measurement.
    pub initial: Duration,
    /// Lower bound.
    pub least: Duration,
    /// Upper bound, also of the back-off.
    pub most: Duration,
    /// Granularity of the clock that measures round trips (G).
    pub granularity: Duration,
}

/// Recovery from losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// RFC 6675.
    Sack,
    /// As ns-2's `Agent/TCP/Sack1` does it, with ns-2's time-outs in whole ticks, to show what of a difference comes from there.
    Ns2Sack1,
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
    /// At a rate while on, not at all while off; both times are fixed and it begins with off when `off_first`.
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

/// A media stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// Who plays it.
    pub client: NodeId,
    /// Who has it: one path of the session each. The same node can be there several times.
    pub servers: Vec<NodeId>,
    /// The TCP of every connection.
    pub tcp: Tcp,
    /// Rate of the media.
    pub rate: Rate,
    /// Size of the media; `None`: until the flow stops.
    pub size: Option<Bytes>,
    /// What is held: the media's rate with a buffer, this rate exactly, or as much as comes.
    pub pace: anabranch_film::session::Pace,
    /// How many connections, which windows.
    pub algorithm: Algorithm,
    /// When the player starts and stops.
    pub playback: anabranch_film::playback::Parameters,
    /// How the player takes what has arrived; `None`: all of it at once.
    pub reader: Option<Reader>,
    /// The content coordinator's parameters.
    pub policy: anabranch_film::content::Policy,
    /// The most that a connection's receive window can be (a socket's buffer).
    pub largest_window: Option<Bytes>,
    /// Most connections to each server.
    pub connections_per_server: usize,
}

/// A player with a buffer of its own, which it fills as far as it can.
#[derive(Clone, Debug, PartialEq)]
pub struct Reader {
    /// What the player holds at most of what it has not played, its socket's buffer included.
    pub buffer: Bytes,
    /// The most that it takes per time; `None`: whatever has arrived.
    pub takes: Option<Rate>,
    /// What its viewer does, in the order of time.
    pub acts: Vec<(Duration, Act)>,
}

/// What a viewer does, so long after the stream's start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// Pauses, or goes on.
    Pause(bool),
    /// Plays at so many times the media's rate.
    Speed(f64),
    /// Goes to this play time of the media.
    Seek(Duration),
    /// Closes the player.
    Leave,
}

/// How many connections, and which windows.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// A fixed number over all servers, each with this receive window (`None`: as large as can be).
    Fixed {
        /// How many connections.
        connections: u32,
        /// The receive window of each.
        window: Option<Bytes>,
    },
    /// MultiTCP, basic.
    Basic(anabranch_film::multitcp::Parameters),
    /// MultiTCP, advanced.
    Advanced(anabranch_film::multitcp::AdvancedParameters),
    /// MUL-TCP.
    Mul(anabranch_congestion::multfrc::Parameters),
    /// TCP-ROME.
    Rome(anabranch_film::rome::Parameters),
    /// Ours.
    Auto(anabranch_film::auto::Parameters),
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

impl Link {
    /// A link that changes nothing and loses nothing, behind a DropTail queue of so many packets; its name is made of its ends.
    pub fn drop_tail(from: NodeId, to: NodeId, rate: Rate, delay: Duration, packets: u32) -> Self {
        Self {
            name: format!("{from}-{to}"),
            from,
            to,
            rate,
            delay,
            queue: Queue { limit: Limit::Packets(packets), discipline: Discipline::DropTail },
            loss: Loss::None,
            changes: Vec::new(),
            opportunities: None,
        }
    }
}

impl Tcp {
    /// TCP as it is deployed: 1460-byte segments, an initial window of ten, CUBIC, delayed acknowledgements, timestamps,
    /// a time-out of at least 200 ms.
    pub const DEPLOYED: Self = Self {
        segment: Bytes::new(1460),
        header: Bytes::new(40),
        congestion: Congestion::Cubic,
        initial_window: Packets::new(10),
        initial_ssthresh: None,
        receive_window: None,
        delayed_ack: Some(DelayedAck { every: 2, delay: Duration::from_millis(40) }),
        limited_transmit: true,
        idle_restart: true,
        timestamps: true,
        rto: Rto {
            initial: Duration::from_secs(1),
            least: Duration::from_millis(200),
            most: Duration::from_secs(60),
            granularity: Duration::from_millis(1),
        },
        recovery: Recovery::Sack,
        send_jitter: Duration::ZERO,
        share: None,
        tuning: None,
    };
}
