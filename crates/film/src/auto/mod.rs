//! `auto`: the smallest number of connections, with the smallest windows, that holds the wanted rate.
//!
//! The rule, in full:
//!
//! 1. **Rate.** One connection to each server may take what fills the buffer to B+ within seconds, as a
//!    download would; with more of them all together may take [`Parameters::boost`] times the wanted rate, or
//!    [`Parameters::boost_with_room`] times where every path has room. Above B+ the allowance falls below one,
//!    so the buffer settles there. (TCP-ROME's thresholds, section III.B; the slope makes it settle.) A player
//!    of which nobody knows how fast it plays may have `ANY_SPEED` times the wanted rate over one connection,
//!    while that makes no queue.
//! 2. **Windows.** Each connection's receive window is its share of that rate times its RTT and
//!    [`Parameters::window_headroom`] (MultiTCP (6.1)); when the rate is missed, up to
//!    [`Parameters::window_spread`] (MultiTCP's f) times that, so that no connection is held back by us; but
//!    one of several no more than twice what all may take.
//! 3. **Growth.** When the needed rate (wanted plus a margin, more where there is room and the buffer is low)
//!    has been missed for a while that shrinks with the buffer, and does not rise to it by itself, connections
//!    are added: one while the buffer will last, and the newest connection has found its rate; else as many as
//!    the shortfall asks for in proportion, so that there are at most four times as many. Each addition is a
//!    *trial*: after it has settled it must have brought at least [`Parameters::least_gain`] of the
//!    proportional gain. If it has not (a BBR sender, a capped line, a full access link), what was added is
//!    closed, unless the buffer is low, and growth rests for a time that doubles with each failure. Where packets are lost, none is
//!    added with which each would have fewer than [`Parameters::least_share`] in flight. And where nothing comes
//!    at all while the buffer is low, one is added after a second, then after twice as long, and so on.
//! 4. **Giving back.** When the receiver and not the network has held the rate back for a while, or the rate
//!    was held for long although the network held it back, and the buffer is above B-, the connections that
//!    delivered least over the last seconds are closed, a quarter of all: again a trial, undone when the rate
//!    is missed. Where nobody reads it is half of them, whatever was missed before.
//! 5. **Where.** A new connection goes to the path with the fewest connections, among equals to the one whose
//!    connections deliver most, to one that failed only when there is no other; replicas and interfaces are
//!    so explored before one of them is doubled.

mod changing;
mod lasting;
mod overload;
mod parameters;
mod seen;
mod trial;
mod windows;

use std::collections::{BTreeMap, VecDeque};

use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

use crate::control::{ConnectionId, ConnectionSample, Order, PathId, RateController, Sample, What, Window};
pub use lasting::Lasting;
pub use parameters::Parameters;
use trial::{Rest, SHORT_REST, Silence, Trial};

/// The first window of a connection is for a round trip of at least this.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);
/// Where every path has room and the buffer is empty, this part of the wanted rate is needed beyond it; less
/// the more there is up to B-.
const URGENCY_WITH_ROOM: f64 = 0.8;
/// A round trip of at most so many times the path's shortest shows no queue, and a path has room when none
/// was seen so long.
const NO_QUEUE: Ratio = Ratio::new(23, 20);
const ROOM_AFTER: Duration = Duration::from_secs(2);
/// What a player gets that may play at double speed, and a quarter more to fill its buffer.
const ANY_SPEED: Ratio = Ratio::new(5, 2);
/// A queue of less is none that it made: so much round trips vary on a machine and in a wireless network.
const LEAST_QUEUE: Duration = Duration::from_millis(5);
/// One connection to each server may take what fills the buffer within this time.
const FILLING: Duration = Duration::from_secs(3);
/// A measured rate is held when it comes this near.
const ALMOST: Ratio = Ratio::new(97, 100);

