//! A connection of a stream: what was asked for on it, and what is still to come.

use std::collections::VecDeque;

use anabranch_congestion::vps::Weight;

use crate::network::HalfId;

/// What a request takes on its way, and the header of an answer: an HTTP/1.1 range request and a server that
/// says little.
pub(super) const REQUEST_SIZE: u64 = 200;
pub(super) const ANSWER_HEADER_SIZE: u64 = 200;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Where it ends, of everything that the client has written.
    pub(super) end: u64,
    /// How long its answer's body is.
    pub(super) body: u64,
    /// What the connection counts in its group from then on.
    pub(super) weight: Option<Weight>,
}

/// A connection of a stream.
#[derive(Debug)]
pub(super) struct Connection {
    /// From the client to the server: requests.
    pub(super) up: HalfId,
    /// From the server to the client: answers.
    pub(super) down: HalfId,
    /// At the server, or on their way there.
    pub(super) asked: VecDeque<Request>,
    /// Everything written by the client, and by the server.
    pub(super) written_up: u64,
    pub(super) written_down: u64,
    /// Whether the server has said that it has no place for it.
    pub(super) is_turned_away: bool,
    /// When it was opened.
    pub(super) since: u64,
    /// At the client: what is still to come of each answer, its header and its body.
    pub(super) awaited: VecDeque<(u64, u64)>,
}

impl Connection {
    /// One that is opened now.
    pub(super) fn new(up: HalfId, down: HalfId, now: u64) -> Self {
        Self {
            up,
            down,
            asked: VecDeque::new(),
            written_up: 0,
            written_down: 0,
            is_turned_away: false,
            since: now,
            awaited: VecDeque::new(),
        }
    }
}
