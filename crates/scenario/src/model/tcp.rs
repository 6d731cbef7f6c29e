//! TCP as a flow has it.

/// Congestion controls of TCP.
pub use anabranch_congestion::algorithm::Algorithm as Congestion;
use anabranch_congestion::need::NeedRule;
use anabranch_congestion::tfwc::BufferRule;
use anabranch_congestion::vps::Weight;
use anabranch_congestion::vps::settings::Begins;
use anabranch_units::{Bytes, Duration, Packets};

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
    /// Whether every segment carries a timestamp (RFC 7323), so that every acknowledgement measures the RTT;
    /// otherwise one segment in flight at a time is timed.
    pub timestamps: bool,
    /// Bounds of the retransmission time-out, and its first value (RFC 6298).
    pub rto: Rto,
    /// Which recovery from losses.
    pub recovery: Recovery,
    /// How it knows of marks; `None`: its packets are dropped where others are marked.
    pub ecn: Option<Ecn>,
    /// Sending waits for a random time up to this one after what allowed it (ns-2's `overhead_`): zero for
    /// none.
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
    /// Each flow is told a window, with its own acknowledgements, as in a kernel
    /// (`anabranch_congestion::joint`).
    Window,
}

/// A flow's place in a weighted group: flows of one sender that share what as many plain flows would get.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The group's name.
    pub group: String,
    /// The flow's weight in it; of a media stream that of all its connections together.
    pub weight: Weight,
    /// How what its player tells with each request gives the weight of a media stream, in place of `weight`.
    pub by_need: Option<NeedRule>,
    /// Where members begin that are parted and joined by what is seen of their bottlenecks; `None`: all share.
    pub watches: Option<Begins>,
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
    /// As ns-2's `Agent/TCP/Sack1` does it, with ns-2's time-outs in whole ticks, to show what of a
    /// difference comes from there.
    Ns2Sack1,
}

/// How a flow knows of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Packets carry ECT(0), and the receiver echoes a mark until it hears that the window was reduced (RFC
    /// 3168, section 6.1).
    Classic,
    /// Packets carry ECT(1), and the receiver tells how much of what came was marked (L4S; RFC 9331, RFC
    /// 9768): for congestion controls that answer by how much.
    L4s,
}

impl Tcp {
    /// TCP as it is deployed: 1460-byte segments, an initial window of ten, CUBIC, delayed acknowledgements,
    /// timestamps, a time-out of at least 200 ms.
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
        ecn: None,
        send_jitter: Duration::ZERO,
        share: None,
        tuning: None,
    };

    /// What of it does not go with its `ecn`, as an error says it.
    pub fn deaf_to_marks(&self) -> Option<&'static str> {
        if self.ecn != Some(Ecn::L4s) && self.congestion.is_scalable() {
            return Some("`dctcp` goes by how much is marked: say `ecn = \"l4s\"`");
        }
        self.ecn?;
        match self {
            Self { recovery: Recovery::Ns2Sack1, .. } => {
                Some("ns-2's recovery knows no marks: `ecn` goes with `sack`")
            }
            Self { congestion: Congestion::Bbr, .. } => {
                Some("`bbr` has no answer to marks here: leave out `ecn`")
            }
            Self { share: Some(_), .. } => {
                Some("a group hears of no marks: a flow in a `group` has no `ecn`")
            }
            Self { ecn: Some(Ecn::L4s), congestion, .. } if !congestion.is_scalable() => {
                Some("`l4s` is for `dctcp`, which answers by how much is marked: the others have `classic`")
            }
            _ => None,
        }
    }
}
