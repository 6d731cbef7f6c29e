//! What a sender does at the end of its stream.

use anabranch_units::Time;

use super::super::ConnectionId;
use super::{LEAST_END_PROBE, Sender};

impl Sender {
    /// After the stream's last packet nothing follows that would show its loss: probes do, a few in each
    /// round trip, until the receiver has it or it is too late. Answers with the connection that takes the
    /// next.
    pub(super) fn probe_of_the_end(&mut self, now: Time) -> Option<ConnectionId> {
        if now < self.next_end_probe() {
            return None;
        }
        let ready = self.usable().filter(|(_, connection)| connection.next_send() <= now);
        let id = ready.min_by_key(|(_, connection)| connection.way(now)).map(|(id, _)| id)?;
        self.end_probed = Some(now);
        Some(id)
    }

    pub(super) fn next_end_probe(&self) -> Time {
        if !self.is_finished || self.waiting() > 0 || self.history.is_empty() {
            return Time::NEVER;
        }
        let interval = (self.rtt().unwrap_or(self.settings.latency) / 4).max(LEAST_END_PROBE);
        self.end_probed.map_or(Time::ZERO, |last| last + interval)
    }
}
