//! One of the copies of a client: its program, how much of the film it has, and the player behind it.

use std::path::Path;
use std::process::ExitStatus;

use anabranch_film::playback::Playback;
use anabranch_units::{Bytes, Duration, Time};

use super::order::SCRATCH;
use super::stage::Stage;
use crate::Error;
use crate::programs::{Program, Stdout};
use crate::progress::Source;
use crate::report::Viewing;
use crate::scenario::{Client, Film, Output};
use crate::topology;

/// A program that runs, or has run.
pub(super) struct Viewer {
    program: Program,
    source: Source,
    player: Option<Playback>,
}

impl Viewer {
    /// Starts a copy of a client; what it says beside the film goes to a log of its own.
    pub(super) fn start(
        stage: &Stage<'_>,
        client: &Client,
        command: &[String],
        copy: usize,
    ) -> Result<Self, Error> {
        let log = if copy == 0 { "client".into() } else { format!("client-{}", copy + 1) };
        let stdout = if client.output == Output::Stdout { Stdout::Pipe } else { Stdout::Log };
        let mut program = Program::start(topology::CLIENT, command, stdout, &stage.log(&log))?;
        let source = match (client.output, program.take_stdout()) {
            (Output::Stdout, Some(pipe)) => Source::pipe(pipe, stage.order.film.as_deref()),
            (Output::File, _) => Source::File(Path::new(SCRATCH).join("out"), 0),
            _ => Source::Nothing,
        };
        let film = stage.scenario.film.as_ref();
        let player = film.map(|film| Playback::new(film.playback, Some(film.rate), Time::ZERO));
        Ok(Self { program, source, player })
    }

    /// Lets the player play until now, and read as far as its buffer goes. Answers what is there.
    pub(super) fn advance(&mut self, now: Duration, film: Option<&Film>, film_bytes: Bytes) -> Bytes {
        let have = Bytes::new(self.source.in_order());
        if let Some(player) = &mut self.player {
            player.advance(Time::ZERO + now, have, have >= film_bytes);
        }
        self.source.allow(readable(film, self.player.as_ref()).get());
        have
    }

    /// How it ended by itself, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.program.ended()
    }

    /// Ends the program at the end of the run.
    pub(super) fn finish(mut self, end: Duration, film: Option<&Path>, film_bytes: Bytes) -> Seen {
        let status = self.program.ended();
        if status.is_none() {
            self.program.end();
        }
        self.source.allow(u64::MAX);
        let is_right = film.is_none_or(|film| self.source.is_right(film));
        let have = Bytes::new(self.source.in_order());
        let viewing = self.player.map_or_else(Viewing::default, |mut player| {
            player.advance(Time::ZERO + end, have, have >= film_bytes);
            player.report().into()
        });
        Seen { status, is_right, have, viewing }
    }
}

/// What became of a copy.
pub(super) struct Seen {
    /// How it ended by itself, if it has.
    pub(super) status: Option<ExitStatus>,
    /// Whether what it has is the film's beginning.
    pub(super) is_right: bool,
    /// How much that is.
    pub(super) have: Bytes,
    /// What its player would have shown.
    pub(super) viewing: Viewing,
}

/// How far a player with the film's buffer would read by now.
fn readable(film: Option<&Film>, player: Option<&Playback>) -> Bytes {
    match (film.and_then(|film| film.buffer.map(|buffer| film.rate.amount_in(buffer))), player) {
        (Some(buffer), Some(player)) => player.play_position() + buffer,
        _ => Bytes::MAX,
    }
}
