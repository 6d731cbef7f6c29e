//! Sums over the films of a run.

use std::collections::BTreeMap;

use anabranch_client::Status;
use anabranch_units::{Bytes, Duration, Rate};
use serde::Serialize;

/// Replicas that are told apart; a proxy that runs for months adds what comes later to [`OTHERS`].
const MOST_REPLICAS: usize = 1000;
const OTHERS: &str = "others";

/// Sums that films can be added to.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) received: u64,
    pub(super) duplicate: u64,
    pub(super) rerequested: u64,
    pub(super) requests: u64,
    pub(super) stalls: u64,
    pub(super) stall_s: f64,
    /// Of the first film that started.
    startup: Option<Duration>,
    connections_most: usize,
    connection_seconds: f64,
    /// Bytes and errors by URL.
    pub(super) replicas: BTreeMap<String, (u64, u64)>,
}

/// The last line of `--stats`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    /// Payload that arrived and had not come before.
    bytes: u64,
    pub(super) seconds: f64,
    mean_rate_bps: u64,
    startup_s: Option<f64>,
    stalls: u64,
    stall_s: f64,
    connections_max: usize,
    connections_mean: f64,
    rerequested_bytes: u64,
    requests: u64,
    duplicate_bytes: u64,
    replicas: Vec<ReplicaLine>,
}

#[derive(Clone, Debug, Serialize)]
struct ReplicaLine {
    url: String,
    bytes: u64,
    errors: u64,
}

#[cfg(test)]
impl Summary {
    pub(super) fn an_example() -> Self {
        let replicas = BTreeMap::from([("http://a.example/".to_owned(), (0, 0))]);
        Sums { replicas, ..Sums::default() }.summary(1.0, 1)
    }
}

impl Sums {
    pub(super) fn add(&mut self, status: &Status) {
        let session = &status.session;
        self.received += session.totals.received;
        self.duplicate += session.totals.duplicate;
        self.rerequested += session.totals.rerequested;
        self.requests += session.totals.requests;
        self.stalls += u64::from(session.playback.stalls);
        self.stall_s += session.playback.stalled.as_secs_f64();
        self.startup = self.startup.or(session.playback.startup);
        self.connections_most = self.connections_most.max(session.totals.connections_most);
        self.connection_seconds += session.connections_mean * status.elapsed.as_secs_f64();
        for replica in &status.replicas {
            let is_known = self.replicas.contains_key(&replica.url) || self.replicas.len() < MOST_REPLICAS;
            let name = if is_known { &replica.url } else { OTHERS };
            let (bytes, errors) = self.replicas.entry(name.to_owned()).or_default();
            *bytes += replica.bytes;
            *errors += replica.errors;
        }
    }

    /// What arrived and had not come before.
    pub(super) fn bytes(&self) -> u64 {
        self.received.saturating_sub(self.duplicate)
    }

    /// The summary of a run of so many seconds, in which so many connections were seen at the same time.
    pub(super) fn summary(self, seconds: f64, connections_seen: usize) -> Summary {
        let bytes = self.bytes();
        let line = |(url, (bytes, errors))| ReplicaLine { url, bytes, errors };
        Summary {
            bytes,
            seconds,
            mean_rate_bps: Rate::of(Bytes::new(bytes), Duration::from_secs_f64(seconds)).as_bps(),
            startup_s: self.startup.map(Duration::as_secs_f64),
            stalls: self.stalls,
            stall_s: self.stall_s,
            connections_max: self.connections_most.max(connections_seen),
            connections_mean: if seconds > 0.0 { self.connection_seconds / seconds } else { 0.0 },
            rerequested_bytes: self.rerequested,
            requests: self.requests,
            duplicate_bytes: self.duplicate,
            replicas: self.replicas.into_iter().map(line).collect(),
        }
    }
}
