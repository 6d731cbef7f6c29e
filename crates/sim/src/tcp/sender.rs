//! The sending half of a TCP connection: what may be sent (RFC 5681), what is sent again (RFC 6675), and when it gives up
//! waiting (RFC 6298). How large the window is, its controller says.

use std::hint::black_box;

use anabranch_congestion::control::{Ack, Controller, Loss, Start, Timeout};
use anabranch_units::{Bytes, Duration, Time};

use super::ns2::Ns2;
use super::receiver::NO_LIMIT;
use super::rto::RoundTrip;
use super::scoreboard::Scoreboard;
use super::share::Share;
use crate::model::{Congestion, Recovery, Tcp};

/// Duplicate acknowledgements that make a loss certain.
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

/// Where the sender stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before the set-up's answer.
    Closed,
    /// Nothing is missing.
    Open,
    /// Lost segments are sent again until everything before `point` is acknowledged (RFC 6675, section 5).
    Recovery { point: u64, has_rescued: bool },
    /// After a time-out everything before `point` counts as lost unless it is SACKed (RFC 6675, section 5.1).
    Loss { point: u64 },
}

/// An acknowledgement as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    /// Everything before it has arrived.
    pub next: u64,
    /// The receive window from there.
    pub window: u64,
    /// SACK blocks; empty ones are unused.
    pub blocks: [(u64, u64); 3],
    /// The timestamp that it echoes.
    pub echo: u32,
}

/// What happened to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Nothing,
    Loss,
    Timeout,
}

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
    pub(super) phase: Phase,
    /// Oldest byte without an acknowledgement, next byte to send for the first time, end of what the application wrote.
    pub(super) oldest: u64,
    pub(super) next: u64,
    pub(super) written: u64,
    /// Right edge of the receive window.
    pub(super) edge: u64,
    pub(super) segment: u64,
    pub(super) controller: Box<dyn Controller>,
    /// The controller's window in bytes.
    pub(super) cwnd: u64,
    /// Whether it was the window that ended the last burst.
    pub(super) is_cwnd_limited: bool,
    pub(super) board: Scoreboard,
    pub(super) duplicates: u32,
    /// Everything without a SACK before it was sent again in this recovery.
    pub(super) retransmitted_to: u64,
    /// How many bytes before `retransmitted_to` have neither an acknowledgement nor a SACK.
    retransmitted: u64,
    /// Everything without a SACK before it is lost.
    pub(super) lost_below: u64,
    pub(super) limited_transmit: bool,
    /// Segments that go out without the random delay.
    pub(super) urgent: u32,
    pub(super) round_trip: RoundTrip,
    pub(super) deadline: u64,
    pub(super) last_sent: u64,
    pub(super) idle_restart: bool,
    pub(super) timestamps: bool,
    /// Without timestamps: the segment that is timed ends here and was sent then.
    pub(super) timed: Option<(u64, u64)>,
    pub(super) measured: (u64, u64),
    pub(super) latest_rtt: Option<u64>,
    /// Set where recovery is ns-2's.
    pub(super) ns2: Option<Box<Ns2>>,
    /// Set where a group decides what may be sent.
    pub(super) share: Option<Box<Share>>,
}

impl Sender {
    pub(crate) fn new(tcp: &Tcp, written: u64) -> Self {
        let start = Start {
            segment: tcp.segment,
            initial_window: tcp.initial_window * tcp.segment,
            initial_ssthresh: tcp.initial_ssthresh.map(|window| window * tcp.segment),
        };
        let is_ns2 = tcp.recovery == Recovery::Ns2Sack1;
        let controller: Box<dyn Controller> = match tcp.congestion {
            Congestion::Reno if is_ns2 => Box::new(super::ns2::Window::new(&start)),
            algorithm => algorithm.controller(&start),
        };
        Self {
            phase: Phase::Closed,
            oldest: 0,
            next: 0,
            written,
            edge: tcp.receive_window.map_or(NO_LIMIT, |window| window.get().min(NO_LIMIT)),
            segment: tcp.segment.get(),
            // A group's member sends what it is granted.
            cwnd: if tcp.share.is_some() { NO_LIMIT } else { controller.cwnd().get() },
            controller,
            is_cwnd_limited: false,
            board: Scoreboard::default(),
            duplicates: 0,
            retransmitted_to: 0,
            retransmitted: 0,
            lost_below: 0,
            // The group hears of every SACK, and grants as much.
            limited_transmit: tcp.limited_transmit && tcp.share.is_none(),
            urgent: 0,
            round_trip: RoundTrip::new(&tcp.rto, is_ns2),
            deadline: u64::MAX,
            last_sent: 0,
            idle_restart: tcp.idle_restart,
            timestamps: tcp.timestamps,
            timed: None,
            measured: (0, 0),
            latest_rtt: None,
            ns2: is_ns2.then(Box::default),
            share: tcp.share.as_ref().map(|_| Box::default()),
        }
    }

