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
mod arriving;
mod asking;
mod connection;
mod group;
mod measuring;
mod obeying;
mod paths;
mod progress;
mod readers;
mod reporting;
mod spacing;
mod status;
mod striping;
#[cfg(test)]
mod testing;
mod trying;
mod viewer;
mod watching;

use std::collections::{BTreeMap, VecDeque};

use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::content::{Coordinator, RequestId};
use crate::control::{ConnectionId, Order, PathId, RateController, What};
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

/// While somebody waits, or might soon, it is looked so often whether something is late.
const LONGEST_TICK: Duration = Duration::from_millis(100);
/// While nothing is urgent who drives a session need not wake for it between two reads.
const LEEWAY: Duration = Duration::from_millis(1500);

/// So much is asked for at once of the only connection of a segment, whose rate rises faster than it is measured.
const ALONE: Duration = Duration::from_secs(1);

/// The state of one stream's reception.
#[derive(Debug)]
pub struct Session {
    coordinator: Coordinator,
    controller: Box<dyn RateController>,
    playback: Playback,
    pace: Pace,
    /// Since when a segment is got ([`Pace::AtLeast`]).
    segment_from: Time,
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
    /// Whether others have its connections when it has nothing more to ask for.
    lends: bool,
    /// Whether others have some of the segment's connections.
    has_lent: bool,
    /// Which connection gets nothing more to do, as the others bring what is left.
    leaves_first: Option<ConnectionId>,
    /// What a connection is expected to bring of which nothing is known; zero: nobody knows.
    share: Rate,
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
        if matches!(config.pace, Pace::AtLeast { .. }) {
            policy.alone_time = policy.alone_time.max(ALONE);
        }
        if let Some(rate) = media_rate {
            // The first segments are needed at once: several connections share them.
            let half_a_second = rate.amount_in(Duration::from_millis(500)).max(Bytes::kib(16));
            policy.first_segment = policy.first_segment.min(half_a_second);
            policy.further_segment = policy.further_segment.min(half_a_second);
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
            segment_from: now,
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
            lends: false,
            has_lent: false,
            leaves_first: None,
            share: Rate::ZERO,
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

    /// What is read from now on is a segment that ends before the byte `end`, with this pace
    /// ([`Pace::AtLeast`]; where either pace is another one nothing changes).
    pub fn next_segment(&mut self, pace: Pace, end: u64, now: Time) {
        self.now = now;
        if let (Pace::AtLeast { rate, .. }, Pace::AtLeast { .. }) = (pace, self.pace) {
            self.pace = pace;
            self.segment_from = now;
            self.has_lent = false;
            self.known_rate = Some(rate);
            self.media_rate = Some(rate);
            self.coordinator.set_media_rate(rate);
            self.coordinator.begin_segment(end);
            self.controller.next_segment(now);
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

    /// How much later than [`Session::next_tick`] a driver may call [`Session::tick`] that calls it as well
    /// whenever something has arrived since: a measurement need not wake it a second time. While somebody
    /// waits, or might soon, none.
    pub fn leeway(&self) -> Duration {
        if self.is_unhurried() { self.interval().max(LEEWAY) } else { Duration::ZERO }
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

    /// Size of the media, if known.
    pub fn size(&self) -> Option<u64> {
        self.coordinator.size()
    }

    /// The driver learned the size of the media.
    pub fn size_known(&mut self, size: u64) {
        self.coordinator.set_size(size);
    }

    /// What has arrived.
    pub fn have(&self) -> &RangeSet {
        self.coordinator.have()
    }

    /// Whether all of the media is there.
    pub fn is_complete(&self) -> bool {
        self.coordinator.is_complete()
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
}

#[cfg(test)]
mod tests;
