//! What is asked for next, and what again.

use anabranch_units::{Bytes, Duration, Rate, Time};

use super::Session;
use super::api::{Action, Pace};
use super::connection::Connection;
use crate::content::{Reassignment, Request};
use crate::control::ConnectionId;

/// A connection is young for so long, or for twelve round trips.
const YOUNG: Duration = Duration::from_secs(6);

/// What is left of a segment is brought in about this time, when one of its connections gets nothing more to do.
const SOON: Duration = Duration::from_millis(800);

/// Who brings the end so many times slower than the segment came until then is not slow because the path is full.
const FAR_SLOWER: u64 = 2;

impl Session {
    /// Hands late segments to others; closes connections that keep missing, carry nothing that is needed or
    /// say nothing.
    pub(super) fn repair(&mut self, now: Time) {
        if self.ranges {
            self.share_what_is_late(now);
        } else if !self.wants_something() {
            // The driver reads no further than the readers want.
            self.connections.values_mut().for_each(|connection| connection.heard(now));
        }
        self.close_hopeless(now);
    }

    /// All has come: closes every connection that has nothing to do any more.
    pub fn release(&mut self, now: Time) {
        self.now = now;
        let idle: Vec<_> =
            self.connections.values().filter(|connection| !connection.closing).map(|c| c.id).collect();
        for connection in idle {
            self.close_when_empty(connection, "all has come");
        }
    }

    fn share_what_is_late(&mut self, now: Time) {
        if matches!(self.pace, Pace::AtLeast { .. }) {
            // A player of segments has each when its end is there: to get something twice is worth it when nothing
            // else is left to get and the end would come late, and only then.
            if !self.ends_late(now) {
                return;
            }
        } else {
            while let Some(late) = self.coordinator.reassign_late(now) {
                self.hand_over(late);
            }
        }
        for pipe in self.idle_pipes() {
            if let Some(help) = self.coordinator.help_at_the_end(pipe, now) {
                self.hand_over(help);
            }
        }
    }

    /// Whether all of a segment is asked for, and its end comes after what its player has to play before it; or would
    /// take longer than it plays, as what is left of it comes far slower than what has come.
    fn ends_late(&self, now: Time) -> bool {
        let Pace::AtLeast { ahead, rate, .. } = self.pace else { return false };
        let since = now.since(self.segment_from);
        let ends_in = self.coordinator.ends_in(now);
        let sizes = || Some((self.coordinator.segment_size()?, self.coordinator.missing()?));
        // By what a player gets it tells what the paths can bring, and not how one connection does among several.
        let drags_on = || {
            sizes().is_some_and(|(size, missing)| {
                let until_now = Rate::of(size - missing, since);
                let is_slower = !until_now.is_zero() && ends_in > until_now.time_for(missing) * FAR_SLOWER;
                is_slower && ends_in > rate.time_for(size) - since
            })
        };
        !self.coordinator.has_work() && (ends_in > ahead - since || drags_on())
    }

    /// Whether its player waits for the first of all segments: of one that came before would be known what a connection
    /// brings.
    fn is_waited_for(&self, now: Time) -> bool {
        let has_played = |ahead: Duration| ahead <= now.since(self.segment_from);
        self.share.is_zero() && matches!(self.pace, Pace::AtLeast { ahead, .. } if has_played(ahead))
    }

    /// What is idle once all is asked for is closed, so that others may have it, unless it brings sooner what comes
    /// too late. Of several connections one gets nothing more to do some time before: what others ask for takes a
    /// round trip to begin. The first of all is not held up by what comes next: then the others begin no more than a
    /// round trip before its end. Answers whether something was closed.
    pub fn lend(&mut self, now: Time) -> bool {
        self.now = now;
        let has_lent = self.lends && self.ranges && self.lend_idle(now);
        self.has_lent |= has_lent;
        has_lent
    }

    fn lend_idle(&mut self, now: Time) -> bool {
        if !self.coordinator.is_all_asked_for() {
            return self.lend_first(now);
        }
        let is_late = self.ends_late(now);
        let ends_in = self.coordinator.ends_in(now);
        let mut has_lent = false;
        for pipe in self.idle_pipes() {
            let help = if is_late { self.coordinator.help_at_the_end(pipe, now) } else { None };
            if let Some(help) = help {
                self.hand_over(help);
            } else if !self.is_waited_for(now) || self.shortest_round_trip(pipe) >= ends_in {
                has_lent = true;
                self.close_when_empty(pipe, "nothing is left to ask for");
            }
        }
        has_lent
    }

    fn lend_first(&mut self, now: Time) -> bool {
        let (pipes, idle) = (self.pipes(), self.idle_pipes());
        if let Some(first) = self.leaves_first {
            let is_idle = idle.contains(&first);
            if is_idle && pipes.len() > 1 {
                self.close_when_empty(first, "the others bring what is left");
                return true;
            }
            if is_idle {
                // The others are gone.
                self.coordinator.resume(first);
            }
            return false;
        }
        let several =
            pipes.len() > 1 && !self.is_waited_for(now) && self.connections.values().all(Connection::is_up);
        let rate: Rate = self.connections.values().map(|connection| connection.rate).sum();
        if several && self.coordinator.unassigned().is_some_and(|left| rate.time_for(left) <= SOON) {
            self.leaves_first = pipes.into_iter().min_by_key(|pipe| self.coordinator.carries(*pipe).0);
            self.leaves_first.iter().for_each(|first| self.coordinator.drain(*first));
        }
        false
    }