    /// The first packet of the set-up leaves; it is sent again at the deadline.
    pub(crate) fn set_up_begins(&mut self, now: u64) {
        self.deadline = now.saturating_add(self.round_trip.timeout());
    }

    /// The set-up is done; `sent`: when the packet left that was answered now, if it left only once.
    pub(crate) fn established(&mut self, sent: Option<u64>, now: u64) {
        if self.phase != Phase::Closed {
            return;
        }
        self.phase = Phase::Open;
        self.deadline = u64::MAX;
        self.last_sent = now;
        self.round_trip.forget_backoff();
        if let Some(sent) = sent {
            self.measure(sent, now);
        }
    }

    pub(crate) fn is_established(&self) -> bool {
        self.phase != Phase::Closed
    }

    /// The application has written everything before `end`.
    pub(crate) fn write_to(&mut self, end: u64) {
        self.written = end;
    }

    /// Nothing new is sent any more.
    pub(crate) fn stop(&mut self) {
        self.written = self.next;
    }

    /// Everything stops at once, acknowledged or not.
    pub(crate) fn abort(&mut self) {
        self.written = self.oldest;
        self.next = self.oldest;
        self.phase = Phase::Closed;
        self.board.clear();
        self.deadline = u64::MAX;
    }

    /// How smooth or fast its controller is to be from now on.
    pub(crate) fn tune(&mut self, tuning: anabranch_congestion::tfwc::Tuning) {
        self.controller.tune(tuning);
    }

    pub(crate) fn cwnd(&self) -> u64 {
        self.share.as_ref().map_or(self.cwnd, |share| share.window(self.pipe()))
    }

    pub(crate) fn ssthresh(&self) -> Bytes {
        self.controller.ssthresh()
    }

    pub(crate) fn srtt(&self) -> u64 {
        self.round_trip.srtt()
    }

    /// Sum and number of the round trips measured.
    pub(crate) fn measured(&self) -> (u64, u64) {
        self.measured
    }

    /// When [`Sender::timer`] has to be called, [`u64::MAX`]: not at all.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Whether the next segment goes out without the random delay.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// Reads of what every acknowledgement needs, a line of the processor's memory each.
    #[inline]
    pub(crate) fn touch(&self) {
        black_box((self.phase, self.cwnd, self.duplicates, self.edge, self.deadline));
        black_box((self.controller.cwnd(), self.board.highest(), self.round_trip.srtt(), self.measured));
    }

    fn measure(&mut self, sent: u64, now: u64) {
        // Only a measurement ends the back-off (RFC 6298, section 5.7, and Karn's algorithm).
        self.round_trip.measured(sent, now);
        self.round_trip.forget_backoff();
        self.latest_rtt = Some(now - sent);
        self.measured.0 += now - sent;
        self.measured.1 += 1;
    }

    /// An acknowledgement arrives.
    pub(crate) fn acknowledgement(&mut self, ack: &Acknowledgement, now: u64) -> Event {
        if ack.next > self.highest_sent() || self.phase == Phase::Closed {
            return Event::Nothing;
        }
        // Acknowledgements come in the order in which they were sent.
        self.edge = ack.next.saturating_add(ack.window);
        if self.ns2.is_some() {
            return self.ns2_acknowledgement(ack, now);
        }
        let flight = self.next - self.oldest;
        let mut sacked = 0;
        for (start, end) in ack.blocks {
            if start < end && start >= self.oldest && end <= self.next {
                let news = self.board.missing_in(start, end.min(self.retransmitted_to));
                self.retransmitted = self.retransmitted.saturating_sub(news);
                let added = self.board.add(start, end);
                sacked += added;
                if added > 0 {
                    self.note_acknowledged(start, end);
                }
            }
        }
        let acked = ack.next.saturating_sub(self.oldest);
        if acked > 0 {
            self.advance(ack, now);
        }
        match self.phase {
            Phase::Open if acked > 0 => {
                self.duplicates = 0;
                self.grow(acked, flight, now);
            }
            Phase::Open if sacked > 0 => return self.duplicate(now),
            Phase::Recovery { point, .. } => {
                if self.oldest >= point {
                    self.phase = Phase::Open;
                    self.duplicates = 0;
                } else {
                    self.lost_below = self.board.lost_below(self.segment).max(self.lost_below);
                    self.note_lost(self.lost_below);
                }
            }
            Phase::Loss { point } if acked > 0 => {
                if self.oldest >= point {
                    self.phase = Phase::Open;
                    self.duplicates = 0;
                }
                self.is_cwnd_limited = true;
                self.grow(acked, flight, now);
            }
            _ => {}
        }
        Event::Nothing
    }

