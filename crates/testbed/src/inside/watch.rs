//! Runs a client that fetches, with the timetable, and samples.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::thread;
use std::time::Instant;

use anabranch_units::{Bytes, Duration};

use super::order::TICK;
use super::stage::Stage;
use super::viewer::{Seen, Viewer};
use crate::Error;
use crate::meter::Count;
use crate::observe;
use crate::report::{Live, Viewing};
use crate::scenario::Scenario;
use crate::timetable::timetable;

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
    /// Of each copy of the client.
    pub(super) seen: Vec<Viewing>,
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
            seen: Vec::new(),
            right: true,
            traffic: Vec::new(),
            senders: vec![BTreeMap::new(); scenario.servers.len()],
            live: None,
        }
    }
}

/// Runs the client, all of its copies, and the timetable, and samples.
pub(super) fn watch(stage: &mut Stage<'_>) -> Result<Record, Error> {
    let scenario = stage.scenario;
    let film = scenario.film.as_ref();
    let client = scenario.client(Some(&stage.order.client))?;
    let command = stage.command(client);
    let mut record = Record::new(scenario, command.join(" "));
    let start = record.start;
    let copies = (0..client.copies).map(|copy| Viewer::start(stage, client, &command, copy));
    let mut viewers: Vec<Viewer> = copies.collect::<Result<_, _>>()?;
    let film_bytes = stage.film_size()?;
    let mut events = timetable(scenario).into_iter().peekable();
    let mut next_traffic = Duration::ZERO;
    let mut next_progress = Duration::ZERO;
    let mut next_senders = Duration::from_secs(1);
    loop {
        let now = Duration::from(start.elapsed());
        while let Some((_, action)) = events.next_if(|(at, _)| *at <= now) {
            stage.act(action)?;
        }
        let have: Bytes = viewers.iter_mut().map(|viewer| viewer.advance(now, film, film_bytes)).sum();
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
        if viewers.iter_mut().all(|viewer| viewer.ended().is_some()) || now >= scenario.duration {
            break;
        }
        thread::sleep(TICK);
    }
    record.elapsed = start.elapsed().into();
    let finish = |viewer: Viewer| viewer.finish(record.elapsed, stage.order.film.as_deref(), film_bytes);
    let seen: Vec<Seen> = viewers.into_iter().map(finish).collect();
    record.status = seen
        .iter()
        .map(|seen| seen.status)
        .min_by_key(|status| status.map(|status| status.success()))
        .flatten();
    record.right = seen.iter().all(|seen| seen.is_right);
    record.progress.push((record.elapsed, seen.iter().map(|seen| seen.have).sum()));
    record.seen = seen.iter().map(|seen| seen.viewing).collect();
    record.traffic.push((start.elapsed().into(), stage.counts()));
    stage.stop_cross();
    Ok(record)
}
