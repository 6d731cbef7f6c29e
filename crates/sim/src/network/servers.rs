//! What servers allow: whether a connection is let in, and when its answers are written.

use super::state::{HalfId, Kind, Network, PaceId};

impl Network {
    /// The half `up` opens a connection to the server at the other end of its path, and `down` carries the
    /// answers.
    pub(crate) fn expect_visit(&mut self, up: HalfId, down: HalfId) {
        let up = &self.halves[up as usize];
        if let Some((client, server)) = self.ends.get(&up.path(true)).copied() {
            let segment = self.halves[down as usize].segment();
            self.servers.expect(down, server, client, segment);
        }
    }

    /// Whether the server has let this connection in only to say that it has no place for it.
    pub(crate) fn is_turned_away(&self, down: HalfId) -> bool {
        self.servers.visits.get(&down).is_some_and(super::state::Visit::is_turned_away)
    }

    /// The server's application has everything before `end` for this connection: it is written as fast as
    /// the server allows.
    pub(crate) fn answer(&mut self, down: HalfId, end: u64) {
        let paced = self.servers.visits.get_mut(&down).and_then(|visit| Some((visit.first()?, visit)));
        let Some((first, visit)) = paced else { return self.write_to(down, end) };
        let is_waiting = visit.wanted > visit.written;
        visit.wanted = end;
        if !is_waiting {
            self.wait_for(first, down);
        }
    }

    fn wait_for(&mut self, pace: PaceId, half: HalfId) {
        self.servers.paces[pace as usize].waiting.push_back(half);
        self.let_pass(pace);
    }

    /// A pace's time has come.
    pub(super) fn pace_timer(&mut self, pace: PaceId) {
        self.servers.paces[pace as usize].is_called = false;
        self.let_pass(pace);
    }

    /// Lets pass who may now, and comes again for the others.
    fn let_pass(&mut self, number: PaceId) {
        loop {
            let now = self.now;
            let pace = &mut self.servers.paces[number as usize];
            if pace.free_at() > now {
                let at = pace.free_at();
                if !pace.waiting.is_empty() && !std::mem::replace(&mut pace.is_called, true) {
                    self.schedule(at, Kind::Pace, number);
                }
                return;
            }
            let Some(half) = pace.waiting.pop_front() else { return };
            let Some(visit) = self.servers.visits.get(&half).filter(|visit| !visit.has_left()) else {
                continue;
            };
            pace.passes(visit.next_piece(), now);
            match visit.client.filter(|client| *client != number) {
                Some(client) => self.wait_for(client, half),
                None => self.write_piece(half),
            }
        }
    }

    fn write_piece(&mut self, half: HalfId) {
        let Some(visit) = self.servers.visits.get_mut(&half) else { return };
        visit.written += visit.next_piece();
        let (written, first) = (visit.written, visit.first().filter(|_| visit.wanted > visit.written));
        self.write_to(half, written);
        if let Some(first) = first {
            self.wait_for(first, half);
        }
    }
}