    pub(super) fn advance(&mut self, ack: &Acknowledgement, now: u64) {
        let news = self.board.missing_in(self.oldest, ack.next.min(self.retransmitted_to));
        self.retransmitted = self.retransmitted.saturating_sub(news);
        self.note_acknowledged(self.oldest, ack.next);
        self.oldest = ack.next;
        self.board.acknowledged(ack.next);
        if self.timestamps {
            let rtt_micros = ((now / 1000) as u32).wrapping_sub(ack.echo);
            self.measure(now.saturating_sub(u64::from(rtt_micros) * 1000), now);
        } else if let Some((_, sent)) = self.timed.filter(|(end, _)| *end <= self.oldest) {
            self.timed = None;
            self.measure(sent, now);
        }
        self.deadline =
            if self.next > self.oldest { now.saturating_add(self.round_trip.timeout()) } else { u64::MAX };
    }

    pub(super) fn grow(&mut self, acked: u64, flight: u64, now: u64) {
        if self.share.is_some() {
            return;
        }
        self.controller.on_ack(&Ack {
            now: Time::from_nanos(now),
            acked: Bytes::new(acked),
            flight: Bytes::new(flight),
            rtt: self.latest_rtt.take().map(Duration::from_nanos),
            srtt: Duration::from_nanos(self.round_trip.srtt()),
            is_cwnd_limited: self.is_cwnd_limited,
        });
        self.cwnd = self.controller.cwnd().get();
    }

    /// An acknowledgement with news beyond a gap.
    fn duplicate(&mut self, now: u64) -> Event {
        self.duplicates += 1;
        self.lost_below = self.board.lost_below(self.segment);
        let is_lost = self.lost_below > self.oldest;
        if self.duplicates < DUPLICATE_THRESHOLD && !is_lost {
            self.urgent = u32::from(self.limited_transmit);
            return Event::Nothing;
        }
        // What limited transmit sent does not count (RFC 5681, section 3.2, step 2).
        let extra = if self.limited_transmit { u64::from(self.duplicates - 1) * self.segment } else { 0 };
        let flight = (self.next - self.oldest).saturating_sub(extra).max(self.segment);
        if self.share.is_none() {
            self.controller.on_loss(&Loss { now: Time::from_nanos(now), flight: Bytes::new(flight) });
            self.cwnd = self.controller.cwnd().get();
        }
        self.phase = Phase::Recovery { point: self.next, has_rescued: false };
        self.retransmitted_to = self.oldest;
        self.retransmitted = 0;
        // Three duplicates make the first segment a lost one in any case.
        self.lost_below = self.lost_below.max(self.oldest + 1);
        self.note_lost(self.lost_below.max(self.oldest + self.segment));
        self.urgent = 1;
        self.deadline = now.saturating_add(self.round_trip.timeout());
        Event::Loss
    }

    /// The deadline has come. Answers whether the set-up's packet has to be sent again, or [`Event::Timeout`].
    pub(crate) fn timer(&mut self, now: u64) -> Event {
        self.round_trip.back_off();
        self.deadline = now.saturating_add(self.round_trip.timeout());
        if self.phase == Phase::Closed {
            return Event::Timeout;
        }
        if self.ns2.is_some() {
            self.ns2_timeout(now);
            return Event::Timeout;
        }
        let is_repeated =
            matches!(self.phase, Phase::Loss { .. }) && self.retransmitted_to <= self.oldest + self.segment;
        if let Some(share) = &mut self.share {
            share.has_timed_out = true;
        } else {
            self.controller.on_timeout(&Timeout {
                now: Time::from_nanos(now),
                flight: Bytes::new(self.next - self.oldest),
                is_repeated,
            });
            self.cwnd = self.controller.cwnd().get();
        }
        self.phase = Phase::Loss { point: self.next };
        self.retransmitted_to = self.oldest;
        self.retransmitted = 0;
        self.lost_below = self.next;
        self.duplicates = 0;
        self.timed = None;
        Event::Timeout
    }

    /// End of what was ever sent.
    pub(super) fn highest_sent(&self) -> u64 {
        self.ns2.as_ref().map_or(self.next, |ns2| ns2.highest_sent.max(self.next))
    }

    /// How much is on its way (RFC 6675, section 4, SetPipe).
    pub(super) fn pipe(&self) -> u64 {
        match self.phase {
            Phase::Recovery { .. } | Phase::Loss { .. } => {
                self.board.missing_in(self.lost_below.max(self.oldest), self.next) + self.retransmitted
            }
            Phase::Open | Phase::Closed => self.next - self.oldest,
        }
    }

