//! How a session stands.

use anabranch_units::Bytes;

use super::Session;
use super::status::{ConnectionStatus, Status};

impl Session {
    /// How it stands.
    pub fn status(&self) -> Status {
        let up = self.connections.values().filter(|connection| connection.is_up());
        let connections = up
            .map(|connection| ConnectionStatus {
                connection: connection.id,
                path: connection.path,
                rate: connection.rate,
                srtt: connection.srtt,
                loss: connection.loss,
                window: connection.window,
                delivered: connection.total,
            })
            .collect();
        let observed = self.totals.observed.as_secs_f64();
        Status {
            connections,
            totals: self.totals,
            // Before the first measurement: what there is.
            connections_mean: if observed > 0.0 {
                self.totals.connection_seconds / observed
            } else {
                Bytes::of(self.totals.connections_most).as_f64()
            },
            playback: self.playback.report(),
            buffer: self.playback.buffer(),
            media_rate: self.known_rate.or(self.media_rate),
            partition: (self.coordinator.smallest_missing(), self.coordinator.last_assigned()),
            paths: self.paths.totals(),
        }
    }
}
