//! The receiving half of a TCP connection.

use std::hint::black_box;

use anabranch_queues::Codepoint;

use super::echo::Echo;
use super::scoreboard::Scoreboard;
use crate::ecn::EcnBits;
use crate::model::{DelayedAck, Tcp};

/// What an arriving segment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// An acknowledgement at once.
    Now,
    /// One at this time at the latest.
    By(u64),
    /// One was promised already.
    Later,
}

/// How many places are kept: some of them meet when gaps close. Linux keeps four.
const RECENT: usize = 8;

/// The state of the receiving half.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Everything before it has arrived.
    next: u64,
    /// What has arrived beyond a gap.
    beyond: Scoreboard,
    /// Where in it something arrived, the last one first: the ranges that SACK blocks tell of (RFC 2018,
    /// section 4).
    recent: [u64; RECENT],
    /// Whether the sender is told what came twice (RFC 2883): one that is paced, which asks for it.
    tells_duplicates: bool,
    /// What came twice, until the next acknowledgement.
    duplicate: Option<(u64, u64)>,
    /// The receive window that is kept up.
    window: u64,
    /// What has arrived in order and was left in the buffer.
    unread: u64,
    /// The right edge that was advertised; it never goes back (RFC 7323, section 2.4).
    edge: u64,
    delayed: Option<DelayedAck>,
    segment: u64,
    /// Bytes in order that no acknowledgement was sent for.
    unacknowledged: u64,
    ack_is_promised: bool,
    /// The timestamp to echo (RFC 7323, section 4.3).
    timestamp: u32,
    /// Where the flow knows marks.
    echo: Option<Echo>,
}

/// A window as large as can be.
pub(crate) const NO_LIMIT: u64 = 1 << 62;

impl Receiver {
    pub(crate) fn new(tcp: &Tcp) -> Self {
        let window = tcp.receive_window.map_or(NO_LIMIT, |window| window.get().min(NO_LIMIT));
        Self {
            next: 0,
            beyond: Scoreboard::default(),
            recent: [0; RECENT],
            tells_duplicates: tcp.congestion.is_paced(),
            duplicate: None,
            window,
            unread: 0,
            edge: window,
            delayed: tcp.delayed_ack,
            segment: tcp.segment.get(),
            unacknowledged: 0,
            ack_is_promised: false,
            timestamp: 0,
            echo: tcp.ecn.map(Echo::new),
        }
    }

    /// Everything before it has arrived.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Reads of what every segment needs, a line of the processor's memory each.
    #[inline]
    pub(crate) fn touch(&self) {
        black_box((self.next, self.beyond.first(), self.recent[0], self.edge, self.timestamp));
    }

    /// The receive window that is kept up.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Drives the receive window. Answers whether the sender should hear of it at once.
    ///
    /// The edge never goes back, except from no limit: that stands for a buffer that grows with what comes,
    /// and so never was much larger than what is on its way.
    pub(crate) fn set_window(&mut self, window: u64) -> bool {
        let was_unlimited = std::mem::replace(&mut self.window, window.min(NO_LIMIT)) == NO_LIMIT;
        if was_unlimited {
            self.edge = self.possible_edge();
        }
        self.opens()
    }

    /// The right edge that the window allows now.
    fn possible_edge(&self) -> u64 {
        self.next + self.window.saturating_sub(self.unread)
    }

    /// Whether the window has opened so far that the sender should hear of it.
    fn opens(&self) -> bool {
        self.possible_edge() >= self.edge + self.segment
    }

    /// What has arrived and was left in the buffer.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    /// The application leaves so much of what has arrived in the buffer.
    pub(crate) fn keep_unread(&mut self, bytes: u64) {
        self.unread += bytes;
    }

    /// The application reads what it had left. Answers whether the sender should hear of it at once.
    pub(crate) fn read(&mut self, bytes: u64) -> bool {
        self.unread = self.unread.saturating_sub(bytes);
        self.opens()
    }

    /// A segment `[start, end)` arrives.
    pub(crate) fn segment(&mut self, start: u64, end: u64, timestamp: u32, now: u64) -> Answer {
        if self.tells_duplicates {
            self.note_duplicate(start, end);
        }
        if start > self.next {
            self.keep_beyond(start, end);
            return Answer::Now;
        }
        if !self.ack_is_promised {
            self.timestamp = timestamp;
        }
        if end <= self.next {
            return Answer::Now;
        }
        let had_gap = self.beyond.first().is_some();
        self.unacknowledged += end - self.next;
        self.next = end;
        if had_gap {
            self.close_gap();
            return Answer::Now;
        }
        match self.delayed {
            _ if self.duplicate.is_some() => Answer::Now,
            Some(delayed) if self.unacknowledged < u64::from(delayed.every) * self.segment => {
                if std::mem::replace(&mut self.ack_is_promised, true) {
                    Answer::Later
                } else {
                    Answer::By(now + delayed.delay.as_nanos())
                }
            }
            _ => Answer::Now,
        }
    }

