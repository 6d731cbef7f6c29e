//! What a session is told at its beginning, and what it tells its driver to do.

use std::ops::Range;

use anabranch_protocol::ranges::RangeSet;
use anabranch_protocol::stripe::frame::Frame;
use anabranch_units::{Bytes, Duration, Rate};

use crate::content::{Policy, RequestId};
use crate::control::{ConnectionId, PathId, RateController};
use crate::playback;

/// What is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as it comes.
    Max,
    /// This rate, exactly.
    Limit(Rate),
    /// The rate of the media, so that the buffer stays between its thresholds; `None`: not known (yet),
    /// inferred from what the player takes.
    Media(Option<Rate>),
    /// At least this rate, which the media needs: as many connections as hold it, and each as fast as it
    /// comes. So are segments of a playlist got, whose player chooses by how fast they come.
    AtLeast {
        /// The media's.
        rate: Rate,
        /// What the player had to play when the session began.
        ahead: Duration,
        /// What the rung above needs, where the player may go there and somebody knows it.
        next: Option<Rate>,
    },
}

/// What a session is to do.
#[derive(Debug)]
pub struct Config {
    /// Parameters of the content coordinator.
    pub policy: Policy,
    /// How many connections and which windows.
    pub controller: Box<dyn RateController>,
    /// What is to be held.
    pub pace: Pace,
    /// When the player starts and stops.
    pub playback: playback::Parameters,
    /// Rate of the media for the playback model, where the pace does not tell it.
    pub media_rate: Option<Rate>,
    /// Size of the media, if known.
    pub size: Option<u64>,
    /// What is there already.
    pub have: RangeSet,
    /// Whether the servers know ranges. Without them one connection brings everything in order.
    pub ranges: bool,
    /// Most connections on each path.
    pub path_caps: Vec<usize>,
    /// The session fails when nothing has arrived for so long although something was wanted.
    pub give_up_after: Duration,
    /// A connection that has work and brings nothing for so long is closed (or for ten round trips, if that
    /// is longer).
    pub silent_after: Duration,
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Set up a connection on a path.
    Open {
        /// Its name from now on.
        connection: ConnectionId,
        /// Where to.
        path: PathId,
        /// Why.
        why: &'static str,
    },
    /// Close a connection now; it is not reported with [`closed`](super::Session::closed).
    Close {
        /// Which.
        connection: ConnectionId,
        /// Why.
        why: &'static str,
    },
    /// Ask for bytes. `range.end` is `u64::MAX` where the size is not known.
    Request {
        /// On which connection.
        connection: ConnectionId,
        /// The request's name.
        request: RequestId,
        /// Which bytes; without ranges all of them.
        range: Range<u64>,
        /// Why these.
        why: &'static str,
    },
    /// Send a frame to the server's stripe group.
    Order {
        /// On which connection.
        connection: ConnectionId,
        /// WANT, CANCEL or SYNC.
        frame: Frame<'static>,
        /// Why.
        why: &'static str,
    },
    /// Take a connection out of its stripe group in good order: send nothing more and say so, take what still
    /// comes, and report it as closed when the server has ended it.
    Leave {
        /// Which.
        connection: ConnectionId,
        /// Why.
        why: &'static str,
    },
    /// Set a connection's receive window.
    SetWindow {
        /// Whose.
        connection: ConnectionId,
        /// In bytes of payload; `None`: as large as the system likes.
        window: Option<Bytes>,
        /// Why.
        why: &'static str,
    },
    /// Read no faster than this over all connections together.
    LimitRate(Option<Rate>),
    /// No path is up; the session waits until this time for the next try.
    Waiting {
        /// What went wrong last.
        last_error: String,
    },
    /// The session cannot go on.
    Fail {
        /// What went wrong.
        error: String,
    },
}
