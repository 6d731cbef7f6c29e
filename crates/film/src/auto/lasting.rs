//! `auto` for a film in segments: what it has found of the path outlasts the session that gets one of them.
//!
//! A segment plays some seconds, and a change of the number of connections takes as long to show its effect. So
//! one controller goes on from session to session: its number of connections, what they brought of late, the
//! trial that is under way, the shortest round trip. Four things differ from a single film:
//!
//! - *What is measured.* Only what tells something of the path: not the beginning of a session, until its first
//!   connections are there and have had an interval, nor its end, when one of them has nothing to do. Nor is a rate
//!   missed while they are in slow start again, and the time between segments is none.
//! - *What is wanted.* Where the paths have room and lose packets, what lets the player go to the rung above: it goes by
//!   what it gets. That does not fall when there is much to play, as a segment comes as fast as it can.
//! - *What is closed.* Growth that brought nothing where a queue stands, while the buffer is low, too. What nobody can
//!   hold is not gained by more connections: the player adapts, or stalls with one connection as with several.
//!   But it stays where the paths brought what is needed within the last minute: others have it now, and of them each
//!   connection takes a part.
//! - *What is urgent.* A segment of which all would come, at the rate of the last moments, when nothing is left to play:
//!   it plays when its end is there, however much there is to play at its beginning.
//!
//! When a session overlaps the one before, whose last bytes come while the next segment is begun, the newest one
//! is obeyed, and the one before keeps what it has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

use super::trial::Silence;
use super::{Auto, Parameters};
use crate::control::{ConnectionId, Order, PathId, RateController, Sample, What};

/// After a pause of more what was under way tells nothing any more.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// What a connection brings is averaged over so long.
const SHARE: Duration = Duration::from_secs(1);
/// A trial is judged by so long a time in which was measured, or so many round trips: the sessions' ends and beginnings
/// are not.
const JUDGED_BY: Duration = Duration::from_millis(1500);
const JUDGED_BY_ROUND_TRIPS: u64 = 8;
/// From the initial window of ten packets (RFC 6928) a connection comes to 320 in so many round trips.
const SLOW_START_ROUND_TRIPS: u64 = 5;
const LONGEST_SLOW_START: Duration = Duration::from_secs(2);
/// A player goes up where it gets so many times what the rung above needs: 1.11 times of dash.js, 1.18 of Shaka Player.
/// 1.43 of hls.js would cost others too much.
const TO_GO_UP: Ratio = Ratio::new(6, 5);
/// Of a mean loss event rate below this it is not losses that hold connections back.
const LOSSY: f64 = 0.001;
/// For so long a session waits for its first connections before it is measured without them.
const JOINING: Duration = Duration::from_secs(2);

/// A controller that goes on from session to session. Cheap to clone: all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Lasting(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    auto: Option<Auto>,
    /// How many sessions there were.
    sessions: u64,
    /// When it was told something last, by its own clock.
    now: Time,
    /// What the sessions before the newest one brought in its interval.
    aside: Bytes,
    /// What one connection of several brings, averaged over the last seconds.
    share: Option<Rate>,
}

impl Lasting {
    /// The controller of the next session, which begins at this time by the clock that all of its sessions share.
    /// The parameters are those of the first one, but for the most connections.
    pub fn next_session(&self, parameters: Parameters, began: Time) -> Box<dyn RateController> {
        let mut state = self.lock();
        state.sessions += 1;
        let auto = state.auto.get_or_insert_with(|| Auto { is_lasting: true, ..Auto::new(parameters) });
        auto.parameters.most = parameters.most;
        state.begins(began);
        let now = state.now;
        let number = state.sessions;
        drop(state);
        Box::new(OfSession { lasting: self.clone(), number, began: now, joining: 0, is_measured: false })
    }

