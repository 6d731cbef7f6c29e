//! Recovery as the RFCs have it: what may be sent (RFC 5681), and what is lost and sent again (RFC 6675).

mod next;

use std::collections::VecDeque;
use std::hint::black_box;

use anabranch_congestion::control::Timeout;
use anabranch_units::{Bytes, Time};

use super::flow::{Acknowledgement, Flow};
use super::grants::{Grants, Note};
use super::recovery::{DUPLICATE_THRESHOLD, Event, LossRecovery};
use crate::model::Tcp;

/// Where the recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is missing.
    Open,
    /// Lost segments are sent again until everything before `point` is acknowledged (RFC 6675, section 5).
    Recovery { point: u64, has_rescued: bool },
    /// After a time-out everything before `point` counts as lost unless it is SACKed (RFC 6675, section 5.1).
    Loss { point: u64 },
}

/// The rules of the RFCs, for a flow by itself or in a group.
#[derive(Debug)]
pub(super) struct Sack {
    phase: Phase,
    duplicates: u32,
    /// Whether it was the window that ended the last burst.
    is_cwnd_limited: bool,
    /// Everything without a SACK before it was sent again in this recovery.
    retransmitted_to: u64,
    /// How many bytes before `retransmitted_to` have neither an acknowledgement nor a SACK.
    retransmitted: u64,
    /// Everything without a SACK before it is lost.
    lost_below: u64,
    /// What was sent again and is lost again: it is sent before everything else.
    lost_again: VecDeque<(u64, u64)>,
    limited_transmit: bool,
    idle_restart: bool,
    /// Set where a group decides what may be sent.
    grants: Option<Box<Grants>>,
}

impl Sack {
    /// For a flow that begins.
    pub(super) fn new(tcp: &Tcp) -> Self {
        Self {
            phase: Phase::Open,
            duplicates: 0,
            is_cwnd_limited: false,
            retransmitted_to: 0,
            retransmitted: 0,
            lost_below: 0,
            lost_again: VecDeque::new(),
            limited_transmit: tcp.limited_transmit,
            idle_restart: tcp.idle_restart,
            grants: tcp.share.as_ref().map(|_| Box::default()),
        }
    }

    /// The flow's side of its group, if it is in one.
    pub(super) fn grants(&self) -> Option<&Grants> {
        self.grants.as_deref()
    }

    /// The same, to change it.
    pub(super) fn grants_mut(&mut self) -> Option<&mut Grants> {
        self.grants.as_deref_mut()
    }

    /// How much is on its way (RFC 6675, section 4, SetPipe).
    pub(super) fn pipe(&self, flow: &Flow) -> u64 {
        match self.phase {
            Phase::Recovery { .. } | Phase::Loss { .. } => {
                flow.board.missing_in(self.lost_below.max(flow.oldest), flow.next) + self.retransmitted
            }
            Phase::Open => flow.next - flow.oldest,
        }
    }

    /// How much could be sent now if it were allowed, in whole segments.
    pub(super) fn could_send(&self, flow: &Flow) -> u64 {
        let lost = match self.phase {
            Phase::Open => 0,
            // One more to rescue the end of what was sent.
            Phase::Recovery { .. } => self.missing_below(flow, self.lost_below) + flow.segment,
            Phase::Loss { point } => self.missing_below(flow, point),
        };
        let new = flow.written.min(flow.edge).saturating_sub(flow.next);
        (lost + new).div_ceil(flow.segment) * flow.segment
    }

    /// Lost and not sent again.
    fn missing_below(&self, flow: &Flow, limit: u64) -> u64 {
        let from = self.retransmitted_to.max(flow.oldest);
        if from < limit { flow.board.missing_in(from, limit) } else { 0 }
    }

    /// Bytes `[start, end)` have arrived: those of them that were sent again are on their way no more.
    fn arrived(&mut self, flow: &Flow, start: u64, end: u64) {
        let news = flow.board.missing_in(start, end.min(self.retransmitted_to));
        self.retransmitted = self.retransmitted.saturating_sub(news);
    }

