//! How a stream stands.

use anabranch_film::session;
use anabranch_units::{Duration, Rate, Time};

use super::shared::Shared;

/// One replica's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Where it is, without credentials.
    pub url: String,
    /// Payload it brought.
    pub bytes: u64,
    /// Connections that failed or were refused.
    pub errors: u64,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Since the opening began.
    pub elapsed: Duration,
    /// Bytes of the film that are there.
    pub bytes: u64,
    /// Bytes of the film in all, if known.
    pub size: Option<u64>,
    /// The session: connections, playback, sums.
    pub session: session::Status,
    /// The replicas, over all interfaces.
    pub replicas: Vec<ReplicaStatus>,
    /// What the connections deliver together.
    pub recent_rate: Rate,
}

pub(super) fn of(shared: &Shared) -> Status {
    let core = shared.lock();
    let mut session = core.session.status();
    // The first replica was the reference of the probing, whose first bytes are used.
    let first_bytes = core.first_bytes;
    session.totals.received += first_bytes;
    if let Some(path) = session.paths.first_mut() {
        path.0 += first_bytes;
    }
    let bytes = core.session.have().total();
    let size = core.session.size();
    drop(core);
    let count = shared.urls().count();
    let replicas = shared.urls().enumerate().map(|(index, url)| {
        let own = session.paths.iter().skip(index).step_by(count.max(1));
        let (bytes, errors) = own.fold((0, 0), |(bytes, errors), path| (bytes + path.0, errors + path.1));
        ReplicaStatus { url: url.to_owned(), bytes, errors }
    });
    let replicas = replicas.collect();
    let recent_rate = session.connections.iter().map(|connection| connection.rate).sum();
    let elapsed = shared.now().since(Time::ZERO);
    Status { elapsed, bytes, size, session, replicas, recent_rate }
}