    /// The next segment that may be sent now.
    pub(crate) fn poll(&mut self, now: u64) -> Option<Segment> {
        let segment = match self.phase {
            Phase::Closed => None,
            _ if self.ns2.is_some() => self.ns2_poll(),
            _ if !self.is_granted() => None,
            Phase::Open => self.poll_open(now),
            Phase::Recovery { point, has_rescued } => self.poll_recovery(point, has_rescued),
            Phase::Loss { point } => self.poll_loss(point),
        };
        self.urgent = self.urgent.saturating_sub(1);
        let segment = segment?;
        if segment.is_retransmission {
            // What was sent twice is not timed (RFC 6298, section 3).
            self.timed = self.timed.filter(|(end, _)| *end <= segment.start);
        } else {
            self.next = segment.end;
            if !self.timestamps && self.timed.is_none() {
                self.timed = Some((segment.end, now));
            }
        }
        self.last_sent = now;
        if self.deadline == u64::MAX {
            self.deadline = now.saturating_add(self.round_trip.timeout());
        }
        Some(segment)
    }

    /// Whether the window has room for a segment.
    pub(crate) fn may_send(&self) -> bool {
        match self.phase {
            Phase::Closed => false,
            _ if self.ns2.is_some() => self.ns2_has_room(),
            _ if self.share.is_some() => self.share_has_room(),
            Phase::Open => self.pipe() + self.segment <= self.cwnd && self.new_segment().is_some(),
            Phase::Recovery { .. } | Phase::Loss { .. } => self.pipe() + self.segment <= self.cwnd,
        }
    }

    fn poll_open(&mut self, now: u64) -> Option<Segment> {
        let flight = self.next - self.oldest;
        if flight == 0
            && self.share.is_none()
            && self.idle_restart
            && now - self.last_sent > self.round_trip.timeout()
        {
            self.controller.on_idle(Time::from_nanos(now));
            self.cwnd = self.controller.cwnd().get();
        }
        let mut window = self.cwnd;
        if self.duplicates > 0 && self.limited_transmit {
            window += u64::from(self.duplicates.min(DUPLICATE_THRESHOLD - 1)) * self.segment;
        }
        if flight + self.segment > window && flight > 0 {
            self.is_cwnd_limited = true;
            return None;
        }
        self.is_cwnd_limited = false;
        self.new_segment()
    }

    pub(super) fn new_segment(&self) -> Option<Segment> {
        let wanted = (self.written - self.next).min(self.segment);
        let possible = self.edge.saturating_sub(self.next);
        // A receive window that cuts a segment short is waited for, unless nothing is on its way (RFC 9293, section 3.8.6.2).
        let length = if possible >= wanted {
            wanted
        } else if self.next == self.oldest {
            possible
        } else {
            0
        };
        let end = self.next + length;
        (length > 0).then_some(Segment { start: self.next, end, is_retransmission: false })
    }

    /// RFC 6675, section 4, NextSeg, and section 5, steps 4.3 and C.
    fn poll_recovery(&mut self, point: u64, has_rescued: bool) -> Option<Segment> {
        let is_first = self.retransmitted_to == self.oldest && self.urgent > 0;
        if !is_first && self.pipe() + self.segment > self.cwnd {
            return None;
        }
        let from = self.retransmitted_to.max(self.oldest);
        if let Some(segment) = self.retransmission(from, self.lost_below) {
            return Some(segment);
        }
        if let Some(segment) = self.new_segment() {
            return Some(segment);
        }
        if let Some(segment) = self.board.highest().and_then(|highest| self.retransmission(from, highest)) {
            return Some(segment);
        }
        let start = self.next.saturating_sub(self.segment).max(self.oldest);
        if !has_rescued && self.board.highest().is_none_or(|highest| highest <= start) {
            self.phase = Phase::Recovery { point, has_rescued: true };
            return Some(Segment { start, end: self.next, is_retransmission: true });
        }
        None
    }

    fn poll_loss(&mut self, point: u64) -> Option<Segment> {
        if self.pipe() + self.segment > self.cwnd {
            return None;
        }
        let from = self.retransmitted_to.max(self.oldest);
        self.retransmission(from, point).or_else(|| self.new_segment())
    }

    /// The first segment without a SACK from `from`, if it begins below `limit`.
    fn retransmission(&mut self, from: u64, limit: u64) -> Option<Segment> {
        let (start, gap_end) = self.board.next_gap(from, self.next).filter(|(start, _)| *start < limit)?;
        let end = gap_end.min(start + self.segment);
        self.retransmitted_to = end;
        self.retransmitted += end - start;
        Some(Segment { start, end, is_retransmission: true })
    }
}
