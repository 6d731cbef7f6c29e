//! Requests: what is asked for, and what came of it.

use std::ops::Range;

use anabranch_protocol::stripe::QueueEnd;

use crate::control::ConnectionId;

/// One request for a range of bytes; never used twice in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A request to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// The bytes to ask for.
    pub range: Range<u64>,
    /// For a stripe group: whether they are needed before everything that it was asked for.
    pub priority: QueueEnd,
    /// Why these.
    pub why: &'static str,
}

/// What became of arrived bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes that were not there before.
    pub fresh: u64,
    /// Bytes that had come before over another connection.
    pub duplicate: u64,
    /// Whether the request is complete.
    pub complete: bool,
}

/// A segment, or its tail, that another connection was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassignment {
    /// Who was to deliver it. A stripe group is so no longer: what it has not sent yet can be cancelled.
    pub from: ConnectionId,
    /// Who is asked now.
    pub to: ConnectionId,
    /// The request to be sent.
    pub request: Request,
}