    fn shortest_round_trip(&self, pipe: ConnectionId) -> Duration {
        self.connections.get(&pipe).map_or(Duration::ZERO, |connection| connection.shortest)
    }

    fn idle_pipes(&self) -> Vec<ConnectionId> {
        let mut idle = self.pipes();
        idle.retain(|pipe| self.coordinator.queue_length(*pipe) == 0);
        idle
    }

    fn close_hopeless(&mut self, now: Time) {
        let mut hopeless = Vec::new();
        for connection in self.connections.values().filter(|connection| connection.is_up()) {
            let alone = connection.group.is_none();
            let (carries, needed) = self.coordinator.carries(connection.id);
            let to_drain = connection.rate.time_for(carries).max(connection.silent(now));
            let youth = YOUNG.max(connection.srtt * 12);
            // What a young one brings says little: it is still finding its rate.
            let grown_up = connection.age(now) > youth;
            // Another one in its place would have to grow up first: sooner than that it is useful again itself.
            if grown_up && alone && !carries.is_zero() && needed.is_zero() && to_drain > youth {
                hopeless.push((connection.id, "all that it carries has come another way"));
            } else if grown_up && alone && self.coordinator.keeps_missing(connection.id) {
                hopeless.push((connection.id, "it keeps missing play times"));
            } else if connection.silent(now) > self.silent_after.max(connection.srtt * 10) {
                hopeless.push((connection.id, "the server has been silent for too long"));
            }
        }
        for (connection, why) in hopeless {
            // Another one has to be there to go on with, unless this one is dead anyway.
            if let Some(path) = self.connections.get(&connection).map(|connection| connection.path) {
                self.paths.missed(path, why, now);
            }
            self.close_now(connection, why);
        }
    }

    /// A reader that has got nothing yet does not wait until connections have brought what nobody needs soon:
    /// they are closed, and opened again. Like that a seek costs each of them a handshake and what was on its
    /// way.
    pub(super) fn make_way(&mut self, now: Time) {
        if !self.ranges {
            // Whatever is wanted comes after that, on this connection or on another.
            return;
        }
        let in_the_way = self.connections.values().filter(|connection| {
            connection.is_up()
                && !connection.closing
                && self.coordinator.is_in_the_way(connection.id, connection.patience(), now)
        });
        let in_the_way: Vec<_> = in_the_way.map(|connection| (connection.id, connection.path)).collect();
        for (connection, path) in in_the_way {
            self.close_now(connection, "a reader waits, and nobody needs soon what it carries");
            self.open(Some(path), "in place of one that carried what nobody needs soon");
        }
    }

    /// Gives every connection that can take requests something to do.
    pub(super) fn fill(&mut self, now: Time) {
        let ids = self.pipes();
        if !self.ranges {
            // What has passed does not come again on this connection.
            if self.coordinator.outstanding() > 0 && self.coordinator.starves() {
                for connection in ids {
                    self.close_now(connection, "a reader needs what has passed");
                }
                self.reopen_when_alone(now);
            } else if let Some(first) = ids.first().copied()
                && self.coordinator.outstanding() == 0
                && self.coordinator.has_work()
                && let Some(request) = self.coordinator.request_whole(first, now)
            {
                self.request(first, request);
            }
            return;
        }
        self.keep_spacing(now);
        // In turn, so that nobody takes two before another has one.
        loop {
            let mut asked = false;
            for connection in &ids {
                if let Some(request) = self.coordinator.next_request(*connection, now) {
                    self.request(*connection, request);
                    asked = true;
                }
            }
            if !asked {
                return;
            }
        }
    }

    fn hand_over(&mut self, late: Reassignment) {
        self.totals.rerequested += late.request.range.end - late.request.range.start;
        self.cancel(late.from, late.request.range.clone(), late.request.why);
        self.request(late.to, late.request);
    }

    /// Sends a request, or orders it of a stripe group.
    fn request(&mut self, pipe: ConnectionId, request: Request) {
        if self.want(pipe, &request) {
            return;
        }
        if let Some(state) = self.connections.get_mut(&pipe) {
            state.note_work(true, self.now);
            self.paths.asked(state.path, self.now);
            self.keep_spacing(self.now);
        }
        self.totals.requests += 1;
        let Request { id, range, why, .. } = request;
        self.actions.push_back(Action::Request { connection: pipe, request: id, range, why });
    }

    /// A server that has refused requests is asked more seldom, and for more: the connections to it take
    /// turns.
    pub(super) fn keep_spacing(&mut self, now: Time) {
        if !self.paths.are_spaced() {
            return;
        }
        for connection in self.connections.values() {
            let Some(spacing) = self.paths.spacing(connection.path) else { continue };
            let others = self.connections.values().filter(|other| other.path == connection.path).count();
            let turn = spacing.least() * Bytes::of(others).get();
            self.coordinator.set_spacing(connection.id, turn + turn / 4, spacing.rests(now));
        }
    }

    /// Whom the content coordinator can ask: connections, and stripe groups by their founders.
    fn pipes(&self) -> Vec<ConnectionId> {
        let alone = self.connections.values().filter(|c| c.is_up() && c.group.is_none()).map(|c| c.id);
        alone.chain(self.groups.keys().copied()).collect()
    }
}
