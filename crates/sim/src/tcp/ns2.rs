//! Recovery as ns-2's `Agent/TCP/Sack1` does it (version 2.35, its defaults), to show which differences from its results come
//! from there. It differs from RFC 6675 in this:
//! - the pipe is a count: what was sent, less the duplicates, at the beginning; one less for each acknowledgement, two for one
//!   that advances. Lost segments stay in it, so that after many losses in a window almost nothing is sent;
//! - a time-out forgets all SACKs and sends everything again from the oldest segment; until everything sent before it is
//!   acknowledged, no fast retransmission begins;
//! - the window is halved without a floor (see [`Window`]), and what is halved is at most the receive window;
//! - the segment that begins a recovery is followed by nothing until another acknowledgement comes;
//! - the retransmission time-out is reckoned in whole ticks (see `rto.rs`).

mod window;

use anabranch_congestion::control::{Loss, Timeout};
use anabranch_units::{Bytes, Time};

use super::sender::{Acknowledgement, DUPLICATE_THRESHOLD, Event, Phase, Segment, Sender};
pub(super) use window::Window;

/// What ns-2's sender keeps besides.
#[derive(Clone, Debug, Default)]
pub(super) struct Ns2 {
    /// Segments on their way, by its count.
    pipe: i64,
    /// End of everything ever sent; `next` goes back at a time-out.
    pub(super) highest_sent: u64,
    /// No fast retransmission before this is acknowledged.
    recover: u64,
    /// A time-out has passed and nothing was acknowledged since.
    is_after_timeout: bool,
    /// The window counts from here: in a recovery it stands still.
    last_ack: u64,
    /// The first segment of a recovery has left and no acknowledgement has come since.
    waits_for_ack: bool,
}

impl Sender {
    fn ns2(&mut self) -> &mut Ns2 {
        self.ns2.get_or_insert_default()
    }

    pub(super) fn ns2_acknowledgement(&mut self, ack: &Acknowledgement, now: u64) -> Event {
        self.edge = self.edge.max(ack.next.saturating_add(ack.window));
        let acked = ack.next.saturating_sub(self.oldest);
        let next = self.next;
        let highest_sent = self.highest_sent();
        let flight = highest_sent - self.oldest;
        if matches!(self.phase, Phase::Recovery { .. }) {
            let ns2 = self.ns2();
            ns2.pipe -= 1;
            ns2.waits_for_ack = false;
            self.ns2_in_recovery(ack, acked, now);
            return Event::Nothing;
        }
        if acked > 0 {
            self.next = highest_sent;
            self.advance(ack, now);
            self.next = next.max(self.oldest);
            self.board.clear();
            self.duplicates = 0;
            self.ns2().is_after_timeout = false;
            self.ns2().last_ack = ack.next;
            // Its window grows whatever holds the sender back.
            self.is_cwnd_limited = true;
            self.grow(acked, flight, now);
        } else if ack.next == self.oldest && !self.ns2().is_after_timeout && self.add_blocks(ack) > 0 {
            self.duplicates += 1;
            if self.duplicates == DUPLICATE_THRESHOLD {
                return self.ns2_begin_recovery(now);
            }
            self.urgent = u32::from(self.limited_transmit && self.duplicates < DUPLICATE_THRESHOLD);
        }
        Event::Nothing
    }

    /// The window that holds: its own, or the receiver's where that is less.
    fn ns2_allowed(&self) -> Bytes {
        Bytes::new(self.cwnd.min(self.edge.saturating_sub(self.oldest)))
    }

    fn add_blocks(&mut self, ack: &Acknowledgement) -> u64 {
        ack.blocks.iter().map(|(start, end)| self.board.add((*start).max(self.oldest), *end)).sum()
    }

