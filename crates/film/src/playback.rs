//! Playback model: when a player that gets these bytes starts, stalls and ends.
//!
//! Between two calls the player plays what was there at the earlier one: bytes arrive at the call that
//! reports them. Starts, stalls and ends have their exact times, whatever the times of the calls.

use anabranch_units::{Bytes, Duration, Rate, Time};

const SECOND: Duration = Duration::from_secs(1);

/// What the player does when the media that it needs is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallRule {
    /// Looks at the start of every second of play whether all of that second is there; if not, stops for this
    /// long and looks again (MultiTCP section 8.3). Every stop counts. At least one millisecond.
    FixedPause(Duration),
    /// Plays to the last byte, and goes on when so much media is there again, or its end.
    Rebuffer {
        /// Play time that has to be there.
        resume_at: Duration,
    },
}

/// When a player starts and stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Play time that has to be there before the start; the end of the media is enough as well.
    pub prebuffer: Duration,
    /// What it does when it runs out of media.
    pub stall: StallRule,
}

impl Parameters {
    /// The rule of MultiTCP section 8.3: ten seconds to buffer, then stops of five seconds.
    ///
    /// The paper's "10 seconds for buffering" are read as ten seconds of media; they take ten seconds on a
    /// path that carries the media's rate and no more.
    pub const fn multitcp_8_3() -> Self {
        Self { prebuffer: Duration::from_secs(10), stall: StallRule::FixedPause(Duration::from_secs(5)) }
    }
}

impl Default for Parameters {
    /// Starts, and goes on after a stall, with two seconds of media: the initial buffering of TCP-ROME
    /// section IV-A.
    fn default() -> Self {
        let buffered = Duration::from_secs(2);
        Self { prebuffer: buffered, stall: StallRule::Rebuffer { resume_at: buffered } }
    }
}

/// How the playback went, as of the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaybackReport {
    /// From the creation to the first start; `None` before it.
    pub startup: Option<Duration>,
    /// Stops for want of media.
    pub stalls: u32,
    /// Time in them, the present one included. Waiting after a seek is not a stall.
    pub stalled: Duration,
    /// Whether it plays now.
    pub playing: bool,
    /// Whether it has played to the end.
    pub finished: bool,
}

/// What a player does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Buffers before a start, also after a seek.
    Waiting,
    /// Plays since a time, from a number of bytes behind the start position.
    Playing { since: Time, from: Bytes },
    /// Stands still since a time; the last time it was looked whether it can go on.
    Stalled { looked: Time },
    /// Has played to the end.
    Finished,
}

/// A player.
#[derive(Clone, Debug)]
pub struct Playback {
    parameters: Parameters,
    rate: Option<Rate>,
    created: Time,
    now: Time,
    /// Where it began to play: the start of the media or the target of the last seek.
    start: Bytes,
    /// Bytes behind `start` that are there, in order.
    contiguous: Bytes,
    /// Bytes behind `start` that are played, up to the last change of state.
    played: Bytes,
    end_reached: bool,
    state: State,
    report: PlaybackReport,
}

impl Playback {
    /// A player at the start of media of this rate, which buffers from `now` on.
    ///
    /// As long as the rate is not known (or zero) it does not start.
    pub fn new(parameters: Parameters, rate: Option<Rate>, now: Time) -> Self {
        Self {
            parameters,
            rate: rate.filter(|rate| !rate.is_zero()),
            created: now,
            now,
            start: Bytes::ZERO,
            contiguous: Bytes::ZERO,
            played: Bytes::ZERO,
            end_reached: false,
            state: State::Waiting,
            report: PlaybackReport::default(),
        }
    }