    /// Keeps what of a segment was there before, to tell it once.
    fn note_duplicate(&mut self, start: u64, end: u64) {
        let before = (start < self.next).then(|| (start, end.min(self.next)));
        let beyond = || {
            let (from, to) = self.beyond.range_of(start)?;
            Some((start.max(from), end.min(to)))
        };
        self.duplicate = before.or_else(beyond);
    }

    fn keep_beyond(&mut self, start: u64, end: u64) {
        self.beyond.add(start, end);
        let (range_start, range_end) = self.beyond.range_of(start).unwrap_or((start, end));
        // One place for each range: the last one to go is the first in this range, or the oldest.
        let is_same = |place: &u64| (range_start..range_end).contains(place);
        let last = self.recent.iter().position(is_same).unwrap_or(RECENT - 1);
        self.recent.copy_within(..last, 1);
        self.recent[0] = start;
    }

    fn close_gap(&mut self) {
        while let Some((_, end)) = self.beyond.first().filter(|(start, _)| *start <= self.next) {
            self.next = self.next.max(end);
            self.beyond.acknowledged(self.next);
        }
    }

    /// Up to three blocks: what came twice (RFC 2883, section 4), and ranges beyond a gap, the one that grew
    /// last first.
    fn blocks(&mut self) -> [(u64, u64); 3] {
        let mut blocks = [(0, 0); 3];
        let mut count = 0;
        let duplicate = self.duplicate.take();
        if let Some(duplicate) = duplicate {
            blocks[0] = duplicate;
            count = 1;
        }
        if self.beyond.first().is_none() {
            return blocks;
        }
        for range in self.recent.iter().filter_map(|place| self.beyond.range_of(*place)) {
            if !blocks[usize::from(duplicate.is_some())..count].contains(&range) {
                blocks[count] = range;
                count += 1;
            }
            if count == blocks.len() {
                break;
            }
        }
        blocks
    }

    /// What a segment of so many bytes says of congestion, besides [`Receiver::segment`]. Answers whether an
    /// acknowledgement is due for that.
    pub(crate) fn notice(&mut self, bytes: u64, ecn: EcnBits) -> bool {
        let Some(echo) = &mut self.echo else { return false };
        echo.segment(bytes, ecn.codepoint() == Codepoint::Ce, ecn.flag())
    }

    /// How many bytes came marked, where an acknowledgement says so.
    pub(crate) fn marked(&self) -> Option<u64> {
        self.echo.as_ref()?.marked()
    }

    /// What the next acknowledgement says of congestion. It is itself not to be marked (RFC 3168, section
    /// 6.1.4).
    pub(crate) fn echo(&self) -> EcnBits {
        EcnBits::new(Codepoint::NotEct, self.echo.as_ref().is_some_and(Echo::is_due))
    }

    /// Whether an acknowledgement that was put off is still due.
    pub(crate) fn owes_ack(&self) -> bool {
        self.ack_is_promised
    }

    /// What an acknowledgement says now: everything before it, the window, SACK blocks (empty ones are
    /// unused) and the timestamp it echoes.
    pub(crate) fn acknowledge(&mut self) -> (u64, u64, [(u64, u64); 3], u32) {
        self.unacknowledged = 0;
        self.ack_is_promised = false;
        self.edge = self.edge.max(self.possible_edge());
        (self.next, self.edge - self.next, self.blocks(), self.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Congestion;

    fn receiver(congestion: Congestion) -> Receiver {
        Receiver::new(&Tcp { congestion, ..Tcp::DEPLOYED })
    }

    #[test]
    fn what_came_twice_is_told_once_and_first_where_the_sender_is_paced() {
        let mut receiver = receiver(Congestion::Bbr);
        receiver.segment(0, 1000, 0, 0);
        receiver.acknowledge();
        // Below what is acknowledged, and in part.
        assert_eq!(receiver.segment(0, 1000, 0, 0), Answer::Now);
        assert_eq!(receiver.acknowledge().2, [(0, 1000), (0, 0), (0, 0)]);
        assert_eq!(receiver.acknowledge().2, [(0, 0); 3]);
        assert_eq!(receiver.segment(500, 1500, 0, 0), Answer::Now);
        assert_eq!(receiver.acknowledge().2, [(500, 1000), (0, 0), (0, 0)]);
        // Beyond a gap: the range that it is in comes next, and three blocks are the most.
        for start in [3000, 5000, 7000, 5000] {
            receiver.segment(start, start + 1000, 0, 0);
            if start == 7000 {
                receiver.acknowledge();
            }
        }
        assert_eq!(receiver.acknowledge().2, [(5000, 6000), (5000, 6000), (7000, 8000)]);
    }

    #[test]
    fn other_senders_are_told_nothing_new() {
        let mut receiver = receiver(Congestion::Cubic);
        receiver.segment(0, 1000, 0, 0);
        receiver.segment(0, 1000, 0, 0);
        assert_eq!(receiver.acknowledge().2, [(0, 0); 3]);
    }
}
