//! A receiver session: everything that the receiver of a stream decides, in one place.
//!
//! The session joins a rate controller (how many connections, which windows), the content coordinator (which
//! bytes on which connection), the playback model and the state of the paths. It does no I/O: a driver tells
//! it what happened and when, and carries out its [`Action`]s.
//!
//! **Contract.** Every method that tells something takes the time, which never goes back. After any of them
//! the driver takes actions with [`Session::poll_action`] until there is none, carries them out in order, and
//! calls [`Session::tick`] at the latest at [`Session::next_tick`]. An opened connection is reported with
//! [`Session::connected`], [`Session::joined_group`] or [`Session::closed`]; each connection id is used once.
//! Bytes that belong to a request come in order. Where a server stripes, the session asks it for ranges in
//! [`Action::Order`]s instead of requests, and bytes come as blocks ([`Session::block_arrived`]).

mod api;
mod asking;
mod connection;
mod group;
mod paths;
mod progress;
mod reporting;
mod spacing;
mod status;
mod striping;
#[cfg(test)]
mod testing;
mod viewer;
mod watching;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::content::{Arrival, Coordinator, ReaderId, RequestId};
use crate::control::{ConnectionId, Order, PathId, RateController, Sample, What, Window};
use crate::playback::Playback;

pub use api::{Action, Config, Pace};
use connection::Connection;
pub use connection::PathFigures;
use group::Group;
use paths::Paths;
pub use paths::Refusal;
use progress::Progress;
pub use status::{ConnectionStatus, Status, Totals};
use viewer::Viewer;

/// The state of one stream's reception.
#[derive(Debug)]
pub struct Session {
    coordinator: Coordinator,
    controller: Box<dyn RateController>,
    playback: Playback,
    pace: Pace,
    began: Time,
    /// The media's rate where it is known.
    known_rate: Option<Rate>,
    /// The rate at which it is played, as far as that is known: the media's, or what the reader shows.
    media_rate: Option<Rate>,
    ranges: bool,
    paths: Paths,
    connections: BTreeMap<ConnectionId, Connection>,
    /// The stripe groups, by the connection that founded each.
    groups: BTreeMap<ConnectionId, Group>,
    /// How many stripe groups have ended on each path.
    groups_ended: BTreeMap<PathId, u32>,
    actions: VecDeque<Action>,
    /// Orders of the start that wait for the first reader.
    put_off: Vec<Order>,
    next_connection: u32,
    viewer: Option<Viewer>,
    /// Whether a player that shows nothing of its speed may play fast.
    expects_any_speed: bool,
    measured: Time,
    progress: Progress,
    give_up_after: Duration,
    silent_after: Duration,
    waiting: bool,
    failed: bool,
    totals: Totals,
    /// What connections brought in this interval that are gone since.
    gone: u64,
    now: Time,
}

impl Session {
    /// A session that begins now. `start` opens the first connections.
    pub fn new(config: Config, now: Time) -> Self {
        let media_rate = match config.pace {
            Pace::Media(rate) => rate.or(config.media_rate),
            Pace::AtLeast { rate, .. } => Some(rate),
            _ => config.media_rate,
        };
        let mut policy = config.policy;
        if let Some(rate) = media_rate {
            // The first segments are needed at once: several connections share them.
            let half_a_second = rate.amount_in(Duration::from_millis(500)).max(Bytes::kib(16));
            policy.first_segment = policy.first_segment.min(half_a_second);
        }
        let mut coordinator = Coordinator::new(policy, config.size, config.have);
        if let Some(rate) = media_rate {
            coordinator.set_media_rate(rate);
        }
        Self {
            coordinator,
            controller: config.controller,
            playback: Playback::new(config.playback, media_rate, now),
            pace: config.pace,
            began: now,
            known_rate: media_rate,
            media_rate,
            ranges: config.ranges,
            paths: Paths::new(&config.path_caps),
            connections: BTreeMap::new(),
            groups: BTreeMap::new(),
            groups_ended: BTreeMap::new(),
            actions: VecDeque::new(),
            put_off: Vec::new(),
            next_connection: 0,
            viewer: None,
            expects_any_speed: false,
            measured: now,
            progress: Progress::new(now),
            give_up_after: config.give_up_after,
            silent_after: config.silent_after,
            waiting: false,
            failed: false,
            totals: Totals::default(),
            gone: 0,
            now,
        }
    }

