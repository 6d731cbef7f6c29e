//! What a connection's task is told to do, and how its life ends.

use std::ops::Range;

use anabranch_film::content::RequestId;
use anabranch_film::session::Refusal;
use anabranch_protocol::stripe::frame::Frame;

use super::error::{Cure, EngineError};

/// The kernel overwrites a window when the first data comes: during the first reads it is set again at once.
pub(super) const EARLY_READS: u32 = 32;

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) request: RequestId,
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

/// How a connection's life ended.
pub(super) enum End {
    /// In good order, by the server.
    Closed,
    /// By an error of the connection.
    Failed(String),
    /// The server refused.
    Refused(Refusal),
    /// The path leads to something else, and this helps.
    Lost(String, Cure),
    /// The film is longer now: it has grown, or is another one.
    Grown {
        /// Its size now.
        to: u64,
    },
    /// The whole stream cannot go on.
    Fatal(EngineError),
}

impl End {
    /// The film on the server is another one now.
    pub(super) fn changed(how: &str) -> Self {
        Self::Lost(format!("the film changed on the server: {how}"), Cure::StartOver)
    }
}