/// The controller.
#[derive(Debug)]
pub struct Auto {
    parameters: Parameters,
    /// How many connections there should be.
    target: usize,
    windows: BTreeMap<ConnectionId, Window>,
    /// What each connection delivers, averaged over some seconds.
    yields: BTreeMap<ConnectionId, Rate>,
    /// The shortest round trip of each path: without queueing.
    shortest: BTreeMap<PathId, Duration>,
    /// When a round trip last showed something of a queue.
    queue_seen: Option<Time>,
    /// When it was last longer by more than a machine or a wireless network makes it vary.
    delay_seen: Option<Time>,
    limit: Option<Rate>,
    /// Recent intervals: end, length, bytes.
    history: VecDeque<(Time, Duration, Bytes)>,
    /// No judgement before: connections were opened or closed.
    settles: Time,
    /// When the last connection was set up.
    newest: Time,
    /// Since when the needed rate is missed.
    missed_since: Option<Time>,
    /// Since when the needed rate is held.
    held_since: Option<Time>,
    /// The most that has come lately, and when.
    most_brought: Option<(Time, Rate)>,
    /// Since when the receiver holds the rate back.
    ample_since: Option<Time>,
    trial: Option<Trial>,
    silence: Silence,
    grow: Rest,
    shrink: Rest,
    /// After a queue that a player's hunger made.
    hunger: Rest,
    /// After growth that brought nothing while the buffer was low.
    hurry: Rest,
    /// Whether it does.
    is_lasting: bool,
    /// When the present session began.
    session_began: Time,
}

