//! How the rate controller's orders are carried out: connections opened and closed, windows set.

use anabranch_units::Duration;

use super::Session;
use super::api::{Action, Pace};
use super::connection::Connection;
use crate::control::{ConnectionId, Order, PathId, What, Window};

impl Session {
    pub(super) fn obey(&mut self, orders: Vec<Order>) {
        let is_bounded = !matches!(self.pace, Pace::AtLeast { .. });
        for Order { what, why } in orders {
            match what {
                What::SetWindow(..) | What::LimitRate(_) if !is_bounded => {}
                // None is of use before there is something to ask for; what a server closed because it was
                // idle is replaced then.
                What::Open(_) if !self.wants_something() || self.has_lent() => {}
                What::Open(path) => self.open(path, why),
                What::Close(connection) => self.close_when_empty(connection, why),
                What::SetWindow(connection, window) => self.set_window(connection, window, why),
                What::LimitRate(rate) => self.actions.push_back(Action::LimitRate(rate)),
            }
        }
    }

    /// Whether all is asked for, over connections that go to others then.
    fn has_lent(&self) -> bool {
        self.lends && self.coordinator.is_all_asked_for() && !self.connections.is_empty()
    }

    pub(super) fn open(&mut self, path: Option<PathId>, why: &'static str) {
        if self.keep_instead(path) {
            return;
        }
        let choice = self.paths.choose(path, &self.connections, self.ranges, self.now);
        let Some(path) = choice else { return };
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(connection, Connection::new(connection, path, self.now));
        self.totals.connections_most = self.totals.connections_most.max(self.connections.len());
        self.actions.push_back(Action::Open { connection, path, why });
    }

    /// Takes the closing of a connection back, if one is being closed that would do: it has found its rate,
    /// and a new one beside it would be one too many.
    fn keep_instead(&mut self, path: Option<PathId>) -> bool {
        let closing = self.connections.values_mut().find(|state| {
            state.closing && state.pipe() == state.id && path.is_none_or(|path| state.path == path)
        });
        let Some(state) = closing else { return false };
        state.closing = false;
        let (connection, path) = (state.id, state.path);
        self.coordinator.resume(connection);
        self.with_sample(self.now, |controller, sample| controller.connected(connection, path, sample));
        true
    }

    /// Closes a connection after what it was asked for has arrived, where that is soon.
    pub(super) fn close_when_empty(&mut self, connection: ConnectionId, why: &'static str) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.closing = true;
        let pipe = state.pipe();
        self.controller.closed(connection, self.now);
        if self.leave_group(connection, why) {
            return;
        }
        self.coordinator.drain(pipe);
        let patience = self.connections.get(&connection).map_or(Duration::ZERO, Connection::patience);
        let is_long = self.ranges && self.coordinator.outlasts(pipe, patience, self.now);
        if self.coordinator.queue_length(pipe) == 0 || is_long {
            self.close_now(connection, why);
        }
    }

    /// Closes a connection; what it was asked for is asked for elsewhere.
    pub(super) fn close_now(&mut self, connection: ConnectionId, why: &'static str) {
        if let Some(state) = self.connections.remove(&connection) {
            self.gone += state.delivered_now();
            if !state.closing {
                self.controller.closed(connection, self.now);
            }
            self.actions.push_back(Action::Close { connection, why });
            self.forget_connection(connection, state.group);
        }
    }

    fn set_window(&mut self, connection: ConnectionId, window: Window, why: &'static str) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let bytes = match window {
            Window::Unlimited => None,
            Window::Packets(packets) => Some(packets * state.packet_size),
        };
        state.window = bytes;
        self.actions.push_back(Action::SetWindow { connection, window: bytes, why });
    }
}
