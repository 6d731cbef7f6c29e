//! Runs a client that fetches, with the timetable, and samples.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::Instant;

use anabranch_film::playback::Playback;
use anabranch_units::{Bytes, Duration, Time};

use super::order::{SCRATCH, TICK};
use super::stage::Stage;
use crate::Error;
use crate::meter::Count;
use crate::observe;
use crate::programs::{Program, Stdout};
use crate::progress::Source;
use crate::report::{Live, Viewing};
use crate::scenario::{Output, Scenario};
use crate::timetable::timetable;
use crate::topology;

/// Time between two samples of the client's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two samples of the traffic.
pub(super) const TRAFFIC_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks at the senders' congestion control.
const SENDERS_INTERVAL: Duration = Duration::from_secs(3);

/// What was sampled while the client ran.
pub(super) struct Record {
    pub(super) start: Instant,
    pub(super) command: String,
    pub(super) status: Option<ExitStatus>,
    pub(super) elapsed: Duration,
    pub(super) progress: Vec<(Duration, Bytes)>,
    pub(super) seen: Viewing,
    pub(super) right: bool,
    pub(super) traffic: Vec<(Duration, Vec<(Count, Count)>)>,
    pub(super) senders: Vec<BTreeMap<(u8, String), u64>>,
    pub(super) live: Option<Live>,
}

impl Record {
    /// A record of a run that starts now.
    pub(super) fn new(scenario: &Scenario, command: String) -> Self {
        Self {
            start: Instant::now(),
            command,
            status: None,
            elapsed: Duration::ZERO,
            progress: Vec::new(),
            seen: Viewing::default(),
            right: true,
            traffic: Vec::new(),
            senders: vec![BTreeMap::new(); scenario.servers.len()],
            live: None,
        }
    }
}

/// Runs the client and the timetable, and samples.
pub(super) fn watch(stage: &mut Stage<'_>) -> Result<Record, Error> {
    let scenario = stage.scenario;
    let client = scenario.client(Some(&stage.order.client))?;
    let command = stage.command(client);
    let stdout = if client.output == Output::Stdout { Stdout::Pipe } else { Stdout::Log };
    let mut record = Record::new(scenario, command.join(" "));
    let start = record.start;
    let mut program = Program::start(topology::CLIENT, &command, stdout, &stage.log("client"))?;
    let mut source = match (client.output, program.take_stdout()) {
        (Output::Stdout, Some(pipe)) => Source::pipe(pipe, stage.order.film.as_deref()),
        (Output::File, _) => Source::File(Path::new(SCRATCH).join("out"), 0),
        _ => Source::Nothing,
    };
    let film_bytes = stage.film_size()?;
    let mut player =
        scenario.film.as_ref().map(|film| Playback::new(film.playback, Some(film.rate), Time::ZERO));
    let mut events = timetable(scenario).into_iter().peekable();
    let mut next_traffic = Duration::ZERO;
    let mut next_progress = Duration::ZERO;
    let mut next_senders = Duration::from_secs(1);
    loop {
        let now = Duration::from(start.elapsed());
        while let Some((_, action)) = events.next_if(|(at, _)| *at <= now) {
            stage.act(action)?;
        }
        let have = Bytes::new(source.in_order());
        if let Some(player) = &mut player {
            player.advance(Time::ZERO + now, have, have >= film_bytes);
        }
        source.allow(readable(scenario, player.as_ref()).get());
        if now >= next_progress {
            record.progress.push((now, have));
            next_progress = now + PROGRESS_INTERVAL;
        }
        if now >= next_traffic {
            record.traffic.push((now, stage.counts()));
            next_traffic += TRAFFIC_INTERVAL;
        }
        if now >= next_senders {
            record.senders.iter_mut().enumerate().for_each(|(server, seen)| observe::senders(server, seen));
            next_senders = now + SENDERS_INTERVAL;
        }
        record.status = program.ended();
        if record.status.is_some() || now >= scenario.duration {
            break;
        }
        thread::sleep(TICK);
    }
    record.elapsed = start.elapsed().into();
    if record.status.is_none() {
        program.end();
    }
    source.allow(u64::MAX);
    if let Some(film) = &stage.order.film {
        record.right = source.is_right(film);
    }
    let have = Bytes::new(source.in_order());
    record.progress.push((record.elapsed, have));
    if let Some(mut player) = player {
        player.advance(Time::ZERO + record.elapsed, have, have >= film_bytes);
        record.seen = player.report().into();
    }
    record.traffic.push((start.elapsed().into(), stage.counts()));
    stage.stop_cross();
    Ok(record)
}

/// How far a player with the film's buffer would read by now.
fn readable(scenario: &Scenario, player: Option<&Playback>) -> Bytes {
    match (
        scenario.film.as_ref().and_then(|film| film.buffer.map(|buffer| film.rate.amount_in(buffer))),
        player,
    ) {
        (Some(buffer), Some(player)) => player.play_position() + buffer,
        _ => Bytes::MAX,
    }
}
