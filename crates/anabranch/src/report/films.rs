//! The films of a run: those that are open, and the sums of those that were.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anabranch_client::{Film, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use serde::Serialize;

use super::summary::{Summary, Sums};
use crate::metrics::Families;

/// All films of a run.
pub(super) struct Films {
    began: Instant,
    open: BTreeMap<u32, Film>,
    next: u32,
    closed: Sums,
    /// Connections of all films together, at most as far as it was looked at.
    connections_max: usize,
    /// The last interval's end and what had been received by then.
    last: (Instant, u64),
}

impl fmt::Debug for Films {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Films").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// One second of a run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Interval {
    pub(super) at_s: f64,
    /// New bytes of the films, as a rate.
    pub(super) rate_bps: u64,
    /// Bytes received so far that had not come before.
    pub(super) bytes: u64,
    /// Bytes of the open films that are there, and sizes; only with one film.
    pub(super) have_bytes: Option<u64>,
    pub(super) size_bytes: Option<u64>,
    /// The lowest of the open films' buffers.
    pub(super) buffer_s: Option<f64>,
    pub(super) playing: bool,
    pub(super) stalls: u64,
    pub(super) stall_s: f64,
    pub(super) connections: Vec<ConnectionLine>,
}

/// One connection in an interval.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ConnectionLine {
    film: u32,
    connection: u32,
    replica: String,
    rate_bps: u64,
    srtt_s: f64,
    /// `None`: not known.
    loss_rate: Option<f64>,
    window_bytes: Option<u64>,
    bytes: u64,
}

#[cfg(test)]
impl Interval {
    pub(super) fn an_example() -> Self {
        let connection = ConnectionLine {
            film: 0,
            connection: 0,
            replica: String::new(),
            rate_bps: 0,
            srtt_s: 0.0,
            loss_rate: None,
            window_bytes: None,
            bytes: 0,
        };
        Self {
            at_s: 1.0,
            rate_bps: 8_000_000,
            bytes: 0,
            have_bytes: None,
            size_bytes: None,
            buffer_s: None,
            playing: false,
            stalls: 0,
            stall_s: 0.0,
            connections: vec![connection],
        }
    }
}

impl Films {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            open: BTreeMap::new(),
            next: 0,
            closed: Sums::default(),
            connections_max: 0,
            last: (now, 0),
        }
    }

    pub(super) fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Adds a film; answers its number, and what its times are behind those of the run.
    pub(super) fn add(&mut self, film: &Film) -> (u32, f64) {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.open.insert(number, film.clone());
        (number, self.elapsed_s() - film.status().elapsed.as_secs_f64())
    }

    pub(super) fn remove(&mut self, number: u32) {
        if let Some(film) = self.open.remove(&number) {
            self.closed.add(&film.status());
        }
    }

    fn statuses(&self) -> Vec<(u32, Status)> {
        self.open.iter().map(|(number, film)| (*number, film.status())).collect()
    }

    fn sums(&self, statuses: &[(u32, Status)]) -> Sums {
        let mut sums = self.closed.clone();
        statuses.iter().for_each(|(_, status)| sums.add(status));
        sums
    }

    /// What happened since the last call.
    pub(super) fn interval(&mut self) -> Interval {
        let now = Instant::now();
        let statuses = self.statuses();
        let sums = self.sums(&statuses);
        let (then, before) = std::mem::replace(&mut self.last, (now, sums.bytes()));
        let connections: Vec<_> = statuses.iter().flat_map(|(film, status)| lines(*film, status)).collect();
        self.connections_max = self.connections_max.max(connections.len());
        let only = match &statuses[..] {
            [(_, status)] => Some(status),
            _ => None,
        };
        let buffers = statuses.iter().filter_map(|(_, status)| status.session.buffer);
        Interval {
            at_s: self.elapsed_s(),
            rate_bps: anabranch_units::Rate::of(
                anabranch_units::Bytes::new(sums.bytes().saturating_sub(before)),
                now.duration_since(then).into(),
            )
            .as_bps(),
            bytes: sums.bytes(),
            have_bytes: only.map(|status| status.bytes),
            size_bytes: only.and_then(|status| status.size),
            buffer_s: buffers.min().map(anabranch_units::Duration::as_secs_f64),
            playing: statuses.iter().any(|(_, status)| status.session.playback.playing),
            stalls: sums.stalls,
            stall_s: sums.stall_s,
            connections,
        }
    }

    pub(super) fn summary(&self) -> Summary {
        self.sums(&self.statuses()).summary(self.elapsed_s(), self.connections_max)
    }
}

