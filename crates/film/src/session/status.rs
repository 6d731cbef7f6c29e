//! What a session can tell about itself.

use anabranch_units::{Bytes, Duration, Rate};

use crate::control::{ConnectionId, PathId};
use crate::playback::PlaybackReport;

/// Sums over the session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Payload that arrived.
    pub received: u64,
    /// Payload that had come before.
    pub duplicate: u64,
    /// Bytes that were asked for again elsewhere.
    pub rerequested: u64,
    /// Requests that were made; of a stripe group none.
    pub requests: u64,
    /// Most connections at a time.
    pub connections_most: usize,
    pub(super) connection_seconds: f64,
    pub(super) observed: Duration,
}

/// One connection now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionStatus {
    /// Which.
    pub connection: ConnectionId,
    /// Where to.
    pub path: PathId,
    /// What it delivers.
    pub rate: Rate,
    /// Its smoothed round-trip time.
    pub srtt: Duration,
    /// The part of its packets that was lost of late, losses within a round trip counted once; `None`: not
    /// known.
    pub loss: Option<f64>,
    /// Its receive window as ordered; `None`: unlimited.
    pub window: Option<Bytes>,
    /// Payload it brought.
    pub delivered: u64,
}

/// The session now.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The established connections.
    pub connections: Vec<ConnectionStatus>,
    /// Sums.
    pub totals: Totals,
    /// Connections on average over the time.
    pub connections_mean: f64,
    /// Start-up, stalls.
    pub playback: PlaybackReport,
    /// Play time that is buffered.
    pub buffer: Option<Duration>,
    /// The media's rate, where it is known.
    pub media_rate: Option<Rate>,
    /// The partition rule's smallest missing and last assigned byte.
    pub partition: (u64, u64),
    /// Delivered bytes and errors of each path.
    pub paths: Vec<(u64, u64)>,
}
