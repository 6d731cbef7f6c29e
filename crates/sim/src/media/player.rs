//! A player with a buffer of its own: what it takes of what has arrived, what it plays, and what its viewer
//! does.
//!
//! It looks at its buffer every [`STEP`]: plays what the time asks for, and fills the buffer again with what
//! lies ready. Play starts and goes on by the stream's playback parameters, counted in what the player itself
//! holds.

use anabranch_film::content::ReaderId;
use anabranch_film::playback::{Parameters, StallRule};
use anabranch_film::session::Session;
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};

use super::scenes::Scenes;
use crate::model::{Act, Reader};
use crate::report::Seen;

/// How often it looks.
pub(super) const STEP: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Fills its buffer before it starts, also after a seek.
    Waiting,
    Playing,
    /// Has run out of media; since when.
    Stalled(Time),
}

/// A running player.
#[derive(Debug)]
pub(super) struct Player {
    model: Reader,
    film: Scenes,
    playback: Parameters,
    size: u64,
    began: Time,
    now: Time,
    id: ReaderId,
    next_act: usize,
    state: State,
    is_paused: bool,
    has_left: bool,
    speed: Ratio,
    /// The next byte that it takes, and the next that it plays.
    taken: u64,
    played: u64,
    seen: Seen,
}

impl Player {
    pub(super) fn new(
        model: Reader,
        rate: Rate,
        playback: Parameters,
        size: u64,
        id: ReaderId,
        now: Time,
    ) -> Self {
        Self {
            film: Scenes::new(rate, &model.scenes),
            model,
            playback,
            size,
            began: now,
            now,
            id,
            next_act: 0,
            state: State::Waiting,
            is_paused: false,
            has_left: false,
            speed: Ratio::ONE,
            taken: 0,
            played: 0,
            seen: Seen::default(),
        }
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> Seen {
        match self.state {
            State::Stalled(since) => Seen { stalled: self.seen.stalled + self.now.since(since), ..self.seen },
            _ => self.seen,
        }
    }

    /// When it looks next.
    pub(super) fn next(&self) -> Option<Time> {
        (!self.has_left).then(|| self.now + STEP)
    }

    /// The time has come to `now`.
    pub(super) fn step(&mut self, session: &mut Session, now: Time) {
        if self.has_left || now < self.now + STEP {
            return;
        }
        self.play(now.since(self.now));
        let elapsed = now.since(self.now);
        self.now = now;
        while let Some((at, act)) = self.model.acts.get(self.next_act).copied()
            && self.began + at <= now
        {
            self.next_act += 1;
            self.act(act, session);
            if self.has_left {
                return;
            }
        }
        let room = self.model.buffer.get().saturating_sub(self.taken - self.played);
        let most = self.model.takes.map_or(u64::MAX, |rate| rate.amount_in(elapsed).get());
        let ready = session.available(self.id).saturating_sub(self.taken);
        self.taken += ready.min(room).min(most);
        session.move_reader(self.id, self.taken, now);
        self.start_or_stop();
    }

    fn play(&mut self, elapsed: Duration) {
        if self.state != State::Playing || self.is_paused {
            return;
        }
        let wanted = (self.film.rate_at(self.played) * self.speed).amount_in(elapsed).get();
        let there = self.taken - self.played;
        self.played += wanted.min(there);
        self.seen.played += Bytes::new(wanted.min(there));
    }

    fn start_or_stop(&mut self) {
        let held = Bytes::new(self.taken - self.played);
        let all = self.taken >= self.size;
        let is_full = held >= self.model.buffer;
        let play_time = || self.film.play_time(self.taken) - self.film.play_time(self.played);
        let holds = |time: Duration| all || is_full || play_time() >= time;
        match self.state {
            State::Waiting if holds(self.playback.prebuffer) => {
                self.seen.startup = self.seen.startup.or(Some(self.now.since(self.began)));
                self.state = State::Playing;
            }
            State::Playing if held.is_zero() && !all && !self.is_paused => {
                self.seen.stalls += 1;
                self.state = State::Stalled(self.now);
            }
            State::Stalled(since) => {
                let (pause, enough) = match self.playback.stall {
                    StallRule::FixedPause(pause) => (pause, Duration::from_secs(1)),
                    StallRule::Rebuffer { resume_at } => (Duration::ZERO, resume_at),
                };
                if self.now.since(since) >= pause && holds(enough) {
                    self.seen.stalled += self.now.since(since);
                    self.state = State::Playing;
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, act: Act, session: &mut Session) {
        match act {
            Act::Pause(paused) => self.is_paused = paused,
            Act::Speed(speed) => self.speed = Ratio::from_f64(speed),
            Act::Seek(to) => {
                if let State::Stalled(since) = self.state {
                    self.seen.stalled += self.now.since(since);
                }
                let target = self.film.byte_at(to).min(self.size);
                session.remove_reader(self.id, self.now);
                self.id = ReaderId(self.id.0.wrapping_add(1));
                session.add_reader(self.id, target..self.size, self.now);
                (self.taken, self.played, self.state) = (target, target, State::Waiting);
            }
            Act::Leave => {
                session.remove_reader(self.id, self.now);
                if let State::Stalled(since) = self.state {
                    self.seen.stalled += self.now.since(since);
                    self.state = State::Playing;
                }
                self.has_left = true;
            }
        }
    }
}