impl Auto {
    /// A controller with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        let rest = Rest { until: Time::ZERO, next: parameters.first_rest };
        Self {
            parameters,
            target: parameters.at_start.clamp(1, parameters.most.max(1)),
            windows: BTreeMap::new(),
            yields: BTreeMap::new(),
            shortest: BTreeMap::new(),
            queue_seen: None,
            delay_seen: None,
            limit: None,
            history: VecDeque::new(),
            settles: Time::ZERO,
            newest: Time::ZERO,
            missed_since: None,
            held_since: None,
            most_brought: None,
            ample_since: None,
            trial: None,
            silence: Silence::since(Time::ZERO),
            grow: rest,
            shrink: rest,
            hunger: rest,
            hurry: Rest { until: Time::ZERO, next: SHORT_REST },
            is_lasting: false,
            session_began: Time::ZERO,
        }
    }

    /// How many connections there should be now.
    pub fn target(&self) -> usize {
        self.target
    }

    /// What all connections may take together (rule 1).
    fn allowed(&self, sample: &Sample<'_>, wanted: Rate) -> Rate {
        let Some(buffer) = sample.buffer else { return wanted };
        let high = self.parameters.buffer.1;
        if buffer >= high {
            // One tenth less for every second too much, but never silent: a window must not close.
            return wanted * Ratio::from_f64((1.0 - 0.1 * (buffer - high).as_secs_f64()).max(0.5));
        }
        let fills = Ratio::from_f64(1.0 + (high - buffer).ratio_to(FILLING));
        let is_one_each = sample.connections.len() + sample.connecting <= sample.paths.len().max(1);
        let most = match (is_one_each, self.has_room(sample)) {
            (true, _) => wanted * fills,
            (false, true) => wanted * self.parameters.boost_with_room,
            (false, false) => wanted * self.parameters.boost,
        };
        most.min(wanted * fills)
    }

    /// Tells what all connections may take together, when it changed.
    fn set_limit(&mut self, sample: &Sample<'_>, orders: &mut Vec<Order>) -> Option<Rate> {
        let allowed = sample.wanted.map(|wanted| {
            let allowed = self.allowed(sample, wanted);
            match sample.hungry {
                true if self.may_feed(sample) => allowed.max(wanted * ANY_SPEED),
                // How much such a player has nobody knows.
                true => allowed.max(wanted),
                false => allowed,
            }
        });
        let same = match (allowed, self.limit) {
            // The slope moves it a little at every measurement.
            (Some(new), Some(old)) => (0.98..=1.02).contains(&new.ratio_to(old)),
            (new, old) => new == old,
        };
        if !same {
            self.limit = allowed;
            orders.push(Order { what: What::LimitRate(allowed), why: "the wanted rate at this buffer" });
        }
        allowed
    }

    /// Whether a player may get more than its media's rate: one connection takes no more than a download
    /// does, and leaves off where it makes a queue.
    fn may_feed(&mut self, sample: &Sample<'_>) -> bool {
        let has_queue = sample.connections.iter().any(|connection| {
            let shortest = self.shortest.get(&connection.path).copied().unwrap_or(connection.srtt);
            connection.srtt > shortest * NO_QUEUE + LEAST_QUEUE
        });
        if sample.now < self.hunger.until {
            return false;
        }
        if has_queue {
            self.hunger.begin(sample.now, self.parameters.longest_rest);
        }
        !has_queue && sample.connections.len() == 1
    }

    /// What must be held so that no connection is added (rule 3).
    fn needed(&self, sample: &Sample<'_>, wanted: Rate) -> Rate {
        let low = self.parameters.buffer.0;
        let Some(buffer) = sample.buffer else { return wanted };
        let emptiness = 1.0 - buffer.min(low).ratio_to(low);
        // Filling the buffer takes nothing from anybody where what further connections bring would lie idle.
        let is_free = sample.connections.len() > 1 && self.has_room(sample);
        let urgency = if is_free { URGENCY_WITH_ROOM * emptiness } else { 0.0 };
        wanted * Ratio::from_f64(1.0 + self.parameters.margin.as_f64() + urgency)
    }

    /// How long a change takes to show: slow start and a few round trips.
    fn settling(&self, sample: &Sample<'_>) -> Duration {
        let (floor, trips, most) = if !self.is_hurried(sample) {
            (3, 12, 6)
        } else if self.has_room(sample) && self.is_lasting {
            // What came too early to tell is measured again in the next session, and too many harm nobody there.
            return (sample.mean_rtt() * 4).max(Duration::from_millis(500)).min(Duration::from_secs(3));
        } else if self.has_room(sample) {
            (1, 8, 3)
        } else {
            (1, 8, 6)
        };
        (sample.mean_rtt() * trips).max(Duration::from_secs(floor)).min(Duration::from_secs(most))
    }

    /// How long the needed rate must be missed before connections are added: the less there is in the buffer,
    /// the shorter.
    fn patience(&self, sample: &Sample<'_>) -> Duration {
        let buffer = if self.comes_late(sample) {
            Duration::ZERO
        } else {
            sample.buffer.unwrap_or(Duration::from_secs(4))
        };
        (buffer / 4).max(Duration::from_millis(400)).min(Duration::from_secs(4))
    }

    /// The path for one more connection (rule 5), and how its connections do now.
    fn best_path(sample: &Sample<'_>, planned: &[PathId]) -> Option<PathId> {
        let on = |path: PathId| planned.iter().filter(|planned| **planned == path).count();
        let delivered = |path: PathId| {
            let rates = sample.connections.iter().filter(|connection| connection.path == path);
            rates.map(|connection| connection.delivered).max().unwrap_or(Bytes::ZERO)
        };
        let open = sample.paths.iter().filter(|path| path.may_open);
        open.min_by_key(|path| {
            let connections = path.connections + on(path.path);
            (path.failing, connections, std::cmp::Reverse(delivered(path.path)), path.path)
        })
        .map(|path| path.path)
    }

    /// Opens connections up to the target.
    fn fill(&mut self, sample: &Sample<'_>, why: &'static str, orders: &mut Vec<Order>) {
        let there = sample.connections.len() + sample.connecting;
        let mut planned = Vec::new();
        for _ in there..self.target {
            let Some(path) = Self::best_path(sample, &planned) else { break };
            planned.push(path);
            orders.push(Order { what: What::Open(Some(path)), why });
        }
        if !planned.is_empty() {
            self.settles = sample.now + self.settling(sample);
            self.missed_since = None;
        }
    }
}