fn lines(film: u32, status: &Status) -> impl Iterator<Item = ConnectionLine> + '_ {
    status.session.connections.iter().map(move |connection| {
        // Paths are the replicas, over each interface in turn.
        let index = usize::from(connection.path.0) % status.replicas.len().max(1);
        ConnectionLine {
            film,
            connection: connection.connection.0,
            replica: status.replicas.get(index).map(|replica| replica.url.clone()).unwrap_or_default(),
            rate_bps: connection.rate.as_bps(),
            srtt_s: connection.srtt.as_secs_f64(),
            loss_rate: connection.loss,
            window_bytes: connection.window.map(anabranch_units::Bytes::get),
            bytes: connection.delivered,
        }
    })
}

/// The metrics of the films.
#[derive(Debug)]
pub(super) struct FilmsCollector(pub(super) Arc<Mutex<Films>>);

impl Collector for FilmsCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let (statuses, sums) = {
            let films = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let statuses = films.statuses();
            let sums = films.sums(&statuses);
            (statuses, sums)
        };
        let connections: Vec<_> = statuses.iter().flat_map(|(film, status)| lines(*film, status)).collect();
        let label = |connection: &ConnectionLine| {
            vec![
                ("film", connection.film.to_string()),
                ("connection", connection.connection.to_string()),
                ("replica", connection.replica.clone()),
            ]
        };
        let of_connections = |value: fn(&ConnectionLine) -> Option<f64>| {
            connections.iter().filter_map(move |one| Some((label(one), value(one)?))).collect::<Vec<_>>()
        };
        let of_films = |value: fn(&Status) -> Option<f64>| {
            let values = statuses.iter().filter_map(move |(film, status)| Some((*film, value(status)?)));
            values.map(|(film, value)| (vec![("film", film.to_string())], value)).collect::<Vec<_>>()
        };
        let of_replicas = |value: fn((u64, u64)) -> u64| {
            let replicas = sums.replicas.iter();
            replicas
                .map(|(url, figures)| (vec![("replica", url.clone())], value(*figures)))
                .collect::<Vec<_>>()
        };
        let mut families = Families(encoder);
        families.gauge(
            "films",
            "Films that are open",
            [(vec![], anabranch_units::Bytes::of(statuses.len()).as_f64())],
        )?;
        families.gauge(
            "connections",
            "Established connections",
            [(vec![], anabranch_units::Bytes::of(connections.len()).as_f64())],
        )?;
        families.gauge(
            "connection_rate_bits_per_second",
            "What a connection delivers",
            of_connections(|one| Some(anabranch_units::Rate::from_bps(one.rate_bps).as_f64())),
        )?;
        families.gauge(
            "connection_rtt_seconds",
            "Smoothed round-trip time",
            of_connections(|one| Some(one.srtt_s)),
        )?;
        families.gauge(
            "connection_loss_rate",
            "Part of the packets that was lost of late, where it is known",
            of_connections(|one| one.loss_rate),
        )?;
        families.gauge(
            "connection_window_bytes",
            "Receive window, where it is limited",
            of_connections(|one| one.window_bytes.map(|bytes| anabranch_units::Bytes::new(bytes).as_f64())),
        )?;
        families.counter(
            "connection_received_bytes",
            "Payload that a connection brought",
            connections.iter().map(|one| (label(one), one.bytes)),
        )?;
        families.counter(
            "replica_received_bytes",
            "Payload that a replica brought",
            of_replicas(|(bytes, _)| bytes),
        )?;
        families.counter(
            "replica_errors",
            "Connections to a replica that failed or were refused",
            of_replicas(|(_, errors)| errors),
        )?;
        families.gauge(
            "buffer_seconds",
            "Play time that is buffered",
            of_films(|status| status.session.buffer.map(anabranch_units::Duration::as_secs_f64)),
        )?;
        families.gauge(
            "media_rate_bits_per_second",
            "The media's rate, where it is known",
            of_films(|status| status.session.media_rate.map(anabranch_units::Rate::as_f64)),
        )?;
        for (name, help, value) in [
            ("received_bytes", "Payload that arrived", sums.received),
            ("duplicate_bytes", "Payload that had come before", sums.duplicate),
            ("rerequested_bytes", "Bytes that were asked for again elsewhere", sums.rerequested),
            ("requests", "Ranges that servers were asked for", sums.requests),
            ("stalls", "Stops of the modelled player for want of media", sums.stalls),
        ] {
            families.counter(name, help, [(vec![], value)])?;
        }
        families.gauge("stall_seconds", "Time in such stops", [(vec![], sums.stall_s)])
    }
}
