//! What connections tell: that they are up, what they bring, and how they end.

use anabranch_units::{Bytes, Duration, Ratio, Time};

use super::Session;
use super::connection::PathFigures;
use super::paths::{Paths, Refusal};
use crate::content::Arrival;
use crate::control::{ConnectionId, PathId};

impl Session {
    /// A connection is set up; `rtt` is what the handshake took.
    pub fn connected(&mut self, connection: ConnectionId, rtt: Duration, now: Time) {
        self.now = now;
        if self.connections.contains_key(&connection) {
            self.coordinator.add_connection(connection, rtt, now);
            self.is_up(connection, rtt, now);
        }
    }

    pub(super) fn is_up(&mut self, connection: ConnectionId, rtt: Duration, now: Time) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.established(rtt, now);
        let path = state.path;
        if state.group.is_none() && !self.share.is_zero() {
            // Should it bring less than the others did, it is not to keep for long what it was asked for.
            let expected = self.share * Ratio::new(1, 2);
            state.rate = expected;
            self.coordinator.estimate(connection, expected, rtt);
        }
        self.paths.answered(path);
        self.waiting = false;
        self.with_sample(now, |controller, sample| controller.connected(connection, path, sample));
        self.fill(now);
    }

    /// Bytes of the response that the connection is answering have arrived. Answers what became of them.
    pub fn arrived(&mut self, connection: ConnectionId, length: u64, now: Time) -> Arrival {
        self.now = now;
        let Some((request, position)) = self.coordinator.answering(connection) else {
            return Arrival::default();
        };
        let waited_for = self.coordinator.first_wanted();
        let arrival = self.coordinator.arrived(request, length, now);
        let new = if self.ranges {
            arrival.fresh
        } else {
            // It begins at the start, whatever is wanted: only from there on it is of use.
            let end = position.saturating_add(length);
            self.progress.came_again(end, now);
            waited_for.map_or(0, |first| end.saturating_sub(first.max(position)).min(arrival.fresh))
        };
        self.count(connection, arrival, new, now);
        if arrival.complete || self.coordinator.can_be_asked(connection) {
            self.fill(now);
        }
        // Not only when it is looked at next: for its rate only the time with work counts.
        if arrival.complete
            && self.coordinator.queue_length(connection) == 0
            && let Some(state) = self.connections.get_mut(&connection)
        {
            state.note_work(false, now);
        }
        arrival
    }

    /// Bytes of an answer have arrived that was under way before the session began, and whose bytes it takes for there:
    /// they tell what the connection brings.
    pub fn first_arrived(&mut self, connection: ConnectionId, length: u64, now: Time) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.delivered(length, length, now);
        }
    }

    /// Takes what arrived into the figures; `new` of it brought the stream on.
    pub(super) fn count(&mut self, connection: ConnectionId, arrival: Arrival, new: u64, now: Time) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.delivered(arrival.fresh + arrival.duplicate, new, now);
            self.paths.delivered(state.path, arrival.fresh + arrival.duplicate, new);
        }
        if new > 0 {
            self.progress.got_on(now);
        } else {
            self.progress.came_in_vain();
        }
        self.totals.received += arrival.fresh + arrival.duplicate;
        self.totals.duplicate += arrival.duplicate;
    }

    /// The answer to the request under way ended early, but the connection goes on.
    pub fn cut_short(&mut self, connection: ConnectionId, now: Time) {
        self.now = now;
        if let Some((request, _)) = self.coordinator.answering(connection) {
            self.coordinator.cut_short(request);
        }
        self.fill(now);
    }

    /// A connection is gone or was never set up. `error` says why; `None`: it ended in good order.
    pub fn closed(&mut self, connection: ConnectionId, error: Option<&str>, now: Time) {
        self.now = now;
        let brought = self.connections.get(&connection).map_or(0, |state| state.new);
        self.remove(connection, now, |paths, path| match error {
            Some(error) => paths.failed(path, error, Bytes::new(brought), now),
            None => paths.ended(path, now),
        });
        // A server that ends a connection after each answer is asked on at once.
        self.reopen_when_alone(now);
    }

    /// The server refused a request on this connection, which the driver closes.
    pub fn refused(&mut self, connection: ConnectionId, refusal: &Refusal, now: Time) {
        self.now = now;
        self.remove(connection, now, |paths, path| paths.refused(path, refusal, now));
    }

    fn remove(&mut self, connection: ConnectionId, now: Time, note: impl FnOnce(&mut Paths, PathId)) {
        let Some(state) = self.connections.remove(&connection) else { return };
        self.gone += state.delivered_now();
        note(&mut self.paths, state.path);
        if !state.closing {
            self.controller.closed(connection, now);
        }
        self.forget_connection(connection, state.group);
        self.fill(now);
    }

    /// What the system knows about a connection's path; to be told before every measurement.
    pub fn path_figures(&mut self, connection: ConnectionId, figures: &PathFigures, now: Time) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.figures(figures, now);
        }
    }

    /// A path can no longer be used (another file, another size).
    pub fn path_lost(&mut self, path: PathId, error: &str, now: Time) {
        self.now = now;
        self.paths.refused(path, &Refusal::Gone(error.to_owned()), now);
        let there: Vec<_> =
            self.connections.iter().filter(|(_, c)| c.path == path).map(|(id, _)| *id).collect();
        for connection in there {
            self.close_now(connection, "its path cannot be used any more");
        }
        self.fill(now);
    }
}