    fn ns2_begin_recovery(&mut self, now: u64) -> Event {
        // Something sent after the time-out has to be acknowledged first.
        let recover = self.ns2().recover;
        if recover > 0 && self.oldest <= recover {
            return Event::Nothing;
        }
        let highest_sent = self.highest_sent();
        let segments = (highest_sent - self.oldest) / self.segment;
        let ns2 = self.ns2();
        ns2.recover = highest_sent;
        ns2.pipe = segments as i64 - i64::from(DUPLICATE_THRESHOLD);
        self.controller.on_loss(&Loss { now: Time::from_nanos(now), flight: self.ns2_allowed() });
        self.cwnd = self.controller.cwnd().get();
        self.phase = Phase::Recovery { point: highest_sent, has_rescued: false };
        self.retransmitted_to = self.oldest;
        self.deadline = now.saturating_add(self.round_trip.timeout());
        self.timed = None;
        self.urgent = 1;
        Event::Loss
    }

    fn ns2_in_recovery(&mut self, ack: &Acknowledgement, acked: u64, now: u64) {
        let Phase::Recovery { point, .. } = self.phase else { return };
        if ack.next >= point {
            self.advance(ack, now);
            self.board.clear();
            self.phase = Phase::Open;
            self.duplicates = 0;
            let ns2 = self.ns2();
            ns2.recover = 0;
            ns2.last_ack = ack.next;
        } else if acked > 0 {
            self.advance(ack, now);
            self.add_blocks(ack);
            self.ns2().pipe -= 1;
            self.round_trip.forget_backoff();
        } else {
            self.add_blocks(ack);
        }
    }

    pub(super) fn ns2_timeout(&mut self, now: u64) {
        let highest_sent = self.highest_sent();
        self.controller.on_timeout(&Timeout {
            now: Time::from_nanos(now),
            flight: self.ns2_allowed(),
            is_repeated: false,
        });
        self.cwnd = self.controller.cwnd().get();
        self.phase = Phase::Open;
        self.board.clear();
        self.duplicates = 0;
        self.timed = None;
        self.retransmitted_to = 0;
        self.next = self.oldest;
        let oldest = self.oldest;
        let ns2 = self.ns2();
        ns2.highest_sent = highest_sent;
        ns2.recover = highest_sent;
        ns2.is_after_timeout = true;
        ns2.last_ack = oldest;
    }

    pub(super) fn ns2_poll(&mut self) -> Option<Segment> {
        let segment = if matches!(self.phase, Phase::Recovery { .. }) {
            self.ns2_poll_recovery()?
        } else {
            self.ns2_poll_open()?
        };
        let highest_sent = self.highest_sent();
        self.next = self.next.max(segment.end);
        let segment = Segment { is_retransmission: segment.start < highest_sent, ..segment };
        let ns2 = self.ns2();
        ns2.pipe += 1;
        ns2.highest_sent = highest_sent.max(segment.end);
        Some(segment)
    }

    /// Whether the window has room, be there something to send or not.
    pub(super) fn ns2_has_room(&self) -> bool {
        let Some(ns2) = &self.ns2 else { return false };
        match self.phase {
            Phase::Recovery { .. } => !ns2.waits_for_ack && ns2.pipe < (self.cwnd / self.segment) as i64,
            _ => self.duplicates == 0 && self.next + self.segment <= ns2.last_ack + self.ns2_allowed().get(),
        }
    }

    fn ns2_poll_open(&mut self) -> Option<Segment> {
        let last_ack = self.ns2().last_ack;
        let mut window = self.cwnd;
        if self.duplicates > 0 {
            // Between the first duplicate and recovery only limited transmit sends.
            if self.urgent == 0 {
                return None;
            }
            window += u64::from(self.duplicates) * self.segment;
        }
        if self.next + self.segment > last_ack + window {
            return None;
        }
        self.new_segment()
    }

    fn ns2_poll_recovery(&mut self) -> Option<Segment> {
        let segment = self.segment;
        let at = |start: u64| Segment { start, end: start + segment, is_retransmission: true };
        if self.urgent > 0 {
            self.retransmitted_to = self.oldest + segment;
            let ns2 = self.ns2();
            // This first one is not counted.
            ns2.pipe -= 1;
            ns2.waits_for_ack = true;
            return Some(at(self.oldest));
        }
        if !self.ns2_has_room() {
            return None;
        }
        let from = self.retransmitted_to.max(self.oldest);
        let gap = self.board.highest().and_then(|highest| self.board.next_gap(from, highest));
        if let Some((start, _)) = gap {
            self.retransmitted_to = start + segment;
            return Some(at(start));
        }
        self.new_segment()
    }
}
