//! Recovery as ns-2's `Agent/TCP/Sack1` does it (version 2.35, its defaults), to show which differences from
//! its results come from there. It differs from RFC 6675 in this:
//! - the pipe is a count: what was sent, less the duplicates, at the beginning; one less for each
//!   acknowledgement, two for one that advances. Lost segments stay in it, so that after many losses in a
//!   window almost nothing is sent;
//! - a time-out forgets all SACKs and sends everything again from the oldest segment; until everything sent
//!   before it is acknowledged, no fast retransmission begins;
//! - the window is halved without a floor (see [`Reno`]), and what is halved is at most the receive window;
//! - the segment that begins a recovery is followed by nothing until another acknowledgement comes;
//! - the retransmission time-out is reckoned in whole ticks (see `rto.rs`).

mod reno;

use std::hint::black_box;

use anabranch_congestion::control::{Loss, Timeout};
use anabranch_units::{Bytes, Time};

use super::flow::{Acknowledgement, Flow};
use super::recovery::{DUPLICATE_THRESHOLD, Event, LossRecovery};
use super::window::{Window, start};
use crate::model::{Congestion, Tcp};
use reno::Reno;

/// The window of a flow: Reno is ns-2's own.
pub(super) fn window(tcp: &Tcp) -> Window {
    match tcp.congestion {
        Congestion::Reno => Window::of(Box::new(Reno::new(&start(tcp, 0)))),
        _ => Window::new(tcp, 0),
    }
}

/// ns-2's rules.
#[derive(Clone, Debug)]
pub(super) struct Ns2 {
    /// In a recovery: what has to be acknowledged before it ends.
    point: Option<u64>,
    duplicates: u32,
    limited_transmit: bool,
    /// Segments on their way, by its count.
    pipe: i64,
    /// In a recovery everything without a SACK before this was sent again.
    retransmitted_to: u64,
    /// No fast retransmission before this is acknowledged.
    recover: u64,
    /// A time-out has passed and nothing was acknowledged since.
    is_after_timeout: bool,
    /// The window counts from here: in a recovery it stands still.
    last_ack: u64,
    /// The first segment of a recovery has left and no acknowledgement has come since.
    waits_for_ack: bool,
}

/// The window that holds: the flow's own, or the receiver's where that is less.
fn allowed(flow: &Flow) -> Bytes {
    Bytes::new(flow.window.bytes().min(flow.edge.saturating_sub(flow.oldest)))
}

/// Takes in the SACK blocks; answers how many of their bytes are news.
fn add_blocks(flow: &mut Flow, ack: &Acknowledgement) -> u64 {
    let oldest = flow.oldest;
    ack.blocks.iter().map(|(start, end)| flow.board.add((*start).max(oldest), *end)).sum()
}

impl Ns2 {
    /// For a flow that begins.
    pub(super) fn new(tcp: &Tcp) -> Self {
        Self {
            point: None,
            duplicates: 0,
            limited_transmit: tcp.limited_transmit,
            pipe: 0,
            retransmitted_to: 0,
            recover: 0,
            is_after_timeout: false,
            last_ack: 0,
            waits_for_ack: false,
        }
    }

    /// Three duplicates have come. Answers whether a loss event begins.
    fn begin_recovery(&mut self, flow: &mut Flow, now: u64) -> bool {
        // Something sent after the time-out has to be acknowledged first.
        if self.recover > 0 && flow.oldest <= self.recover {
            return false;
        }
        let segments = (flow.highest_sent - flow.oldest) / flow.segment;
        self.recover = flow.highest_sent;
        self.pipe = segments as i64 - i64::from(DUPLICATE_THRESHOLD);
        flow.window.on_loss(&Loss { now: Time::from_nanos(now), flight: allowed(flow) });
        self.point = Some(flow.highest_sent);
        self.retransmitted_to = flow.oldest;
        flow.restart_timer(now);
        flow.timed = None;
        flow.urgent = 1;
        true
    }

    /// An acknowledgement in a recovery that ends at `point`.
    fn recover(&mut self, flow: &mut Flow, ack: &Acknowledgement, point: u64, now: u64) {
        self.pipe -= 1;
        self.waits_for_ack = false;
        if ack.next >= point {
            flow.advance(ack, now);
            flow.board.clear();
            self.point = None;
            self.duplicates = 0;
            self.recover = 0;
            self.last_ack = ack.next;
        } else if ack.next > flow.oldest {
            flow.advance(ack, now);
            add_blocks(flow, ack);
            self.pipe -= 1;
            flow.round_trip.forget_backoff();
        } else {
            add_blocks(flow, ack);
        }
    }

    fn next_open(&self, flow: &Flow) -> Option<(u64, u64)> {
        let mut window = flow.window.bytes();
        if self.duplicates > 0 {
            // Between the first duplicate and recovery only limited transmit sends.
            if flow.urgent == 0 {
                return None;
            }
            window += u64::from(self.duplicates) * flow.segment;
        }
        if flow.next + flow.segment > self.last_ack + window {
            return None;
        }
        flow.new_segment()
    }

