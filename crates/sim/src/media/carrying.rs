//! The connections of a stream: how they are opened, what goes over them, and how they fail.

use anabranch_film::control::ConnectionId;
use anabranch_film::session::Refusal;
use anabranch_units::{Duration, Time};

use super::connection::{ANSWER_HEADER_SIZE, Connection};
use super::{READER, Stream};
use crate::network::{HalfId, Network, Role};

impl Stream {
    pub(super) fn open(&mut self, id: ConnectionId, server: usize, network: &mut Network) {
        let (there, back) = self.paths[server];
        let mut tcp = self.media.tcp.clone();
        // Requests are never held back by the server's window.
        tcp.receive_window = None;
        // Nor do requests share anything with the answers of the server's group.
        let share = tcp.share.take();
        let up = network.add_half(self.flow, id.0, &tcp, Role::Opener, (there, back), 0);
        tcp.receive_window = self.media.largest_window;
        tcp.share = share;
        let down = network.add_half(self.flow, id.0, &tcp, Role::Answerer(up), (back, there), 0);
        for half in [up, down] {
            network.halves[half as usize].tells = true;
        }
        self.connections.insert(id, Connection::new(up, down, network.now));
        self.downs.push(down);
        network.expect_visit(up, down);
        network.open(up);
    }

    /// A connection of this flow is set up.
    pub(crate) fn connected(&mut self, connection: u32, network: &mut Network) {
        let id = ConnectionId(connection);
        let Some(up) = self.connections.get(&id).map(|connection| connection.up) else { return };
        let rtt = Duration::from_nanos(network.set_up_time(up));
        // The first windows are in packets of the right size.
        self.tell_figures(network);
        self.session.connected(id, rtt, Time::from_nanos(network.now));
        self.act(network);
    }

    /// Bytes have arrived on a half of one of this flow's connections.
    pub(crate) fn delivered(&mut self, connection: u32, half: HalfId, bytes: u64, network: &mut Network) {
        let id = ConnectionId(connection);
        let Some(state) = self.connections.get_mut(&id) else { return };
        if half == state.up {
            let arrived = network.halves[half as usize].receiver.next();
            state.is_turned_away = network.is_turned_away(state.down);
            let mut answered = false;
            while let Some(request) = state.asked.pop_front_if(|request| request.end <= arrived) {
                if let Some(weight) = request.weight {
                    network.set_weight(state.down, weight);
                }
                let body = if state.is_turned_away { 0 } else { request.body };
                state.written_down = state.written_down.saturating_add(ANSWER_HEADER_SIZE + body);
                answered = true;
            }
            if answered {
                network.answer(state.down, state.written_down);
            }
            return;
        }
        if self.limit.is_set() {
            network.halves[half as usize].receiver.keep_unread(bytes);
            self.limit.hold(id, bytes, network.now);
            self.schedule(network);
        } else {
            self.take(id, bytes, network);
            self.act(network);
        }
    }

    /// The client reads what it had left in a connection's buffer.
    pub(super) fn read(&mut self, id: ConnectionId, bytes: u64, network: &mut Network) {
        if let Some(state) = self.connections.get(&id) {
            network.read(state.down, bytes);
            self.take(id, bytes, network);
        }
    }

    /// Bytes of answers reach the session; a player without a buffer of its own takes everything that is in
    /// order.
    fn take(&mut self, id: ConnectionId, mut bytes: u64, network: &mut Network) {
        let now = Time::from_nanos(network.now);
        let Some(state) = self.connections.get_mut(&id) else { return };
        while let Some((header, body)) = state.awaited.front_mut().filter(|_| bytes > 0) {
            let of_header = bytes.min(*header);
            let of_body = (bytes - of_header).min(*body);
            *header -= of_header;
            *body -= of_body;
            bytes -= of_header + of_body;
            if *header == 0 && state.is_turned_away {
                return self.turned_away(id, network);
            }
            if *header + *body == 0 {
                state.awaited.pop_front();
            }
            if of_body > 0 {
                self.session.arrived(id, of_body, now);
            }
        }
        if self.player.is_none() {
            let available = self.session.available(READER);
            self.session.move_reader(READER, available, now);
        }
    }

    /// The server refuses a connection that is to be set up.
    pub(crate) fn refused(&mut self, connection: u32, network: &mut Network) {
        self.lose(ConnectionId(connection), "the server refuses the connection", network);
        self.act(network);
    }

    /// Gives up connections that nobody answers.
    pub(super) fn give_up_waiting(&mut self, network: &mut Network) {
        let Some(patience) = self.media.connect_timeout else { return };
        let now = network.now;
        let silent = |connection: &Connection| {
            now - connection.since >= patience.as_nanos()
                && !network.halves[connection.up as usize].sender.is_established()
        };
        let unanswered: Vec<_> =
            self.connections.iter().filter(|(_, state)| silent(state)).map(|(id, _)| *id).collect();
        let error = format!("no answer within {patience}");
        for id in unanswered {
            self.lose(id, &error, network);
        }
    }

    /// The session hears that a connection has failed.
    fn lose(&mut self, id: ConnectionId, error: &str, network: &mut Network) {
        if self.leave(id, network) {
            self.note(network, Some(id), "connection_failed", None, error);
            self.session.closed(id, Some(error), Time::from_nanos(network.now));
        }
    }

    /// The session hears that a server asks for fewer connections.
    fn turned_away(&mut self, id: ConnectionId, network: &mut Network) {
        if self.leave(id, network) {
            let said = "the server answers with 503 (service unavailable)";
            self.note(network, Some(id), "connection_failed", None, said);
            let refusal = Refusal::TooMany { after: None, said: said.to_owned() };
            self.session.refused(id, &refusal, Time::from_nanos(network.now));
        }
    }

    /// Closes a connection, if it is still there.
    pub(super) fn leave(&mut self, id: ConnectionId, network: &mut Network) -> bool {
        let Some(state) = self.connections.remove(&id) else { return false };
        self.limit.forget(id);
        network.close(state.down);
        true
    }
}
