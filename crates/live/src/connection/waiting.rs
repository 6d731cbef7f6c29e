//! How long a connection waits for word of its datagrams: until one is lost, until it is overdue, until nothing
//! gets through.

use anabranch_units::{Duration, Time};

use super::super::arrivals::TELL;
use super::{Connection, Outstanding};

/// The least silence that makes a connection doubtful.
const LEAST_SILENCE: Duration = Duration::from_millis(100);

impl Connection {
    /// A datagram that has been under way for so long when a later one has arrived is lost: an eighth longer than
    /// the round trip (RFC 9002, section 6.1.2), or than those took of late that were overtaken, but no more than
    /// two round trips (RFC 8985, section 6.2, bounds what is added by a round trip).
    pub(super) fn patience(&self) -> Duration {
        let rtt = self.rtt();
        rtt.max(self.overtaken.0.min(rtt * 15 / 8)) + rtt / 8
    }

    /// When the oldest datagram counts as lost though no further report comes.
    pub(super) fn lost_at(&self) -> Time {
        match self.outstanding.first_key_value() {
            Some((sequence, oldest)) if Some(*sequence) < self.newest_arrived => {
                oldest.sent + self.patience()
            }
            _ => Time::NEVER,
        }
    }

    /// A datagram that was under way for so long should have been heard of, if it or a later one arrived: an eighth
    /// longer than a round trip, and until the next report. Over short ways reports are rarer than round trips, and
    /// a machine that is busy takes longer than both.
    fn heard_within(&self) -> Duration {
        let rtt = self.rtt();
        let longest = rtt.max(self.last_rtt.unwrap_or(rtt)).max(self.overtaken.0.min(rtt * 2));
        (longest + longest / 8 + longest.min(TELL)).max(LEAST_SILENCE)
    }

    /// Of what left after the newest that arrived: the oldest that was not overdue yet, and when it left.
    fn next_overdue(&self) -> Option<(u64, Outstanding)> {
        let first = self.overdue_from.max(self.newest_arrived.map_or(0, |newest| newest + 1));
        self.outstanding.range(first..).next().map(|(sequence, outstanding)| (*sequence, *outstanding))
    }

    /// When that one is overdue.
    pub(super) fn overdue_at(&self) -> Time {
        let next = self.next_overdue();
        next.map_or(Time::NEVER, |(_, outstanding)| outstanding.sent + self.heard_within())
    }

    /// The media packets of datagrams that are overdue, each once: nothing tells whether they are lost.
    pub(in super::super) fn take_overdue(&mut self, now: Time) -> Vec<u64> {
        let mut media = Vec::new();
        while self.overdue_at() <= now
            && let Some((sequence, outstanding)) = self.next_overdue()
        {
            self.overdue_from = sequence + 1;
            media.extend(outstanding.load.media());
        }
        media
    }

    /// So long a silence means that nothing gets through: two reports could have come.
    pub(super) fn silence(&self) -> Duration {
        let rtt = self.rtt();
        (rtt * 5 / 2 + Duration::from_millis(50)).max(LEAST_SILENCE)
    }
}