impl RateController for Auto {
    fn start(&mut self) -> Vec<Order> {
        (0..self.target).map(|_| Order { what: What::Open(None), why: "the first connections" }).collect()
    }

    fn connected(&mut self, connection: ConnectionId, _path: PathId, sample: &Sample<'_>) -> Vec<Order> {
        self.settles = self.settles.max(sample.now + self.settling(sample));
        self.newest = sample.now;
        if self.silence.since == Time::ZERO {
            // Before the first connection nothing can come.
            self.silence.since = sample.now;
        }
        let mut orders = Vec::new();
        let allowed = self.set_limit(sample, &mut orders);
        if let Some(mine) = sample.connections.iter().find(|candidate| candidate.connection == connection) {
            // The handshake tells too little: under load the round trip is longer, and the first window would
            // be far too small for a whole interval.
            let fresh = ConnectionSample { srtt: mine.srtt.max(FIRST_ROUND_TRIP), ..*mine };
            let count = sample.connections.len();
            self.set_window(&fresh, allowed, Bytes::ZERO, count, true, &mut orders);
        }
        orders
    }

    fn closed(&mut self, connection: ConnectionId, _now: Time) {
        self.windows.remove(&connection);
        self.yields.remove(&connection);
    }

    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
        let now = sample.now;
        self.remember(sample);
        let mut orders = Vec::new();
        let allowed = self.set_limit(sample, &mut orders);
        let recent = self.recent(sample);
        self.note_brought(recent, now);
        let needed = match sample.wanted {
            // A segment comes as fast as it can, however much there is to play.
            Some(wanted) if self.is_lasting => self.needed(sample, wanted),
            // What is not allowed cannot be missed.
            Some(wanted) => self.needed(sample, wanted).min(self.allowed(sample, wanted) * ALMOST),
            // Unknown: more is needed while the buffer is low, or always when nothing plays.
            None if sample.buffer.is_some_and(|buffer| buffer >= self.parameters.buffer.0) => Rate::ZERO,
            None => Rate::MAX,
        };
        // What the receiver itself does not take, more connections would not bring.
        let needed = if sample.sated { Rate::ZERO } else { needed };
        let missed = recent < needed;
        // Held back by us, or by nothing left to ask for: then there is more to be had.
        let held_back = sample.connections.iter().filter(|connection| !connection.network_limited).count();
        let ample = !missed && held_back * 2 > sample.connections.len();
        // A slow start tells neither that it is missed nor that it is held.
        let begins_slowly = missed && self.is_in_slow_start_again(sample);
        if !begins_slowly {
            self.missed_since = missed.then(|| self.missed_since.unwrap_or(now));
            self.held_since = (!missed).then(|| self.held_since.unwrap_or(now));
            self.ample_since = ample.then(|| self.ample_since.unwrap_or(now));
        }
        self.set_windows(sample, allowed, missed, &mut orders);
        if self.helps_in_silence(sample, &mut orders) {
            return orders;
        }
        if now >= self.settles {
            self.judge(sample, needed, &mut orders);
        }
        if self.trial.is_none() && now >= self.settles {
            self.consider_growth(sample, recent, needed, &mut orders);
            self.consider_giving_back(sample, needed, &mut orders);
        }
        // While nobody wants anything the session opens none: to ask for one again and again would hold off
        // every other change.
        if !sample.sated && !orders.iter().any(|order| matches!(order.what, What::Open(_) | What::Close(_))) {
            self.fill(sample, "one was lost", &mut orders);
        }
        orders
    }

    fn interval(&self, rtt: Duration) -> Duration {
        interval(rtt)
    }
}

/// Two round trips tell what a connection brings.
fn interval(rtt: Duration) -> Duration {
    (rtt * 2).max(Duration::from_millis(200)).min(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
