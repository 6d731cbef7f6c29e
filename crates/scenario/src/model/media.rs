//! Media streams: a film, its servers, and who reads it.

use anabranch_units::{Bytes, Duration, Rate};

use super::ids::NodeId;
use super::tcp::Tcp;

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
    pub algorithm: RateControl,
    /// When the player starts and stops.
    pub playback: anabranch_film::playback::Parameters,
    /// How the player takes what has arrived; `None`: all of it at once.
    pub reader: Option<Reader>,
    /// Of a film in segments that is there at several rates: who chooses among them. The stream's rate is that
    /// of the lowest rung then.
    pub ladder: Option<Ladder>,
    /// The content coordinator's parameters.
    pub policy: anabranch_film::content::Policy,
    /// The most that a connection's receive window can be (a socket's buffer).
    pub largest_window: Option<Bytes>,
    /// A connection has to be set up in this time; without it TCP tries for ever.
    pub connect_timeout: Option<Duration>,
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
    /// Which rate the media has from which play time on, rising; before the first the rate that the session
    /// is told, which it hears of none of these.
    pub scenes: Vec<(Duration, Rate)>,
}

/// A film in segments of several rates, and a player that asks for one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// The rates, rising; at least one.
    pub rungs: Vec<Rate>,
    /// How long each segment plays.
    pub segment: Duration,
    /// How the player chooses, and how much it holds.
    pub adaptation: anabranch_film::adaptation::Parameters,
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
pub enum RateControl {
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
