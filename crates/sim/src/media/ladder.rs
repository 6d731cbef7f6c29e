//! A player of a film in segments that is there at several rates: it asks for one segment after the other, of the
//! rung that its rule says, while it has less than so much to play.
//!
//! To the session the segments are bytes that follow each other, whatever rungs they are of: a reader for each,
//! which begins when its segment is asked for, so that nothing is fetched that was not asked for.

use std::collections::VecDeque;

use anabranch_congestion::need::Told;
use anabranch_film::adaptation::{Adaptation, Choice};
use anabranch_film::content::ReaderId;
use anabranch_film::playback::{Parameters, StallRule};
use anabranch_film::session::{Pace, Session};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::player::STEP;
use crate::model::Ladder;
use crate::report::Seen;

/// What a player has, of one segment.
#[derive(Clone, Copy, Debug)]
struct Held {
    rung: usize,
    left: Duration,
}

/// The segment that it waits for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    rung: usize,
    end: u64,
    at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Playing,
    /// Has run out of media; since when.
    Stalled(Time),
}

/// A running player.
#[derive(Debug)]
pub(super) struct LadderPlayer {
    model: Ladder,
    playback: Parameters,
    adaptation: Adaptation,
    began: Time,
    now: Time,
    state: State,
    reader: ReaderId,
    asked: Option<Asked>,
    /// What was asked for ends here.
    end: u64,
    held: VecDeque<Held>,
    played: Duration,
    last: Option<usize>,
    seen: Seen,
    /// Rungs that were chosen and not told of.
    chosen: Vec<(Rate, &'static str)>,
}

impl LadderPlayer {
    pub(super) fn new(model: Ladder, playback: Parameters, first: ReaderId, now: Time) -> Self {
        Self {
            adaptation: Adaptation::new(model.adaptation),
            model,
            playback,
            began: now,
            now,
            state: State::Waiting,
            reader: first,
            asked: None,
            end: 0,
            held: VecDeque::new(),
            played: Duration::ZERO,
            last: None,
            seen: Seen::default(),
            chosen: Vec::new(),
        }
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> Seen {
        let stalls = match self.state {
            State::Stalled(since) => self.seen.stalled + self.now.since(since),
            _ => self.seen.stalled,
        };
        let rung = (!self.played.is_zero()).then(|| Rate::of(self.seen.played, self.played));
        Seen { stalled: stalls, rung, ..self.seen }
    }

    /// What was chosen since the last call, and why.
    pub(super) fn take_chosen(&mut self) -> Vec<(Rate, &'static str)> {
        std::mem::take(&mut self.chosen)
    }

    /// What it tells with a request, as CMCD has it (CTA-5004): its buffer in hundreds of milliseconds, and
    /// whether it waits.
    pub(super) fn told(&self) -> Told {
        let hundreds = (self.buffer().as_millis() + 50) / 100;
        Told { buffer: Some(Duration::from_millis(hundreds * 100)), waits: self.state != State::Playing }
    }

    /// When it looks next.
    pub(super) fn next(&self) -> Time {
        self.now + STEP
    }

    /// The time has come to `now`.
    pub(super) fn step(&mut self, session: &mut Session, now: Time) {
        if now < self.now + STEP && now > self.began {
            return;
        }
        let elapsed = now.since(self.now);
        self.now = now;
        self.play(elapsed);
        self.take(session);
        self.start_or_stop();
        self.ask(session);
    }

    fn rate(&self, rung: usize) -> Rate {
        self.model.rungs.get(rung).copied().unwrap_or(Rate::ZERO)
    }

    fn buffer(&self) -> Duration {
        self.held.iter().map(|held| held.left).sum()
    }

    fn play(&mut self, elapsed: Duration) {
        if self.state != State::Playing {
            return;
        }
        let mut left = elapsed;
        while let Some(first) = self.held.front_mut() {
            let plays = left.min(first.left);
            first.left = first.left - plays;
            left = left - plays;
            let Held { rung, left: of_segment } = *first;
            self.seen.played += self.rate(rung).amount_in(plays);
            self.played += plays;
            if self.last.is_some_and(|last| last != rung) {
                self.seen.switches += 1;
            }
            self.last = Some(rung);
            if !of_segment.is_zero() {
                return;
            }
            self.held.pop_front();
        }
    }

    /// Takes what has arrived of the segment that it waits for.
    fn take(&mut self, session: &mut Session) {
        let Some(Asked { rung, end, at }) = self.asked else { return };
        let there = session.available(self.reader).min(end);
        session.move_reader(self.reader, there, self.now);
        if there < end {
            return;
        }
        session.remove_reader(self.reader, self.now);
        self.asked = None;
        let size = self.rate(rung).amount_in(self.model.segment);
        self.adaptation.came(size, self.now.since(at));
        self.held.push_back(Held { rung, left: self.model.segment });
    }

    /// Asks for the next segment unless it has enough.
    fn ask(&mut self, session: &mut Session) {
        let buffer = self.buffer();
        if self.asked.is_some() || buffer >= self.model.adaptation.holds {
            return;
        }
        let Choice { rung, why } = self.adaptation.choose(&self.model.rungs, buffer);
        let rate = self.rate(rung);
        let start = self.end;
        self.end = start.saturating_add(rate.amount_in(self.model.segment).max(Bytes::new(1)).get());
        self.asked = Some(Asked { rung, end: self.end, at: self.now });
        self.chosen.push((rate, why));
        self.reader = ReaderId(self.reader.0.wrapping_add(1));
        let next = self.model.rungs.get(rung + 1).copied();
        session.next_segment(Pace::AtLeast { rate, ahead: buffer, next }, self.end, self.now);
        session.add_reader(self.reader, start..self.end, self.now);
    }

    fn start_or_stop(&mut self) {
        let buffer = self.buffer();
        // With so much it asks for nothing more.
        let most = self.model.adaptation.holds;
        let holds = |time: Duration| !buffer.is_zero() && buffer >= time.min(most);
        match self.state {
            State::Waiting if holds(self.playback.prebuffer) => {
                self.seen.startup = Some(self.now.since(self.began));
                self.state = State::Playing;
            }
            State::Playing if buffer.is_zero() => {
                self.seen.stalls += 1;
                self.state = State::Stalled(self.now);
            }
            State::Stalled(since) => {
                let (pause, enough) = match self.playback.stall {
                    StallRule::FixedPause(pause) => (pause, Duration::ZERO),
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
}