    /// Sets or changes the media's rate from `now` on; a rate of zero changes nothing.
    ///
    /// With [`StallRule::FixedPause`] a new second of play begins here.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.play_until(now);
        if !rate.is_zero() {
            self.hold(self.now);
            self.rate = Some(rate);
        }
        self.go_on();
    }

    /// Time passes until `now`; then `contiguous` bytes are there from the start position on without a gap,
    /// and with `end_reached` they reach to the end of the media.
    ///
    /// Neither time nor bytes go back: an earlier time counts as the last one, fewer bytes as those of
    /// before.
    pub fn advance(&mut self, now: Time, contiguous: Bytes, end_reached: bool) {
        self.play_until(now);
        self.contiguous = self.contiguous.max(contiguous);
        self.end_reached |= end_reached;
        self.go_on();
    }

    /// Time passes until `now` as with [`Playback::advance`], but how far the player has played shows
    /// otherwise: to `played` bytes behind the start position. It does not stall, and what stood still goes
    /// on.
    ///
    /// What is played does not go back either, nor beyond what is there.
    pub fn follow(&mut self, now: Time, contiguous: Bytes, end_reached: bool, played: Bytes) {
        if let (State::Stalled { looked }, Some(rate)) = (self.state, self.rate) {
            let before = self.now;
            self.now = now.max(before);
            self.stand_still(rate, looked, before);
        }
        self.hold(self.now);
        self.now = now.max(self.now);
        self.contiguous = self.contiguous.max(contiguous);
        self.end_reached |= end_reached;
        self.played = self.played.max(played.min(self.contiguous));
        if self.rate.is_some() && self.state != State::Finished {
            self.report.startup = self.report.startup.or(Some(self.now.since(self.created)));
            self.state = State::Playing { since: self.now, from: self.played };
        }
    }

    /// The player has played so many bytes behind the start position at least, by what it took since.
    pub fn has_played(&mut self, played: Bytes) {
        self.hold(self.now);
        if let State::Playing { since, from } = &mut self.state {
            self.played = self.played.max(played.min(self.contiguous));
            (*since, *from) = (self.now, self.played);
        }
    }

    /// A seek: forgets what is there, and buffers again from `position` on, to which `contiguous` counts from
    /// now on.
    pub fn reset(&mut self, now: Time, position: Bytes) {
        self.play_until(now);
        self.start = position;
        (self.contiguous, self.played) = (Bytes::ZERO, Bytes::ZERO);
        self.end_reached = false;
        self.state = State::Waiting;
    }

    /// The next byte to be played.
    pub fn play_position(&self) -> Bytes {
        self.start + self.played_at(self.now)
    }

    /// Play time of what is there and not played; `None` without a rate or at the end.
    pub fn buffer(&self) -> Option<Duration> {
        let rate = self.rate.filter(|_| self.state != State::Finished)?;
        Some(rate.time_for(self.contiguous - self.played_at(self.now)))
    }

    /// How it went so far.
    pub fn report(&self) -> PlaybackReport {
        let playing = matches!(self.state, State::Playing { .. });
        PlaybackReport { playing, finished: self.state == State::Finished, ..self.report }
    }

    /// Bytes played at a time before which nothing stops.
    fn played_at(&self, time: Time) -> Bytes {
        match (self.state, self.rate) {
            (State::Playing { since, from }, Some(rate)) => {
                (from + rate.amount_in(time.since(since))).min(self.contiguous)
            }
            _ => self.played,
        }
    }

    /// When the player stops, by the bytes that are there.
    fn stops_at(&self, rate: Rate, since: Time, from: Bytes) -> Time {
        let left = rate.time_for(self.contiguous - from);
        let second = SECOND.as_nanos();
        match self.parameters.stall {
            StallRule::FixedPause(_) if !self.end_reached => {
                since + Duration::from_nanos(left.as_nanos() / second * second)
            }
            _ => since + left,
        }
    }

    /// Takes `played` to `time`; a player that plays, plays on from there.
    fn hold(&mut self, time: Time) {
        self.played = self.played_at(time);
        if let State::Playing { since, from } = &mut self.state {
            (*since, *from) = (time, self.played);
        }
    }

    /// Plays and stands still until just before `now`: with `now` itself bytes may come.
    fn play_until(&mut self, now: Time) {
        let before = self.now;
        self.now = now.max(before);
        let Some(rate) = self.rate else { return };
        if let State::Stalled { looked } = self.state {
            self.stand_still(rate, looked, before);
        }
        let State::Playing { since, from } = self.state else { return };
        let stop = self.stops_at(rate, since, from);
        if stop >= self.now {
            return;
        }
        self.hold(stop);
        if self.end_reached || matches!(self.parameters.stall, StallRule::Rebuffer { .. }) {
            // Nanoseconds cut off would leave the last byte.
            self.played = self.contiguous;
        } else if rate.time_for(self.played - from) < stop.since(since) {
            // So would a byte that was played in part: a second that is not there would seem to be.
            self.played = (self.played + Bytes::new(1)).min(self.contiguous);
        }
        if self.end_reached {
            self.state = State::Finished;
        } else {
            self.state = State::Stalled { looked: stop };
            self.report.stalls = self.report.stalls.saturating_add(1);
            self.stand_still(rate, stop, stop);
        }
    }

    /// Stands still until `now` or the start of the next play; `counted` is until when that is in the report.
    fn stand_still(&mut self, rate: Rate, looked: Time, counted: Time) {
        let mut until = self.now;
        if let StallRule::FixedPause(pause) = self.parameters.stall {
            let pause = at_least_a_millisecond(pause);
            let looks = self.now.since(looked).as_nanos().saturating_sub(1) / pause.as_nanos();
            if looks > 0 && self.second_is_there(rate) {
                until = looked + pause;
                self.state = State::Playing { since: until, from: self.played };
            } else {
                let stalls = u32::try_from(looks).unwrap_or(u32::MAX);
                self.report.stalls = self.report.stalls.saturating_add(stalls);
                self.state = State::Stalled { looked: looked + pause * looks };
            }
        }
        self.report.stalled += until.since(counted);
    }

    /// Whether the next second of media is there, or all of it to the end.
    fn second_is_there(&self, rate: Rate) -> bool {
        self.end_reached || rate.time_for(self.contiguous - self.played) >= SECOND
    }

    /// Starts, goes on or ends at `now`, with what came until now.
    fn go_on(&mut self) {
        let Some(rate) = self.rate else { return };
        let there = self.contiguous - self.played_at(self.now);
        let holds =
            |needed: Duration| self.end_reached || (!there.is_zero() && rate.time_for(there) >= needed);
        let goes_on = match (self.state, self.parameters.stall) {
            (State::Waiting, _) => holds(self.parameters.prebuffer),
            (State::Stalled { .. }, StallRule::Rebuffer { resume_at }) => holds(resume_at),
            (State::Stalled { looked }, StallRule::FixedPause(pause)) => {
                looked + at_least_a_millisecond(pause) <= self.now && self.second_is_there(rate)
            }
            (State::Playing { .. } | State::Finished, _) => false,
        };
        if goes_on {
            self.report.startup = self.report.startup.or(Some(self.now.since(self.created)));
            self.state = State::Playing { since: self.now, from: self.played };
        }
        if let State::Playing { since, from } = self.state
            && self.end_reached
            && self.stops_at(rate, since, from) <= self.now
        {
            self.played = self.contiguous;
            self.state = State::Finished;
        }
    }
}

fn at_least_a_millisecond(pause: Duration) -> Duration {
    pause.max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests;