    fn next_in_recovery(&mut self, flow: &Flow) -> Option<(u64, u64)> {
        let at = |start: u64| (start, (start + flow.segment).min(flow.highest_sent));
        if flow.urgent > 0 {
            self.retransmitted_to = flow.oldest + flow.segment;
            // This first one is not counted.
            self.pipe -= 1;
            self.waits_for_ack = true;
            return Some(at(flow.oldest));
        }
        if !self.has_room(flow) {
            return None;
        }
        let from = self.retransmitted_to.max(flow.oldest);
        let gap = flow.board.highest().and_then(|highest| flow.board.next_gap(from, highest));
        if let Some((start, _)) = gap {
            self.retransmitted_to = start + flow.segment;
            return Some(at(start));
        }
        flow.new_segment()
    }
}

impl LossRecovery for Ns2 {
    fn acknowledgement(&mut self, flow: &mut Flow, ack: &Acknowledgement, now: u64) -> Option<Event> {
        if let Some(point) = self.point {
            self.recover(flow, ack, point, now);
            return None;
        }
        let flight = flow.highest_sent - flow.oldest;
        let acked = ack.next.saturating_sub(flow.oldest);
        if acked > 0 {
            flow.advance(ack, now);
            flow.next = flow.next.max(flow.oldest);
            flow.board.clear();
            self.duplicates = 0;
            self.is_after_timeout = false;
            self.last_ack = ack.next;
            // Its window grows whatever holds the sender back.
            flow.grow(acked, flight, true, now);
        } else if ack.next == flow.oldest && !self.is_after_timeout && add_blocks(flow, ack) > 0 {
            self.duplicates += 1;
            if self.duplicates == DUPLICATE_THRESHOLD {
                return self.begin_recovery(flow, now).then_some(Event::Loss);
            }
            flow.urgent = u32::from(self.limited_transmit && self.duplicates < DUPLICATE_THRESHOLD);
        }
        None
    }

    fn time_out(&mut self, flow: &mut Flow, now: u64) {
        flow.window.on_timeout(&Timeout {
            now: Time::from_nanos(now),
            flight: allowed(flow),
            is_repeated: false,
        });
        self.point = None;
        flow.board.clear();
        self.duplicates = 0;
        flow.timed = None;
        self.retransmitted_to = 0;
        flow.next = flow.oldest;
        self.recover = flow.highest_sent;
        self.is_after_timeout = true;
        self.last_ack = flow.oldest;
    }

    fn next_segment(&mut self, flow: &mut Flow, _now: u64) -> Option<(u64, u64)> {
        let segment = if self.point.is_some() { self.next_in_recovery(flow) } else { self.next_open(flow) }?;
        self.pipe += 1;
        Some(segment)
    }

    /// Be there something to send or not.
    fn has_room(&self, flow: &Flow) -> bool {
        if self.point.is_some() {
            !self.waits_for_ack && self.pipe < (flow.window.bytes() / flow.segment) as i64
        } else {
            self.duplicates == 0 && flow.next + flow.segment <= self.last_ack + allowed(flow).get()
        }
    }

    fn give_up(&mut self) {
        self.point = None;
    }

    fn touch(&self) {
        black_box((self.point, self.duplicates));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::Sender;
    use super::*;
    use crate::ecn::EcnBits;
    use crate::model::Recovery;

    const SEGMENT: u64 = 1000;

    /// A sender that has set up its connection.
    fn sender(written: u64) -> Sender {
        let tcp = Tcp { segment: Bytes::new(SEGMENT), recovery: Recovery::Ns2Sack1, ..Tcp::DEPLOYED };
        let mut sender = Sender::new(&tcp, written, 0);
        sender.established(None, 0);
        sender
    }

    /// Everything before `next` has arrived, and this block.
    fn ack(next: u64, block: (u64, u64)) -> Acknowledgement {
        Acknowledgement {
            next,
            window: 100 * SEGMENT,
            blocks: [block, (0, 0), (0, 0)],
            echo: 0,
            ecn: EcnBits::default(),
            marked: 0,
        }
    }

    #[test]
    fn who_stops_after_a_time_out_sends_again_what_was_sent_and_nothing_else() {
        let mut sender = sender(100 * SEGMENT);
        let sent = std::iter::from_fn(|| sender.poll(0)).count() as u64;
        sender.timer(1_000_000);
        assert!(sender.poll(1_000_000).is_some_and(|segment| segment.is_retransmission));
        sender.stop();
        sender.acknowledgement(&ack(2 * SEGMENT, (0, 0)), 2_000_000);
        assert!(sender.poll(2_000_000).is_some_and(|segment| segment.is_retransmission));
        sender.acknowledgement(&ack(sent * SEGMENT, (0, 0)), 3_000_000);
        assert_eq!((sender.poll(3_000_000), sender.is_done()), (None, true));
    }

    #[test]
    fn a_short_segment_that_is_sent_again_ends_where_data_ends() {
        let mut sender = sender(0);
        for end in [100, 200, 300, 400] {
            sender.write_to(end);
            assert_eq!(sender.poll(0).map(|segment| segment.end), Some(end));
        }
        for end in [200, 300, 400] {
            sender.acknowledgement(&ack(0, (end - 100, end)), 1_000_000);
        }
        assert_eq!(sender.poll(1_000_000).map(|segment| (segment.start, segment.end)), Some((0, 400)));
        assert_eq!(sender.poll(1_000_000), None);
    }
}
