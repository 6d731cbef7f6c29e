//! The contract between a receiver session and a rate controller: one [`Sample`] an interval in, [`Order`]s
//! out.
//!
//! A rate controller decides how many connections there are and which receive window each of them has. Which
//! bytes go over which connection is the content coordinator's business.

use std::fmt;

pub use anabranch_protocol::ConnectionId;
use anabranch_units::{Bytes, Duration, Packets, Rate, Time};

/// A way to the media: one replica over one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}

/// What one connection did in the interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionSample {
    /// Which connection.
    pub connection: ConnectionId,
    /// Where it goes.
    pub path: PathId,
    /// Payload that arrived in the interval.
    pub delivered: Bytes,
    /// Smoothed round-trip time, queueing included.
    pub srtt: Duration,
    /// Payload of a full packet (the papers' MTU; the MSS of a TCP connection).
    pub packet_size: Bytes,
    /// How long ago the last payload arrived.
    pub silent: Duration,
    /// Share of the arrived packets that were lost before and sent again, as far as the receiver can tell; 0
    /// to 1.
    pub loss: f64,
    /// Whether the network, and not the receiver, held the connection back: the window was not full and
    /// everything that had arrived was read.
    pub network_limited: bool,
}

/// A way to the media as the session sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSample {
    /// Which path.
    pub path: PathId,
    /// Connections on it, those being set up included.
    pub connections: usize,
    /// Whether one more connection may be opened: the path is up, not backing off and below its cap.
    pub may_open: bool,
    /// Whether nothing has come over it since something failed there: to be tried last.
    pub failing: bool,
}

/// What a session measured in one interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// End of the interval.
    pub now: Time,
    /// Length of the interval.
    pub elapsed: Duration,
    /// The rate that the media needs (T_d of MultiTCP, R_v of TCP-ROME); `None` while it is not known.
    pub wanted: Option<Rate>,
    /// Play time of the data that is in the buffer, `None` when nothing plays.
    pub buffer: Option<Duration>,
    /// The established connections, by id, but for those that are being given up.
    pub connections: &'a [ConnectionSample],
    /// How many more are being set up.
    pub connecting: usize,
    /// The ways to the media, by id.
    pub paths: &'a [PathSample],
    /// Payload that arrived in the interval over connections that are being given up or are gone.
    pub aside: Bytes,
    /// Whether the receiver and not the network set what arrived: a connection lay idle for a good part of
    /// the interval, as everything that is wanted was asked for, or the limit kept most of them from reading
    /// for most of it.
    pub sated: bool,
    /// What is still to come of a segment, all of which has to be there before any of it plays; zero: nothing is
    /// known of that.
    pub left: Bytes,
    /// Whether a player takes all that comes, and never left anything: its own buffer has shown no bound, and
    /// nobody knows how fast it plays.
    pub hungry: bool,
    /// What the rung above needs that is played, of a player that may go there; `None`: there is none, or nobody
    /// knows it.
    pub next_rung: Option<Rate>,
}

impl Sample<'_> {
    /// Payload that arrived over all connections, as a rate (T_n of MultiTCP section 6.3).
    pub fn throughput(&self) -> Rate {
        Rate::of(self.delivered(), self.elapsed)
    }

    /// Payload that arrived over all connections, those that are given up included.
    pub fn delivered(&self) -> Bytes {
        self.aside + self.connections.iter().map(|connection| connection.delivered).sum()
    }

    /// Mean of the smoothed round-trip times, zero without connections.
    pub fn mean_rtt(&self) -> Duration {
        let count = Bytes::of(self.connections.len()).get();
        if count == 0 {
            return Duration::ZERO;
        }
        self.connections.iter().map(|connection| connection.srtt).sum::<Duration>() / count
    }

    /// The largest packet payload of the connections, or `otherwise` without any.
    pub fn packet_size(&self, otherwise: Bytes) -> Bytes {
        self.connections.iter().map(|connection| connection.packet_size).max().unwrap_or(otherwise)
    }
}

/// A receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// As large as the system likes.
    Unlimited,
    /// This many full packets.
    Packets(Packets),
}

/// One decision of a rate controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// What is to be done.
    pub what: What,
    /// Why, in words that a log can show.
    pub why: &'static str,
}

/// What a rate controller can order.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Start one more connection, on this path or where the session finds best.
    Open(Option<PathId>),
    /// Stop this connection, after what it was asked for has arrived.
    Close(ConnectionId),
    /// Set this connection's receive window.
    SetWindow(ConnectionId, Window),
    /// Read no faster than this over all connections together; `None`: as fast as it comes.
    LimitRate(Option<Rate>),
}

/// A rate controller: window sizes and the number of connections.
pub trait RateController: fmt::Debug + Send {
    /// The first orders, before any connection exists: how many to open.
    fn start(&mut self) -> Vec<Order>;

    /// A connection was set up after an `Open`, or one that was being closed goes on instead: the window it
    /// starts with.
    fn connected(&mut self, connection: ConnectionId, path: PathId, sample: &Sample<'_>) -> Vec<Order>;

    /// A connection is gone, by order or by accident.
    fn closed(&mut self, connection: ConnectionId, now: Time);

    /// The end of a measuring interval.
    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order>;

    /// From now on another segment of the film is got, over the connections that are there.
    fn next_segment(&mut self, _now: Time) {}

    /// Length of the measuring interval (delta of MultiTCP, phi of TCP-ROME) at this mean round-trip time.
    fn interval(&self, rtt: Duration) -> Duration;
}
