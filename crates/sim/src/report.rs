//! What a simulation tells: samples while it runs, totals at its end.

use anabranch_queues::Codepoint;
use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::model::{FlowId, LinkId, NodeId};

/// A flow during one sampling interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSample {
    /// End of the interval.
    pub at: Time,
    /// Which flow.
    pub flow: FlowId,
    /// Payload that the receiver got in order (TCP), or got at all (UDP, TFRC).
    pub delivered: Bytes,
    /// Bytes of data packets that arrived at the receiver, headers included.
    pub arrived_wire: Bytes,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Data packets dropped or lost on the way.
    pub lost: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Congestion window at the end of the interval, over all connections; zero without one.
    pub cwnd: Bytes,
    /// Slow start threshold of the first connection.
    pub ssthresh: Bytes,
    /// Receive window over all connections; [`Bytes::MAX`] where nothing limits it.
    pub receive_window: Bytes,
    /// Smoothed RTT, a mean over connections; zero while unknown.
    pub srtt: Duration,
    /// Open connections.
    pub connections: u32,
    /// How many connections the flow sends as if it had them (n): under AIO-TFRC not a whole number, zero for
    /// what is not TFRC.
    pub flows: f64,
    /// What a media stream's player has in its buffer.
    pub buffer: Option<Duration>,
    /// What a media stream has from its beginning on without a gap.
    pub in_order: Bytes,
    /// Of a TCP flow in a VPS group: the first of the flows with which it shares at the end of the interval,
    /// which is itself where it is alone.
    pub company: Option<FlowId>,
}

/// A link during one sampling interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSample {
    /// End of the interval.
    pub at: Time,
    /// Which link.
    pub link: LinkId,
    /// Bytes whose transmission ended in the interval.
    pub transmitted: Bytes,
    /// Packets whose transmission ended in the interval.
    pub packets: u64,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Packets lost on the wire.
    pub lost: u64,
    /// Sum of the times that the packets transmitted in the interval had waited; over the interval's length
    /// it is the mean number of waiting packets (Little's law).
    pub waited: Duration,
}

/// A decision of a flow's controller, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Time,
    /// Which flow.
    pub flow: FlowId,
    /// Which of its connections, where one is meant.
    pub connection: Option<u32>,
    /// What: `open`, `close`, `request`, `window`, `stall`, `loss_event`, `timeout` and so on.
    pub what: &'static str,
    /// A figure that belongs to it: bytes of a window or a request.
    pub value: Option<u64>,
    /// Why.
    pub why: String,
}

/// A flow from the end of the warm-up to the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTotals {
    /// Payload that the receiver got in order (TCP), or got at all (UDP, TFRC).
    pub delivered: Bytes,
    /// Bytes of data packets that arrived at the receiver, headers included.
    pub arrived_wire: Bytes,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Data packets dropped by queues.
    pub dropped: u64,
    /// Data packets lost on wires.
    pub lost: u64,
    /// Data packets that arrived marked (ECN).
    pub marked: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Window reductions: recoveries, time-outs and answers to marks; loss events of TFRC.
    pub loss_events: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Acknowledgements of TCP with which the window could grow: of new data, outside recovery.
    pub growths: u64,
    /// Mean of the measured round trips; zero where none was measured.
    pub rtt_mean: Duration,
    /// When a file had arrived as a whole.
    pub completed: Option<Time>,
    /// What a media stream adds.
    pub media: Option<MediaTotals>,
    /// What a live stream adds.
    pub live: Option<LiveTotals>,
}

/// What a live stream adds to its flow's totals. Packets count that came into the sender after the warm-up and
/// whose time is over: the latency, and a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveTotals {
    /// The latency that was asked for.
    pub latency_asked: Duration,
    /// Packets of the stream.
    pub packets: u64,
    /// Of them, those that never came out of the receiver.
    pub missing: u64,
    /// From the input of the sender to the output of the receiver: the median.
    pub latency_median: Option<Duration>,
    /// The same: 99 of 100 took no longer.
    pub latency_99: Option<Duration>,
    /// In the whole run: what the sender gave up before it left.
    pub given_up: u64,
    /// In the whole run: packets that were sent again.
    pub again: u64,
    /// In the whole run: packets of parity.
    pub parity: u64,
    /// In the whole run: most connections at a time.
    pub connections_max: u32,
}

