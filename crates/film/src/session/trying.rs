//! What a session does by itself when it has no connection, and when it gives up.

use anabranch_units::Time;

use super::Session;
use super::api::Action;

impl Session {
    /// With no connection at all the controller has nothing to measure: the session tries again by itself.
    pub(super) fn reopen_when_alone(&mut self, now: Time) {
        if !self.connections.is_empty() || self.failed || !self.wants_something() {
            return;
        }
        if let Some(error) = self.paths.hopeless() {
            self.fail(error);
            return;
        }
        if !self.waiting && !self.paths.any_open(now) {
            self.waiting = true;
            self.actions.push_back(Action::Waiting { last_error: self.paths.last_error() });
        }
        self.open(None, "none was left");
    }

    pub(super) fn give_up_in_time(&mut self, now: Time) {
        let receiving =
            self.connections.values().any(|c| c.is_up() && self.coordinator.queue_length(c.pipe()) > 0);
        if !self.wants_something() {
            self.progress.got_on(now);
        } else if now.since(self.progress.last()) >= self.give_up_after && !self.failed {
            let last = self.paths.last_error();
            let what = if receiving || self.progress.is_in_vain() {
                "nothing new arrived"
            } else {
                "no replica could be reached"
            };
            let last = if last.is_empty() { String::new() } else { format!("; the last error: {last}") };
            self.fail(format!("{what} for {}{last}", self.give_up_after));
        }
    }

    fn fail(&mut self, error: String) {
        if !self.failed {
            self.failed = true;
            self.actions.push_back(Action::Fail { error });
        }
    }
}