    fn note(&mut self, note: Note) {
        if let Some(grants) = &mut self.grants {
            grants.note(note);
        }
    }

    /// Everything without a SACK from what was sent again to `end` is lost.
    fn note_lost(&mut self, flow: &mut Flow, end: u64, now: u64) {
        let (start, end) = (self.retransmitted_to.max(flow.oldest), end.min(flow.next));
        if start < end {
            self.note(Note::Lost(start, end));
            flow.lost(start, end, now);
        }
    }

    /// Takes in the SACK blocks; answers how many of their bytes are news.
    fn add_blocks(&mut self, flow: &mut Flow, ack: &Acknowledgement, now: u64) -> u64 {
        let mut sacked = 0;
        for (start, end) in ack.blocks {
            if start < end && start >= flow.oldest && end <= flow.next {
                self.arrived(flow, start, end);
                let added = flow.board.add(start, end);
                sacked += added;
                if added > 0 {
                    if let Some(grants) = &mut self.grants {
                        grants.acknowledged(end, now);
                    }
                    // Before a loss event the window stands still, and limited transmit alone sends.
                    if self.phase != Phase::Open {
                        self.note(Note::Acknowledged(start, end));
                    }
                    flow.arrived(start, end, now);
                }
            }
        }
        sacked
    }

    /// An acknowledgement with news beyond a gap. Answers whether a loss event begins.
    fn duplicate(&mut self, flow: &mut Flow, now: u64) -> bool {
        self.duplicates += 1;
        self.lost_below = flow.board.lost_below(flow.segment);
        let is_lost = self.lost_below > flow.oldest;
        if self.duplicates < DUPLICATE_THRESHOLD && !is_lost {
            flow.urgent = u32::from(self.limited_transmit);
            return false;
        }
        // What limited transmit sent does not count (RFC 5681, section 3.2, step 2).
        let extra = if self.limited_transmit { u64::from(self.duplicates - 1) * flow.segment } else { 0 };
        let flight = (flow.next - flow.oldest).saturating_sub(extra).max(flow.segment);
        flow.answer_loss(flight, now);
        self.phase = Phase::Recovery { point: flow.next, has_rescued: false };
        self.retransmitted_to = flow.oldest;
        self.retransmitted = 0;
        // Three duplicates make the first segment a lost one in any case.
        self.lost_below = self.lost_below.max(flow.oldest + 1);
        flow.board.ranges().for_each(|(start, end)| self.note(Note::Sacked(start, end)));
        self.note_lost(flow, self.lost_below.max(flow.oldest + flow.segment), now);
        flow.urgent = 1;
        flow.restart_timer(now);
        true
    }

    fn end_recovery(&mut self) {
        self.phase = Phase::Open;
        self.duplicates = 0;
        self.lost_again.clear();
    }

    /// Whether a segment may go. The first one of a recovery needs no credit, as it needs no window (RFC
    /// 6675, section 5, step 4.3).
    fn is_granted(&self, flow: &Flow) -> bool {
        self.grants().is_none_or(|grants| grants.allowance >= flow.segment) || flow.urgent > 0
    }

    fn fits(&self, flow: &Flow) -> bool {
        self.pipe(flow) + flow.segment <= flow.window.bytes()
    }

    /// What was sent again and is lost again is on its way no more, and has its time anew.
    fn note_lost_again(&mut self, flow: &mut Flow, now: u64) {
        for (start, end) in flow.lost_again(now) {
            if end <= self.retransmitted_to {
                self.retransmitted = self.retransmitted.saturating_sub(end - start);
                self.lost_again.push_back((start, end));
                flow.restart_timer(now);
            }
        }
    }

