//! What is measured in an interval, and shown to the rate controller.

use anabranch_units::{Bytes, Duration, Time};

use super::Session;
use super::api::Pace;
use super::connection::Connection;
use crate::control::{Order, RateController, Sample};

impl Session {
    pub(super) fn interval(&self) -> Duration {
        self.controller.interval(self.mean_rtt())
    }

    fn mean_rtt(&self) -> Duration {
        let up: Vec<_> = self.connections.values().filter(|c| c.is_up()).map(|c| c.srtt).collect();
        let count = Bytes::of(up.len()).get();
        if count == 0 { Duration::from_millis(100) } else { up.into_iter().sum::<Duration>() / count }
    }

    pub(super) fn measure(&mut self, now: Time) {
        let elapsed = now.since(self.measured);
        let ids: Vec<_> = self.connections.keys().copied().collect();
        for id in ids {
            if let Some(connection) = self.connections.get_mut(&id)
                && connection.is_up()
            {
                let spacing = self.paths.spacing(connection.path);
                connection.measure(elapsed, spacing.is_some_and(|spacing| !spacing.least().is_zero()));
                self.coordinator.estimate(id, connection.rate, connection.srtt);
            }
        }
        self.estimate_groups();
        let interval = self.measured;
        self.measured = now;
        self.totals.connection_seconds += elapsed.as_secs_f64() * self.up_as_f64();
        self.totals.observed += elapsed;
        self.with_sample(interval, |controller, sample| controller.measure(sample));
        for connection in self.connections.values_mut() {
            connection.begin_interval(now);
        }
        self.gone = 0;
        let rerequested_now: Vec<_> = self
            .connections
            .values()
            .filter(|connection| connection.closing && self.coordinator.queue_length(connection.pipe()) == 0)
            .map(|connection| connection.id)
            .collect();
        for connection in rerequested_now {
            self.close_now(connection, "not needed any more");
        }
    }

    fn up_as_f64(&self) -> f64 {
        Bytes::of(self.connections.values().filter(|connection| connection.is_up()).count()).as_f64()
    }

    /// Shows the controller what was measured since `from`, and obeys.
    pub(super) fn with_sample(
        &mut self,
        from: Time,
        ask: impl FnOnce(&mut dyn RateController, &Sample<'_>) -> Vec<Order>,
    ) {
        let now = self.now;
        let counted = || self.connections.values().filter(|connection| !connection.closing);
        let up = || counted().filter(|connection| connection.is_up());
        let connections: Vec<_> = up().map(|c| c.sample(now)).collect();
        let held = up().filter(|connection| connection.was_held(now)).count();
        // Those that are lent had nothing more to do here.
        let idle = self.has_lent || up().any(|connection| connection.was_idle(now));
        let sated = idle || held * 2 > connections.len();
        let connecting = counted().filter(|connection| !connection.is_up()).count();
        let paths = self.paths.samples(&self.connections, self.ranges, now);
        let buffer = match self.pace {
            Pace::Media(_) => Some(self.playback.buffer().unwrap_or(if self.coordinator.has_work() {
                Duration::ZERO
            } else {
                Duration::MAX
            })),
            // Of a segment nothing plays before all of it is there.
            Pace::AtLeast { ahead, .. } => Some(ahead - now.since(self.segment_from)),
            _ => None,
        };
        let wanted = match self.pace {
            Pace::Max => None,
            Pace::Limit(rate) => Some(rate),
            Pace::Media(_) => self.media_rate,
            Pace::AtLeast { rate, .. } => Some(rate),
        };
        let (left, next_rung) = match self.pace {
            Pace::AtLeast { next, .. } => (self.coordinator.missing().unwrap_or(Bytes::ZERO), next),
            _ => (Bytes::ZERO, None),
        };
        let elapsed = now.since(from);
        let connections = &connections;
        // What came over connections that are given up is part of what came.
        let closing = self.connections.values().filter(|connection| connection.closing);
        let aside = Bytes::new(self.gone + closing.map(Connection::delivered_now).sum::<u64>());
        let hungry = self.expects_any_speed && self.viewer_is_hungry();
        let sample = Sample {
            now,
            elapsed,
            wanted,
            buffer,
            connections,
            connecting,
            paths: &paths,
            aside,
            sated,
            left,
            hungry,
            next_rung,
        };
        let orders = ask(self.controller.as_mut(), &sample);
        self.obey(orders);
    }
}
