//! The sending half of a TCP connection: its set-up, its timer, and what leaves when. The rules of its
//! recovery say what is lost and what is sent; how large the window is, its controller says.

use std::hint::black_box;

use anabranch_congestion::tfwc::Tuning;
use anabranch_units::Bytes;

use super::flow::{Acknowledgement, Flow};
use super::grants::Note;
use super::recovery::{Event, LossRecovery};
use super::rules::Rules;
use crate::ecn::EcnBits;
use crate::model::Tcp;

/// A segment to send: bytes `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub start: u64,
    pub end: u64,
    pub is_retransmission: bool,
}

/// The state of the sending half. Times are in nanoseconds.
#[derive(Debug)]
pub(crate) struct Sender {
    flow: Flow,
    rules: Rules,
}

impl Sender {
    /// One that is not set up yet, and has so many bytes to send; `seed`: of its controller's random numbers.
    pub(crate) fn new(tcp: &Tcp, written: u64, seed: u64) -> Self {
        let (rules, window, round_trip) = Rules::of(tcp, seed);
        Self { flow: Flow::new(tcp, written, window, round_trip), rules }
    }

    /// The first packet of the set-up leaves; it is sent again at the deadline.
    pub(crate) fn set_up_begins(&mut self, now: u64) {
        self.flow.restart_timer(now);
    }

    /// The set-up is done; `sent`: when the packet left that was answered now, if it left only once.
    pub(crate) fn established(&mut self, sent: Option<u64>, now: u64) {
        let flow = &mut self.flow;
        if flow.is_established {
            return;
        }
        flow.is_established = true;
        flow.deadline = u64::MAX;
        flow.last_sent = now;
        flow.round_trip.forget_backoff();
        if let Some(sent) = sent {
            flow.measure(sent, now);
        }
    }

    pub(crate) fn is_established(&self) -> bool {
        self.flow.is_established
    }

    /// The application has written everything before `end`.
    pub(crate) fn write_to(&mut self, end: u64) {
        self.flow.check_app_limited();
        self.flow.written = end;
    }

    /// Nothing new is sent any more; what was sent may be sent again.
    pub(crate) fn stop(&mut self) {
        self.flow.written = self.flow.highest_sent;
    }

    /// Everything stops at once, acknowledged or not.
    pub(crate) fn abort(&mut self) {
        let flow = &mut self.flow;
        flow.written = flow.oldest;
        flow.next = flow.oldest;
        flow.highest_sent = flow.oldest;
        flow.is_established = false;
        flow.board.clear();
        flow.deadline = u64::MAX;
        if let Some(paced) = &mut flow.paced {
            paced.clear();
        }
        self.rules.give_up();
    }

    /// How smooth or fast its controller is to be from now on, where the model says that it is tuned.
    pub(crate) fn tune(&mut self, tuning: Tuning) {
        self.flow.window.tune(tuning);
    }

    /// The congestion window; in a group, what is on its way and granted.
    pub(crate) fn cwnd(&self) -> u64 {
        match self.rules.in_group() {
            Some((rules, grants)) => rules.pipe(&self.flow) + grants.allowance,
            None => self.flow.window.bytes(),
        }
    }

    pub(crate) fn ssthresh(&self) -> Bytes {
        self.flow.window.ssthresh()
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn segment(&self) -> u64 {
        self.flow.segment
    }

    pub(crate) fn srtt(&self) -> u64 {
        self.flow.round_trip.srtt()
    }

    /// Sum and number of the round trips measured.
    pub(crate) fn measured(&self) -> (u64, u64) {
        self.flow.measured
    }

    /// Acknowledgements with which the window could grow.
    pub(crate) fn growths(&self) -> u64 {
        self.flow.growths
    }

    /// Everything that was written has arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.flow.oldest >= self.flow.written
    }

    /// When [`Sender::timer`] has to be called, [`u64::MAX`]: not at all.
    pub(crate) fn deadline(&self) -> u64 {
        self.flow.deadline
    }

    /// Whether the next segment goes out without the random delay.
    pub(crate) fn is_urgent(&self) -> bool {
        self.flow.urgent > 0
    }