    /// What an acknowledgement changes. Answers what the window is reduced for.
    fn take_in(&mut self, flow: &mut Flow, ack: &Acknowledgement, now: u64) -> Option<Event> {
        let flight = flow.next - flow.oldest;
        let sacked = self.add_blocks(flow, ack, now);
        let acked = ack.next.saturating_sub(flow.oldest);
        if acked > 0 {
            self.arrived(flow, flow.oldest, ack.next);
            self.note(Note::Acknowledged(flow.oldest, ack.next));
            if let Some(grants) = &mut self.grants {
                grants.acknowledged(ack.next, now);
            }
            flow.arrived_to(ack, now);
            flow.advance(ack, now);
        }
        // Nothing is missing that was taken for lost, and what else is will be found by itself.
        if flow.takes_back(ack, now) && self.phase != Phase::Open {
            self.end_recovery();
        }
        let is_marked = acked > 0 && flow.hears_marks(ack, acked);
        match self.phase {
            Phase::Open if acked > 0 => {
                self.duplicates = 0;
                // It does not grow by what tells of marks (RFC 3168, section 6.1.2).
                if is_marked {
                    return flow.answer_marks(flight, now).then_some(Event::Marks);
                }
                flow.grow(acked, flight, self.is_cwnd_limited, now);
            }
            Phase::Open if sacked > 0 => return self.duplicate(flow, now).then_some(Event::Loss),
            Phase::Recovery { point, .. } => {
                if flow.oldest >= point {
                    self.end_recovery();
                } else {
                    self.lost_below = flow.board.lost_below(flow.segment).max(self.lost_below);
                    self.note_lost(flow, self.lost_below, now);
                }
            }
            Phase::Loss { point } if acked > 0 => {
                if flow.oldest >= point {
                    self.end_recovery();
                }
                self.is_cwnd_limited = true;
                flow.grow(acked, flight, true, now);
            }
            _ => {}
        }
        None
    }
}

impl LossRecovery for Sack {
    fn acknowledgement(&mut self, flow: &mut Flow, ack: &Acknowledgement, now: u64) -> Option<Event> {
        flow.check_app_limited();
        let event = self.take_in(flow, ack, now);
        if self.phase != Phase::Open {
            self.note_lost_again(flow, now);
        }
        flow.acknowledged(self.phase != Phase::Open, now);
        event
    }

    fn time_out(&mut self, flow: &mut Flow, now: u64) {
        let is_repeated =
            matches!(self.phase, Phase::Loss { .. }) && self.retransmitted_to <= flow.oldest + flow.segment;
        if let Some(grants) = &mut self.grants {
            grants.has_timed_out = true;
        }
        if !is_repeated {
            flow.recovery_begins();
        }
        flow.window.on_timeout(&Timeout {
            now: Time::from_nanos(now),
            flight: Bytes::new(flow.next - flow.oldest),
            is_repeated,
        });
        if let Some(marks) = &mut flow.marks {
            marks.reduced(flow.next);
        }
        flow.lost(flow.oldest, flow.next, now);
        self.phase = Phase::Loss { point: flow.next };
        self.retransmitted_to = flow.oldest;
        self.retransmitted = 0;
        self.lost_below = flow.next;
        self.lost_again.clear();
        self.duplicates = 0;
        flow.timed = None;
    }

    fn next_segment(&mut self, flow: &mut Flow, now: u64) -> Option<(u64, u64)> {
        if !self.is_granted(flow) {
            return None;
        }
        match self.phase {
            Phase::Open => self.next_open(flow, now),
            Phase::Recovery { point, has_rescued } => self.next_in_recovery(flow, point, has_rescued),
            Phase::Loss { point } => self.next_after_time_out(flow, point),
        }
    }

    fn has_room(&self, flow: &Flow) -> bool {
        self.fits(flow) && (self.phase != Phase::Open || flow.new_segment().is_some())
    }

    fn give_up(&mut self) {
        self.phase = Phase::Open;
    }

    fn touch(&self) {
        black_box((self.phase, self.duplicates));
    }
}