    /// Opens the first connections.
    pub fn start(&mut self, now: Time) {
        self.now = now;
        if let Pace::Limit(rate) = self.pace {
            // A limit is held by reading no faster, whatever the windows are.
            self.actions.push_back(Action::LimitRate(Some(rate)));
        }
        let orders = self.controller.start();
        if self.wants_something() {
            return self.obey(orders);
        }
        // Nobody is there yet: one connection is enough to answer whoever comes, and then the others follow.
        let mut orders = orders.into_iter();
        if let Some(Order { what: What::Open(path), why }) = orders.next() {
            self.open(path, why);
        }
        self.put_off = orders.collect();
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Session::tick`] has to be called at the latest.
    pub fn next_tick(&self) -> Time {
        let measure = self.measured + self.interval();
        if self.is_unhurried() { measure } else { measure.min(self.now + LONGEST_TICK) }
    }

    /// Whether there is nothing to decide between two measurements.
    fn is_unhurried(&self) -> bool {
        let nothing_late = match self.pace {
            // To bring it sooner than the limit says is nobody's business.
            Pace::Limit(_) => self.coordinator.may_be_unhurried(),
            Pace::Media(_) => self.coordinator.is_unhurried(),
            Pace::Max | Pace::AtLeast { .. } => false,
        };
        nothing_late && self.groups.is_empty() && self.connections.values().any(Connection::is_up)
    }

    /// A connection is set up; `rtt` is what the handshake took.
    pub fn connected(&mut self, connection: ConnectionId, rtt: Duration, now: Time) {
        self.now = now;
        if self.connections.contains_key(&connection) {
            self.coordinator.add_connection(connection, rtt, now);
            self.is_up(connection, rtt, now);
        }
    }

    fn is_up(&mut self, connection: ConnectionId, rtt: Duration, now: Time) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.established(rtt, now);
        let path = state.path;
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

    /// Takes what arrived into the figures; `new` of it brought the stream on.
    fn count(&mut self, connection: ConnectionId, arrival: Arrival, new: u64, now: Time) {
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

    /// Size of the media, if known.
    pub fn size(&self) -> Option<u64> {
        self.coordinator.size()
    }

    /// The driver learned the size of the media.
    pub fn size_known(&mut self, size: u64) {
        self.coordinator.set_size(size);
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

    /// Somebody begins to read `range`. The first reader, and later each that reads on, is the one whose play
    /// is modelled.
    pub fn add_reader(&mut self, id: ReaderId, range: Range<u64>, now: Time) {
        self.now = now;
        let start = range.start;
        self.coordinator.add_reader(id, range);
        if self.viewer.as_ref().is_none_or(|viewer| self.coordinator.reader(viewer.reader).is_none()) {
            self.follow(id, start, now);
        }
        let put_off = std::mem::take(&mut self.put_off);
        self.obey(put_off);
        self.take_back(now);
        self.make_way(now);
        self.fill(now);
    }

    /// A reader has taken everything before `position`.
    pub fn move_reader(&mut self, id: ReaderId, position: u64, now: Time) {
        self.now = now;
        let began = self.coordinator.reader(id).map_or(position, |reader| reader.began);
        if !self.is_viewed(id) && position.saturating_sub(began) >= READS_ON {
            self.follow(id, began, now);
        }
        let play_position = if self.is_viewed(id) { self.playback.play_position().get() } else { position };
        self.coordinator.move_reader(id, position, play_position);
        if self.is_viewed(id) {
            self.taken(position, now);
        }
        self.fill(now);
    }

    /// A reader is gone.
    pub fn remove_reader(&mut self, id: ReaderId, now: Time) {
        self.now = now;
        self.coordinator.remove_reader(id);
        self.take_back(now);
        self.make_way(now);
    }

    /// End of what a reader can take.
    pub fn available(&self, id: ReaderId) -> u64 {
        self.coordinator.available(id)
    }

    /// What has arrived.
    pub fn have(&self) -> &RangeSet {
        self.coordinator.have()
    }

    /// Whether all of the media is there.
    pub fn is_complete(&self) -> bool {
        self.coordinator.is_complete()
    }

    /// Whether some reader waits for bytes within its look-ahead.
    pub fn wants_something(&self) -> bool {
        self.coordinator.is_wanting()
    }

    /// The driver no longer holds these bytes.
    pub fn forget(&mut self, range: Range<u64>) {
        self.coordinator.forget(range);
    }

    /// How far ahead of a reader bytes are asked for from now on.
    pub fn set_look_ahead(&mut self, look_ahead: Bytes) {
        self.coordinator.set_look_ahead(look_ahead);
    }

    /// Whether a connection was asked for the first bytes that a player waits for: to be read at once,
    /// whatever the pace.
    pub fn brings_first_bytes(&self, connection: ConnectionId) -> bool {
        let pipe = self.connections.get(&connection).map(Connection::pipe);
        matches!(self.pace, Pace::Media(_))
            && pipe.is_some_and(|pipe| self.coordinator.brings_first_bytes(pipe))
    }

    /// The request that a connection is answering, and the position of its next byte.
    pub fn answering(&self, connection: ConnectionId) -> Option<(RequestId, u64)> {
        self.coordinator.answering(connection)
    }

    /// The media's rate became known (from its container).
    pub fn set_media_rate(&mut self, rate: Rate, now: Time) {
        self.now = now;
        self.known_rate = Some(rate);
        self.set_play_rate(rate, now);
    }

    /// Time has passed: plays on, looks for late segments, measures when it is time.
    pub fn tick(&mut self, now: Time) {
        self.now = now;
        self.play(now);
        for connection in self.connections.values_mut() {
            connection.note_work(self.coordinator.queue_length(connection.pipe()) > 0, now);
        }
        self.tend_groups(now);
        self.keep_spacing(now);
        self.repair(now);
        if now.since(self.measured) >= self.interval() {
            self.measure(now);
        }
        self.reopen_when_alone(now);
        self.fill(now);
        self.give_up_in_time(now);
    }

    fn interval(&self) -> Duration {
        self.controller.interval(self.mean_rtt())
    }

    fn mean_rtt(&self) -> Duration {
        let up: Vec<_> = self.connections.values().filter(|c| c.is_up()).map(|c| c.srtt).collect();
        let count = Bytes::of(up.len()).get();
        if count == 0 { Duration::from_millis(100) } else { up.into_iter().sum::<Duration>() / count }
    }

    fn measure(&mut self, now: Time) {
        let elapsed = now.since(self.measured);
        let ids: Vec<_> = self.connections.keys().copied().collect();
        for id in ids {
            if let Some(connection) = self.connections.get_mut(&id)
                && connection.is_up()
            {
                let spacing = self.paths.spacing(connection.path);
                connection.measure(elapsed, spacing.is_some_and(|spacing| !spacing.least().is_zero()));
                self.coordinator.estimate(id, connection.rate, connection.srtt);
            }
        }
        self.estimate_groups();
        let interval = self.measured;
        self.measured = now;
        self.totals.connection_seconds += elapsed.as_secs_f64() * self.up_as_f64();
        self.totals.observed += elapsed;
        self.with_sample(interval, |controller, sample| controller.measure(sample));
        for connection in self.connections.values_mut() {
            connection.begin_interval(now);
        }
        self.gone = 0;
        let rerequested_now: Vec<_> = self
            .connections
            .values()
            .filter(|connection| connection.closing && self.coordinator.queue_length(connection.pipe()) == 0)
            .map(|connection| connection.id)
            .collect();
        for connection in rerequested_now {
            self.close_now(connection, "not needed any more");
        }
    }

    fn up_as_f64(&self) -> f64 {
        Bytes::of(self.connections.values().filter(|connection| connection.is_up()).count()).as_f64()
    }

    /// Shows the controller what was measured since `from`, and obeys.
    fn with_sample(
        &mut self,
        from: Time,
        ask: impl FnOnce(&mut dyn RateController, &Sample<'_>) -> Vec<Order>,
    ) {
        let now = self.now;
        let counted = || self.connections.values().filter(|connection| !connection.closing);
        let up = || counted().filter(|connection| connection.is_up());
        let connections: Vec<_> = up().map(|c| c.sample(now)).collect();
        let held = up().filter(|connection| connection.was_held(now)).count();
        let sated = up().any(|connection| connection.was_idle(now)) || held * 2 > connections.len();
        let connecting = counted().filter(|connection| !connection.is_up()).count();
        let paths = self.paths.samples(&self.connections, self.ranges, now);
        let buffer = match self.pace {
            Pace::Media(_) => Some(self.playback.buffer().unwrap_or(if self.coordinator.has_work() {
                Duration::ZERO
            } else {
                Duration::MAX
            })),
            Pace::AtLeast { rate, ahead } => {
                let (come, passed) = (Bytes::new(self.coordinator.have().total()), now.since(self.began));
                Some(ahead + rate.time_for(come) - passed)
            }
            _ => None,
        };
        let wanted = match self.pace {
            Pace::Max => None,
            Pace::Limit(rate) => Some(rate),
            Pace::Media(_) => self.media_rate,
            Pace::AtLeast { rate, .. } => Some(rate),
        };
        let elapsed = now.since(from);
        let connections = &connections;
        // What came over connections that are given up is part of what came.
        let closing = self.connections.values().filter(|connection| connection.closing);
        let aside = Bytes::new(self.gone + closing.map(Connection::delivered_now).sum::<u64>());
        let hungry = self.expects_any_speed && self.viewer_is_hungry();
        let sample = Sample {
            now,
            elapsed,
            wanted,
            buffer,
            connections,
            connecting,
            paths: &paths,
            aside,
            sated,
            hungry,
        };
        let orders = ask(self.controller.as_mut(), &sample);
        self.obey(orders);
    }

    fn obey(&mut self, orders: Vec<Order>) {
        let is_bounded = !matches!(self.pace, Pace::AtLeast { .. });
        for Order { what, why } in orders {
            match what {
                What::SetWindow(..) | What::LimitRate(_) if !is_bounded => {}
                // None is of use before there is something to ask for; what a server closed because it was
                // idle is replaced then.
                What::Open(_) if !self.wants_something() => {}
                What::Open(path) => self.open(path, why),
                What::Close(connection) => self.close_when_empty(connection, why),
                What::SetWindow(connection, window) => self.set_window(connection, window, why),
                What::LimitRate(rate) => self.actions.push_back(Action::LimitRate(rate)),
            }
        }
    }

    fn open(&mut self, path: Option<PathId>, why: &'static str) {
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
    fn close_when_empty(&mut self, connection: ConnectionId, why: &'static str) {
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
    fn close_now(&mut self, connection: ConnectionId, why: &'static str) {
        if let Some(state) = self.connections.remove(&connection) {
            self.gone += state.delivered_now();
            if !state.closing {
                self.controller.closed(connection, self.now);
            }
            self.actions.push_back(Action::Close { connection, why });
            self.forget_connection(connection, state.group);
        }
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

    fn set_window(&mut self, connection: ConnectionId, window: Window, why: &'static str) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let bytes = match window {
            Window::Unlimited => None,
            Window::Packets(packets) => Some(packets * state.packet_size),
        };
        state.window = bytes;
        self.actions.push_back(Action::SetWindow { connection, window: bytes, why });
    }

    /// With no connection at all the controller has nothing to measure: the session tries again by itself.
    fn reopen_when_alone(&mut self, now: Time) {
        if !self.connections.is_empty() || self.failed || !self.wants_something() {
            return;
        }
        if let Some(error) = self.paths.hopeless() {
            self.fail(error);
            return;
        }
        if !self.waiting && !self.paths.any_open(now) {
            self.waiting = true;
            self.actions.push_back(Action::Waiting { last_error: self.paths.last_error() });
        }
        self.open(None, "none was left");
    }

    fn give_up_in_time(&mut self, now: Time) {
        let receiving =
            self.connections.values().any(|c| c.is_up() && self.coordinator.queue_length(c.pipe()) > 0);
        if !self.wants_something() {
            self.progress.got_on(now);
        } else if now.since(self.progress.last()) >= self.give_up_after && !self.failed {
            let last = self.paths.last_error();
            let what = if receiving || self.progress.is_in_vain() {
                "nothing new arrived"
            } else {
                "no replica could be reached"
            };
            let last = if last.is_empty() { String::new() } else { format!("; the last error: {last}") };
            self.fail(format!("{what} for {}{last}", self.give_up_after));
        }
    }

    fn fail(&mut self, error: String) {
        if !self.failed {
            self.failed = true;
            self.actions.push_back(Action::Fail { error });
        }
    }
}

/// While somebody waits, or might soon, it is looked so often whether something is late.
const LONGEST_TICK: Duration = Duration::from_millis(100);
/// A reader that has taken so much is where the player plays, and not one that looked at an index.
const READS_ON: u64 = 512 * 1024;

#[cfg(test)]
mod tests;