    /// Reads of what every acknowledgement needs, a line of the processor's memory each.
    #[inline]
    pub(crate) fn touch(&self) {
        let flow = &self.flow;
        black_box((flow.window.bytes(), flow.edge, flow.deadline));
        black_box((flow.board.highest(), flow.round_trip.srtt(), flow.measured));
        flow.window.touch();
        self.rules.touch();
    }

    /// An acknowledgement arrives. Answers what the window is reduced for.
    pub(crate) fn acknowledgement(&mut self, ack: &Acknowledgement, now: u64) -> Option<Event> {
        let flow = &mut self.flow;
        if ack.next > flow.highest_sent || !flow.is_established {
            return None;
        }
        // Acknowledgements come in the order in which they were sent.
        flow.edge = ack.next.saturating_add(ack.window);
        self.rules.acknowledgement(flow, ack, now)
    }

    /// The deadline has come. Before the set-up is done its packet has to be sent again.
    pub(crate) fn timer(&mut self, now: u64) {
        self.flow.check_app_limited();
        self.flow.round_trip.back_off();
        self.flow.restart_timer(now);
        if self.flow.is_established {
            self.rules.time_out(&mut self.flow, now);
        }
    }

    /// The next segment that may be sent now.
    pub(crate) fn poll(&mut self, now: u64) -> Option<Segment> {
        let flow = &mut self.flow;
        if flow.paced.is_some() && !self.may_depart(now) {
            return None;
        }
        let flow = &mut self.flow;
        let segment = if flow.is_established { self.rules.next_segment(flow, now) } else { None };
        flow.urgent = flow.urgent.saturating_sub(1);
        let (start, end) = segment?;
        let is_retransmission = flow.sent(start, end, now);
        if let Some(grants) = self.rules.grants_mut().filter(|_| !is_retransmission) {
            grants.sent(end, now);
        }
        Some(Segment { start, end, is_retransmission })
    }

    /// What a segment that leaves says of congestion.
    #[inline]
    pub(crate) fn ecn(&mut self, segment: &Segment) -> EcnBits {
        self.flow
            .marks
            .as_mut()
            .map_or(EcnBits::default(), |marks| marks.of_segment(segment.is_retransmission))
    }

    /// When a segment may leave that waits for its departure time.
    pub(crate) fn departure(&self) -> Option<u64> {
        self.flow.paced.as_ref()?.departure()
    }

    /// Whether the departure time of a segment has come, if there is one that the window has room for.
    fn may_depart(&mut self, now: u64) -> bool {
        let has_segment = self.flow.urgent > 0 || self.may_send();
        let flow = &mut self.flow;
        let Some(paced) = &mut flow.paced else { return true };
        if !paced.may_depart(now, has_segment && flow.is_established) {
            return false;
        }
        paced.before_sending(now, flow.round_trip.srtt(), &mut flow.window);
        true
    }

    /// Whether the window has room for a segment.
    pub(crate) fn may_send(&self) -> bool {
        self.flow.is_established && self.rules.has_room(&self.flow)
    }
}

/// In a group, which decides what may be sent.
impl Sender {
    /// Whether a group decides what may be sent.
    pub(crate) fn is_shared(&self) -> bool {
        self.rules.in_group().is_some()
    }

    /// What the group has to hear of.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        self.rules.grants_mut().map(|grants| grants.take_notes()).unwrap_or_default()
    }

    /// The round trip that the last acknowledgement measured, once.
    pub(crate) fn take_rtt(&mut self) -> Option<u64> {
        self.rules.grants_mut()?.take_rtt()
    }

    /// What the group lets it send now.
    pub(crate) fn set_allowance(&mut self, bytes: u64) {
        if let Some(grants) = self.rules.grants_mut() {
            grants.allowance = bytes;
        }
    }

    /// How much it could send now if it were allowed, in whole segments.
    pub(crate) fn could_send(&self) -> u64 {
        match self.rules.in_group() {
            Some((rules, _)) if self.flow.is_established => rules.could_send(&self.flow),
            _ => 0,
        }
    }
}
