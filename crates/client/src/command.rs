//! What the owner of a film tells a connection's task, and what the tasks and readers tell the owner.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anabranch_film::content::{ReaderId, RequestId};
use anabranch_film::control::{ConnectionId, PathId};
use anabranch_film::session::Refusal;
use anabranch_http::tcp::SocketControl;
use anabranch_protocol::stripe::frame::Frame;
use anabranch_units::Duration;
use tokio::sync::oneshot;

use super::error::{Cure, EngineError};
use super::membership::{Brought, GroupName};
use super::unheard::Unheard;

/// The kernel overwrites a window when the first data comes: during the first reads it is set again at once.
pub(super) const EARLY_READS: u32 = 32;

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// `None`: the first bytes of the film, which were asked for when it was opened.
    pub(super) request: Option<RequestId>,
    pub(super) range: Range<u64>,
}

/// What a connection's task is told to do.
pub(super) enum Command {
    /// Ask for a range.
    Ask(Asked),
    /// Send a frame to the stripe group.
    Order(Frame<'static>),
    /// Leave the stripe group in good order.
    Leave,
}

/// What the owner is told.
pub(super) enum Report {
    /// A connection is set up, and asks for ranges.
    Connected { id: ConnectionId, control: SocketControl, rtt: Duration },
    /// Payload of the answer to this request is where it is kept.
    Arrived { id: ConnectionId, request: RequestId, range: Range<u64>, unheard: Unheard },
    /// First bytes of the film, which were asked for when it was opened, are where they are kept.
    FirstArrived { id: ConnectionId, length: u64, unheard: Unheard },
    /// The answer to a range ended before its last byte.
    CutShort { id: ConnectionId, request: RequestId },
    /// The answer of a server without ranges ended.
    WholeEnded { id: ConnectionId, path: PathId },
    /// A connection lives, though nothing comes over it.
    Alive { id: ConnectionId },
    /// A connection's life has ended.
    Ended { id: ConnectionId, path: PathId, end: End },
    /// A connection wants to know which group to join; `None`: ranges are to be asked for.
    Joining { path: PathId, answer: oneshot::Sender<Option<GroupName>> },
    /// A connection is in the group of this number. The answer: false where that group has ended meanwhile.
    Joined {
        id: ConnectionId,
        path: PathId,
        number: u32,
        control: SocketControl,
        rtt: Duration,
        answer: oneshot::Sender<bool>,
    },
    /// The path's server does not stripe, for this reason.
    NotStriped { path: PathId, error: String },
    /// Frames have come over a connection of a group; then something that is no frame, where there is an
    /// error.
    Brought {
        id: ConnectionId,
        path: PathId,
        frames: Vec<Brought>,
        broken: Option<String>,
        unheard: Option<Unheard>,
    },
    /// Somebody begins to read.
    ReaderCame { id: ReaderId, range: Range<u64>, position: Arc<AtomicU64> },
    /// A reader has taken much, or waits.
    ReaderMoved,
    /// A reader reads no more.
    ReaderLeft { id: ReaderId },
    /// The film is not wanted any more.
    Stop,
}

/// How a connection's life ended.
pub(super) enum End {
    /// In good order, by the server.
    Closed,
    /// By an error of the connection.
    Failed(String),
    /// The server refused.
    Refused(Refusal),
    /// The server forbids it: on one of several connections that means not so many.
    Forbidden {
        /// When to come again, where it says that.
        after: Option<Duration>,
        /// What it says.
        said: String,
    },
    /// The path leads to something else, and this helps.
    Lost(String, Cure),
    /// The whole stream cannot go on.
    Fatal(EngineError),
    /// The film is longer now: it has grown, or is another one.
    Grown {
        /// Its size now.
        to: u64,
    },
}

impl End {
    /// The film on the server is another one now.
    pub(super) fn changed(how: &str) -> Self {
        Self::Lost(format!("the film changed on the server: {how}"), Cure::StartOver)
    }

    /// What went wrong, where anything did.
    pub(super) fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error) | Self::Lost(error, _) | Self::Forbidden { said: error, .. } => Some(error),
            Self::Fatal(error) => Some(&error.message),
            Self::Refused(
                Refusal::TooMany { said: error, .. } | Refusal::Trouble(error) | Refusal::Gone(error),
            ) => Some(error),
            Self::Closed | Self::Grown { .. } => None,
        }
    }
}