    /// What a connection is expected to bring, as one of those of the last session; `None`: nobody knows.
    pub fn share(&self) -> Option<Rate> {
        self.lock().share
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Another segment begins.
    fn begins(&mut self, now: Time) {
        let pause = now.since(self.now);
        self.now = self.now.max(now);
        if let Some(auto) = self.auto.as_mut() {
            auto.goes_on(self.now, pause);
        }
    }

    fn note_share(&mut self, sample: &Sample<'_>) {
        let busy = || sample.connections.iter().filter(|connection| connection.network_limited);
        let count = Bytes::of(busy().count()).as_f64();
        let brought: Bytes = busy().map(|connection| connection.delivered).sum();
        if count > 0.0 && !sample.elapsed.is_zero() {
            let share = Rate::of(brought, sample.elapsed) * Ratio::from_f64(1.0 / count);
            let weight = Ratio::from_f64(sample.elapsed.ratio_to(SHARE).min(1.0));
            self.share = Some(self.share.map_or(share, |mean| mean * weight.complement() + share * weight));
        }
    }
}

impl Auto {
    /// Another session begins after such a pause, with connections of its own.
    fn goes_on(&mut self, now: Time, pause: Duration) {
        self.target = self.target.clamp(1, self.parameters.most.max(1));
        self.session_began = now;
        self.windows.clear();
        self.yields.clear();
        self.silence = Silence::since(now);
        if pause > LONGEST_PAUSE {
            (self.missed_since, self.held_since, self.ample_since, self.trial) = (None, None, None, None);
            return;
        }
        // A player with enough asks for a segment when it has played one: a time in which nothing was to be seen.
        let since = [&mut self.missed_since, &mut self.held_since, &mut self.ample_since];
        let times = since.into_iter().flatten().chain([&mut self.settles, &mut self.newest]);
        times.chain(self.history.iter_mut().map(|(end, ..)| end)).for_each(|time| *time += pause);
    }
}

impl Auto {
    /// What is wanted of a segment: as long as every path has room and packets are lost, what lets its player go to the
    /// rung above, by what it gets. Connections are held back by losses then, and not by a path that others need. Where
    /// nothing is lost one has what there is, and several only get the end of each segment twice.
    fn aimed<'a>(&self, sample: Sample<'a>) -> Sample<'a> {
        let losses: f64 = sample.connections.iter().map(|connection| connection.loss).sum();
        let is_lossy = losses >= LOSSY * Bytes::of(sample.connections.len()).as_f64();
        let is_free = is_lossy && self.has_room(&sample);
        let next = sample.next_rung.filter(|_| is_free).map(|next| next * TO_GO_UP);
        Sample { wanted: sample.wanted.max(next), ..sample }
    }

    /// Whether the session is so young that its connections, which had nothing to send before, begin with the initial
    /// window again (RFC 5681, section 4.1): what comes then tells little of the path. Whose buffer is low does not wait.
    pub(super) fn is_in_slow_start_again(&self, sample: &Sample<'_>) -> bool {
        let takes = (sample.mean_rtt() * SLOW_START_ROUND_TRIPS).min(LONGEST_SLOW_START);
        self.is_lasting && sample.now.since(self.session_began) < takes && !self.is_hurried(sample)
    }

    /// Mean throughput since a change has settled, by which it is judged; `None`: it is too early to tell.
    pub(super) fn effect(&self, sample: &Sample<'_>) -> Option<Rate> {
        let settled = self.settling(sample) / 2;
        if !self.is_lasting {
            return Some(self.throughput(settled, sample.now));
        }
        let since = self.settles - settled;
        let measured: Duration =
            self.history.iter().filter(|(end, ..)| *end > since).map(|(_, length, _)| *length).sum();
        (measured >= JUDGED_BY.max(sample.mean_rtt() * JUDGED_BY_ROUND_TRIPS))
            .then(|| self.throughput_between(since, sample.now))
    }
}

/// What the session of one segment is told and tells.
#[derive(Debug)]
struct OfSession {
    lasting: Lasting,
    /// Which session it is, from 1.
    number: u64,
    /// When it began, by the clock that all share.
    began: Time,
    /// How many of its first connections are not there yet.
    joining: usize,
    /// Whether all that it began with has brought something for an interval.
    is_measured: bool,
}

impl OfSession {
    /// Asks the controller at a time of the session, which began at zero, unless another one has followed it.
    fn ask<T: Default>(&self, now: Time, ask: impl FnOnce(&mut Auto, Time) -> T) -> T {
        let mut state = self.lasting.lock();
        state.now = state.now.max(self.began + now.since(Time::ZERO));
        let now = state.now;
        if state.sessions != self.number {
            return T::default();
        }
        state.auto.as_mut().map(|auto| ask(auto, now)).unwrap_or_default()
    }
}

impl RateController for OfSession {
    fn start(&mut self) -> Vec<Order> {
        let target = self.ask(Time::ZERO, |auto, _| auto.target);
        self.joining = target;
        (0..target).map(|_| Order { what: What::Open(None), why: "as many as before" }).collect()
    }

    fn connected(&mut self, connection: ConnectionId, path: PathId, sample: &Sample<'_>) -> Vec<Order> {
        if self.joining > 0 {
            // It goes on where another one was before.
            self.joining -= 1;
            return Vec::new();
        }
        self.ask(sample.now, |auto, now| {
            auto.connected(connection, path, &auto.aimed(Sample { now, ..*sample }))
        })
    }

    fn closed(&mut self, connection: ConnectionId, now: Time) {
        self.ask(now, |auto, now| auto.closed(connection, now));
    }

    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
        let mut state = self.lasting.lock();
        state.now = state.now.max(self.began + sample.now.since(Time::ZERO));
        if state.sessions != self.number {
            state.aside += sample.delivered();
            return Vec::new();
        }
        let aside = sample.aside + std::mem::take(&mut state.aside);
        let is_joining = self.joining > 0 && sample.now.since(Time::ZERO) < JOINING;
        if is_joining || !std::mem::replace(&mut self.is_measured, true) {
            return Vec::new();
        }
        state.note_share(sample);
        if sample.sated {
            return Vec::new();
        }
        self.joining = 0;
        drop(state);
        self.ask(sample.now, |auto, now| auto.measure(&auto.aimed(Sample { now, aside, ..*sample })))
    }

    fn next_segment(&mut self, now: Time) {
        self.is_measured = false;
        self.lasting.lock().begins(self.began + now.since(Time::ZERO));
    }

    fn interval(&self, rtt: Duration) -> Duration {
        super::interval(rtt)
    }
}

#[cfg(test)]
mod tests;