/// What a media stream adds to its flow's totals; not cut by the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MediaTotals {
    /// How long it was there: from its start to its stop or the end of the run.
    pub lasted: Duration,
    /// How long until play began.
    pub startup: Option<Duration>,
    /// Stalls after the beginning.
    pub stalls: u32,
    /// How long they took.
    pub stalled: Duration,
    /// Most connections at a time.
    pub connections_max: u32,
    /// Mean number of connections over the stream's time.
    pub connections_mean: f64,
    /// Requests for parts of it.
    pub requests: u64,
    /// Bytes that came twice.
    pub duplicate: Bytes,
    /// Bytes asked for again.
    pub rerequested: Bytes,
    /// What the viewer saw, where the player has a buffer of its own; the figures above are what the session
    /// thinks.
    pub seen: Option<Seen>,
}

impl MediaTotals {
    /// Start-up, stalls and the time in them, as the viewer saw them; where the player takes everything at
    /// once, the session knows.
    pub fn viewed(&self) -> (Option<Duration>, u32, Duration) {
        match self.seen {
            Some(seen) => (seen.startup, seen.stalls, seen.stalled),
            None => (self.startup, self.stalls, self.stalled),
        }
    }
}

/// What the viewer of a simulated player saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How long until play began.
    pub startup: Option<Duration>,
    /// Stops for want of media. Waiting after a seek is none.
    pub stalls: u32,
    /// How long they took.
    pub stalled: Duration,
    /// How much of the media was played.
    pub played: Bytes,
    /// The mean rate of what was played, of a player that chooses rungs and has played.
    pub rung: Option<Rate>,
    /// How often the rung changed in what was played.
    pub switches: u32,
}

/// A link from the end of the warm-up to the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkTotals {
    /// Packets that came to the queue.
    pub offered: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Packets that the queue marked (ECN).
    pub marked: u64,
    /// Packets lost on the wire.
    pub lost: u64,
    /// Packets transmitted.
    pub packets: u64,
    /// Bytes transmitted.
    pub transmitted: Bytes,
    /// Sum of the times that packets waited; over the counted time it is the mean number of waiting packets.
    pub waited: Duration,
    /// Most packets in the queue at a time, the one in transmission included.
    pub queue_max: u32,
}

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// From the end of the warm-up to the end of the run.
    pub counted: Duration,
    /// Each flow, in the model's order.
    pub flows: Vec<FlowTotals>,
    /// Each link, in the model's order.
    pub links: Vec<LinkTotals>,
    /// Data packets sent by all flows in the whole run.
    pub data_packets: u64,
    /// Events of the whole run.
    pub events: u64,
}

/// A packet as it begins its way over a link, for traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When its transmission began.
    pub at: Time,
    /// Which link.
    pub link: LinkId,
    /// Which flow.
    pub flow: FlowId,
    /// Which connection of the flow.
    pub connection: u32,
    /// Whether it goes from the side that opened the connection to the other.
    pub from_opener: bool,
    /// The node that sent it.
    pub source: NodeId,
    /// The node that it is sent to.
    pub destination: NodeId,
    /// Size on the wire.
    pub size: Bytes,
    /// Payload.
    pub payload: Bytes,
    /// What it is.
    pub what: PacketKind,
    /// Its ECN codepoint.
    pub ecn: Codepoint,
    /// Its TCP flag about congestion (RFC 3168, section 6.1): of data that the window was reduced (CWR), of
    /// an acknowledgement that marked data has come (ECE).
    pub ecn_flag: bool,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// The first of a TCP connection's set-up.
    Syn,
    /// The second.
    SynAck,
    /// Data: position of its first byte.
    Data(u64),
    /// An acknowledgement: everything before it has arrived; the receive window in bytes; SACK blocks, empty
    /// ones unused.
    Ack {
        /// Everything before it has arrived.
        acknowledged: u64,
        /// The receive window.
        window: u64,
        /// SACK blocks, half open; empty ones are unused.
        sack: [(u64, u64); 3],
    },
    /// Ends a connection at once.
    Reset,
    /// A datagram: its number.
    Datagram(u64),
}

/// Who listens to a running simulation.
pub trait Observer {
    /// A flow's interval ended.
    fn flow(&mut self, _sample: &FlowSample) {}
    /// A link's interval ended.
    fn link(&mut self, _sample: &LinkSample) {}
    /// A controller decided something.
    fn decision(&mut self, _decision: &Decision) {}
    /// A packet began its way over a link; only called when [`Observer::wants_packets`].
    fn packet(&mut self, _packet: &PacketRecord) {}
    /// Whether loss events and time-outs of every TCP connection are to be told as decisions, besides those
    /// of media streams.
    fn wants_loss_events(&self) -> bool {
        false
    }
    /// Whether packets are to be told.
    fn wants_packets(&self) -> bool {
        false
    }
}

impl Observer for () {}
