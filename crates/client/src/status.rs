//! How a stream stands.

use anabranch_film::session;
use anabranch_units::{Duration, Rate, Time};

use super::published::Figures;
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
    let Figures { mut session, have, first_bytes } = shared.published.figures().clone();
    // The first replica was the reference of the probing, whose first bytes are used.
    session.totals.received += first_bytes;
    if let Some(path) = session.paths.first_mut() {
        path.0 += first_bytes;
    }
    let count = shared.urls().count();
    let replicas = shared.urls().enumerate().map(|(index, url)| {
        let own = session.paths.iter().skip(index).step_by(count.max(1));
        let (bytes, errors) = own.fold((0, 0), |(bytes, errors), path| (bytes + path.0, errors + path.1));
        ReplicaStatus { url: url.to_owned(), bytes, errors }
    });
    let replicas = replicas.collect();
    Status {
        elapsed: shared.now().since(Time::ZERO),
        bytes: have.total(),
        size: shared.published.standing().borrow().size,
        recent_rate: session.connections.iter().map(|connection| connection.rate).sum(),
        session,
        replicas,
    }
}
