//! What counts as getting on: bytes that somebody waits for and that had not come before.
//!
//! Whatever else a server sends keeps a connection busy, but brings the stream no nearer to its end: one that
//! sends the same bytes again and again would never be given up.

use anabranch_units::Time;

/// When a stream got on last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    last: Time,
    /// How far a server without ranges has come again since the last new byte: on its way there it gets on,
    /// once.
    caught_up: u64,
    /// Whether anything has come since that was of no use.
    in_vain: bool,
}

impl Progress {
    pub(super) fn new(now: Time) -> Self {
        Self { last: now, caught_up: 0, in_vain: false }
    }

    /// When the stream got on last.
    pub(super) fn last(&self) -> Time {
        self.last
    }

    /// Bytes came that had been waited for, or nothing is waited for.
    pub(super) fn got_on(&mut self, now: Time) {
        *self = Self::new(now);
    }

    /// A server without ranges has sent everything up to `position` again.
    pub(super) fn came_again(&mut self, position: u64, now: Time) {
        if position > self.caught_up {
            *self = Self { last: now, caught_up: position, ..*self };
        }
    }

    /// Bytes came that nobody had waited for.
    pub(super) fn came_in_vain(&mut self) {
        self.in_vain = true;
    }

    /// Whether that has happened since the stream got on last.
    pub(super) fn is_in_vain(&self) -> bool {
        self.in_vain
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Duration;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_same_bytes_a_third_time_are_no_progress() {
        let mut progress = Progress::new(at(0));
        progress.got_on(at(1));
        progress.came_again(50, at(2));
        progress.came_again(100, at(3));
        assert_eq!(progress.last(), at(3));
        progress.came_again(50, at(4));
        progress.came_again(100, at(5));
        assert_eq!(progress.last(), at(3));
        progress.came_again(101, at(6));
        assert_eq!(progress.last(), at(6));
    }

    #[test]
    fn the_way_back_counts_anew_after_each_new_byte() {
        let mut progress = Progress::new(at(0));
        progress.came_again(100, at(1));
        progress.got_on(at(2));
        progress.came_again(10, at(3));
        assert_eq!(progress.last(), at(3));
    }
}
