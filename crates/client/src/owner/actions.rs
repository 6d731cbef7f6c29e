//! What the session wants, carried out.

use std::sync::Arc;

use anabranch_film::control::{ConnectionId, PathId};
use anabranch_film::session::Action;
use anabranch_protocol::stripe::frame::Frame;
use anabranch_units::{Bytes, Rate};
use tokio::sync::mpsc;

use super::Owner;
use crate::allowance::Allowance;
use crate::command::{Asked, Command};
use crate::connection::{self, Beginning};
use crate::error::{Cure, EngineError};
use crate::notice::Event;

impl Owner {
    /// Does what the session wants.
    pub(super) fn carry_out(&mut self) {
        while let Some(action) = self.session.poll_action() {
            match action {
                _ if self.failed.is_some() => {}
                Action::Open { connection, path, why } => self.open(connection, path, why),
                Action::Close { connection, why } => {
                    self.first_is_lost_with(connection);
                    if self.connections.close(connection) {
                        self.shared.note(Event::Close { connection: connection.0, why });
                    }
                }
                Action::Request { connection, request, range, why } => {
                    let end = (range.end < u64::MAX).then_some(range.end);
                    let first = range.start;
                    self.shared.note(Event::Request { connection: connection.0, first, end, why });
                    self.connections
                        .command(connection, Command::Ask(Asked { request: Some(request), range }));
                }
                Action::Order { connection, frame, why } => {
                    if let Frame::Want { range, .. } = &frame {
                        let (connection, first, end) = (connection.0, range.start, Some(range.end));
                        self.shared.note(Event::Request { connection, first, end, why });
                    }
                    self.connections.command(connection, Command::Order(frame));
                }
                Action::Leave { connection, why } => {
                    if self.connections.command(connection, Command::Leave) {
                        self.shared.note(Event::Close { connection: connection.0, why });
                    }
                }
                Action::SetWindow { connection, window, why } => {
                    let bytes = window.map(Bytes::get);
                    self.shared.note(Event::Window { connection: connection.0, bytes, why });
                    self.connections.set_window(connection, window);
                }
                Action::LimitRate(rate) => {
                    self.shared.note(Event::Limit { rate_bps: rate.map(Rate::as_bps) });
                    self.shared.pacer.set_rate(rate);
                }
                Action::Waiting { last_error } => self.shared.note(Event::Waiting { error: last_error }),
                Action::Fail { error } => self.fail(EngineError::new(error, self.cure())),
            }
        }
        if self.shared.pacer.is_limited() {
            self.connections.mark(|id| self.session.brings_first_bytes(id));
        }
    }

    fn open(&mut self, connection: ConnectionId, path: PathId, why: &'static str) {
        let (sender, commands) = mpsc::unbounded_channel();
        let shared = self.shared.clone();
        let allowance = Arc::new(Allowance::new(shared.ranges));
        let is_probed_way = shared.interface(path) == shared.interface(PathId(0));
        let first = if is_probed_way { self.probed.remove(&path) } else { None };
        let coming = match &mut self.first {
            Some(opening) if first.is_some() && path == PathId(0) => {
                opening.come_over(connection);
                opening.range.end
            }
            _ => 0,
        };
        let interface = shared.interface(path).map(ToString::to_string);
        shared.note(Event::Open {
            connection: connection.0,
            url: shared.url(path).to_owned(),
            interface,
            why,
        });
        let beginning =
            Beginning { shared, id: connection, path, first, coming, commands, allowance: allowance.clone() };
        self.connections.add(connection, sender, connection::start(beginning), allowance);
    }

    /// What helps when the session has failed: where no path leads to the film any more, it is what helps
    /// against that.
    fn cure(&self) -> Cure {
        if self.gone.len() < self.shared.paths() {
            Cure::Again
        } else if self.gone.values().any(|cure| *cure == Cure::StartOver) {
            Cure::StartOver
        } else {
            Cure::OtherUrl
        }
    }
}
