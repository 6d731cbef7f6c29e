//! The connections of a film, as its owner sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_film::control::ConnectionId;
use anabranch_film::session::PathFigures;
use anabranch_http::tcp::SocketControl;
use anabranch_units::{Bytes, Duration, Rate};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::allowance::Allowance;
use super::command::Command;

/// The connections. Those that are dropped are closed.
#[derive(Default)]
pub(super) struct Connections {
    open: BTreeMap<ConnectionId, Handle>,
    /// Tasks that are being ended, and have their connections until then.
    leaving: Vec<AbortHandle>,
}

/// So often others are let do something while tasks end: they have only to be run once.
const PATIENCE: usize = 100;

struct Handle {
    /// The session has few requests under way.
    commands: mpsc::UnboundedSender<Command>,
    task: AbortHandle,
    allowance: Arc<Allowance>,
    control: Option<SocketControl>,
    window: Option<Bytes>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connections {
    pub(super) fn add(
        &mut self,
        id: ConnectionId,
        commands: mpsc::UnboundedSender<Command>,
        task: AbortHandle,
        allowance: Arc<Allowance>,
    ) {
        self.open.insert(id, Handle { commands, task, allowance, control: None, window: None });
    }

    /// Closes it; false: there is none.
    pub(super) fn close(&mut self, id: ConnectionId) -> bool {
        let closed = self.open.remove(&id);
        self.leaving.retain(|task| !task.is_finished());
        self.leaving.extend(closed.iter().map(|handle| handle.task.clone()));
        closed.is_some()
    }

    /// Waits until those that were closed are where they go: back in their pool.
    pub(super) async fn have_left(&mut self) {
        for _ in 0..PATIENCE {
            self.leaving.retain(|task| !task.is_finished());
            if self.leaving.is_empty() {
                return;
            }
            tokio::task::yield_now().await;
        }
        self.leaving.clear();
    }

    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }

    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.open.contains_key(&id)
    }

    /// Tells a connection's task what to do; false: there is none.
    pub(super) fn command(&self, id: ConnectionId, command: Command) -> bool {
        let connection = self.open.get(&id);
        if let Some(connection) = connection {
            // A task that has ended tells so itself.
            let _ = connection.commands.send(command);
        }
        connection.is_some()
    }

    /// It is set up; false: nobody wants it any more.
    pub(super) fn connected(&mut self, id: ConnectionId, control: SocketControl) -> bool {
        let connection = self.open.get_mut(&id);
        let is_there = connection.is_some();
        if let Some(connection) = connection {
            connection.control = Some(control);
        }
        is_there
    }

    pub(super) fn set_window(&mut self, id: ConnectionId, window: Option<Bytes>) {
        if let Some(connection) = self.open.get_mut(&id) {
            connection.window = window;
            connection.apply_window();
        }
    }

    /// Lets those read at once that bring the first bytes of a reader.
    pub(super) fn mark(&self, brings_first_bytes: impl Fn(ConnectionId) -> bool) {
        for (id, connection) in &self.open {
            connection.allowance.set_brings_first_bytes(brings_first_bytes(*id));
        }
    }

    /// What the sockets know of their paths. Windows are kept on the way.
    pub(super) fn figures(&self) -> impl Iterator<Item = (ConnectionId, PathFigures)> {
        self.open.iter().filter_map(|(id, connection)| {
            let control = connection.control.as_ref()?;
            let _ = control.keep_window();
            let (unread, held) = (control.unread(), connection.allowance.pacer.held());
            let known = control.info().map(|info| PathFigures {
                rtt: info.rtt,
                packet_size: info.mss,
                out_of_order: info.out_of_order,
                packets: info.data_segments_received,
                unread,
                held,
            });
            Some((*id, known.unwrap_or(PathFigures { unread, held, ..PathFigures::default() })))
        })
    }
}

impl Handle {
    fn apply_window(&self) {
        if SocketControl::is_supported() {
            if let Some(control) = &self.control {
                // A socket that is gone tells so when it is read.
                let _ = control.set_window(self.window);
            }
        } else {
            // Without windows: read as fast as such a window would let the sender send.
            let rtt = self.control.as_ref().and_then(SocketControl::info).map(|info| info.rtt);
            let rtt = rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(Duration::from_millis(100));
            self.allowance.pacer.set_rate(self.window.map(|window| Rate::of(window, rtt)));
        }
    }
}
