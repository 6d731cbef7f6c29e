//! The first bytes of a film, where they are under way before its session begins: readers get them as they
//! come. The session takes them for there; what does not come of them after all it is told to forget.

use std::ops::Range;

use anabranch_film::control::ConnectionId;
use anabranch_units::{Duration, Time};

/// First bytes that have not all come.
#[derive(Debug)]
pub(super) struct First {
    /// Where they belong.
    pub(super) range: Range<u64>,
    /// Over which connection they come; `None`: no task has it yet.
    connection: Option<ConnectionId>,
    /// When something of them came last.
    heard: Time,
}

impl First {
    /// The first `coming` bytes; `None` of none.
    pub(super) fn new(coming: u64) -> Option<Self> {
        (coming > 0).then_some(Self { range: 0..coming, connection: None, heard: Time::ZERO })
    }

    /// They come over this connection.
    pub(super) fn come_over(&mut self, connection: ConnectionId) {
        self.connection = Some(connection);
    }

    /// Whether they come over this connection.
    pub(super) fn is_of(&self, connection: ConnectionId) -> bool {
        self.connection == Some(connection)
    }

    /// Some have come.
    pub(super) fn heard(&mut self, now: Time) {
        self.heard = now;
    }

    /// The connection that has brought nothing of them for so long; `Err`: nobody has taken it.
    pub(super) fn silent(&self, after: Duration, now: Time) -> Option<Result<ConnectionId, ()>> {
        (now.since(self.heard) > after).then(|| self.connection.ok_or(()))
    }
}
