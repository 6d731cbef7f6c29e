//! The books of a sender, whatever the rules of its loss recovery: how far it has come, what the receiver
//! has, when it gives up waiting (RFC 6298).

use anabranch_congestion::control::{Ack, Feedback, Loss};
use anabranch_units::{Bytes, Duration, Time};

use super::marks::{Heard, Marks};
use super::paced::Paced;
use super::receiver::NO_LIMIT;
use super::rto::RoundTrip;
use super::scoreboard::Scoreboard;
use super::window::Window;
use crate::ecn::EcnBits;
use crate::model::Tcp;

/// An acknowledgement as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    /// Everything before it has arrived.
    pub next: u64,
    /// The receive window from there.
    pub window: u64,
    /// SACK blocks; empty ones are unused. The first may be a D-SACK.
    pub blocks: [(u64, u64); 3],
    /// The timestamp that it echoes.
    pub echo: u32,
    /// What it tells of marks.
    pub ecn: EcnBits,
    /// How many bytes came marked, where the receiver tells it.
    pub marked: u64,
}

impl Acknowledgement {
    /// What the receiver has had twice: the first block, where it is below what is acknowledged or within the
    /// second one (RFC 2883, section 4).
    pub(super) fn duplicate(&self) -> Option<(u64, u64)> {
        let [(start, end), (second_start, second_end), _] = self.blocks;
        let is_within_second = second_start <= start && end <= second_end;
        (start < end && (start < self.next || is_within_second)).then_some((start, end))
    }
}

/// The state of a flow at its sender. Positions are bytes, times nanoseconds.
#[derive(Debug)]
pub(super) struct Flow {
    /// Whether the set-up was answered.
    pub is_established: bool,
    /// Oldest byte without an acknowledgement.
    pub oldest: u64,
    /// Next byte to send, and end of everything ever sent: where rules go back to send again, the next byte
    /// is before that.
    pub next: u64,
    pub highest_sent: u64,
    /// End of what the application wrote.
    pub written: u64,
    /// Right edge of the receive window.
    pub edge: u64,
    pub segment: u64,
    pub window: Window,
    /// Where the window's controller is paced.
    pub paced: Option<Box<Paced>>,
    /// Where it knows marks.
    pub marks: Option<Box<Marks>>,
    pub board: Scoreboard,
    /// Segments that go out without the random delay.
    pub urgent: u32,
    pub round_trip: RoundTrip,
    pub deadline: u64,
    pub last_sent: u64,
    timestamps: bool,
    /// Without timestamps: the segment that is timed ends here and was sent then.
    pub timed: Option<(u64, u64)>,
    /// Sum and number of the round trips measured.
    pub measured: (u64, u64),
    /// Acknowledgements with which the window could grow.
    pub growths: u64,
    /// The one measured last, until somebody hears of it.
    pub latest_rtt: Option<u64>,
}

impl Flow {
    /// One that is not set up yet, and has so much to send.
    pub(super) fn new(tcp: &Tcp, written: u64, window: Window, round_trip: RoundTrip) -> Self {
        let paced = Paced::of(&window);
        Self {
            is_established: false,
            oldest: 0,
            next: 0,
            highest_sent: 0,
            written,
            edge: tcp.receive_window.map_or(NO_LIMIT, |window| window.get().min(NO_LIMIT)),
            segment: tcp.segment.get(),
            window,
            paced,
            marks: Marks::of(tcp),
            board: Scoreboard::default(),
            urgent: 0,
            round_trip,
            deadline: u64::MAX,
            last_sent: 0,
            timestamps: tcp.timestamps,
            timed: None,
            measured: (0, 0),
            growths: 0,
            latest_rtt: None,
        }
    }

    /// The retransmission timer begins anew.
    pub(super) fn restart_timer(&mut self, now: u64) {
        self.deadline = now.saturating_add(self.round_trip.timeout());
    }

    /// What was sent at `sent` was answered now.
    pub(super) fn measure(&mut self, sent: u64, now: u64) {
        // Only a measurement ends the back-off (RFC 6298, section 5.7, and Karn's algorithm).
        self.round_trip.measured(sent, now);
        self.round_trip.forget_backoff();
        self.latest_rtt = Some(now - sent);
        self.measured.0 += now - sent;
        self.measured.1 += 1;
    }

    /// Everything before what an acknowledgement names has arrived.
    pub(super) fn advance(&mut self, ack: &Acknowledgement, now: u64) {
        self.oldest = ack.next;
        self.board.acknowledged(ack.next);
        if self.timestamps {
            let rtt_micros = ((now / 1000) as u32).wrapping_sub(ack.echo);
            self.measure(now.saturating_sub(u64::from(rtt_micros) * 1000), now);
        } else if let Some((_, sent)) = self.timed.filter(|(end, _)| *end <= self.oldest) {
            self.timed = None;
            self.measure(sent, now);
        }
        if self.highest_sent > self.oldest {
            self.restart_timer(now);
        } else {
            self.deadline = u64::MAX;
        }
    }

    /// New data was acknowledged, and the window may grow.
    pub(super) fn grow(&mut self, acked: u64, flight: u64, is_cwnd_limited: bool, now: u64) {
        self.growths += 1;
        if !self.window.is_own() {
            return;
        }
        self.window.on_ack(&Ack {
            now: Time::from_nanos(now),
            acked: Bytes::new(acked),
            flight: Bytes::new(flight),
            rtt: self.latest_rtt.take().map(Duration::from_nanos),
            srtt: Duration::from_nanos(self.round_trip.srtt()),
            is_cwnd_limited,
        });
    }

    /// Whether an acknowledgement of `acked` new bytes, which has moved the flow on, tells of marks.
    #[inline]
    pub(super) fn hears_marks(&mut self, ack: &Acknowledgement, acked: u64) -> bool {
        let Some(marks) = &mut self.marks else { return false };
        let heard = marks.hears(ack.ecn.flag(), ack.marked);
        if let Heard::Bytes(marked) = heard {
            let (acked, flight) = (Bytes::new(acked), Bytes::new(self.next - self.oldest));
            self.window.on_feedback(&Feedback { acked, marked: Bytes::new(marked), flight });
        }
        heard.is_mark()
    }

    /// Packets were marked; `flight`: what was in flight before the acknowledgement that tells it. Answers
    /// whether the window is reduced for them.
    pub(super) fn answer_marks(&mut self, flight: u64, now: u64) -> bool {
        let Some(marks) = self.marks.as_mut().filter(|marks| marks.is_new(self.oldest)) else { return false };
        marks.reduced(self.next);
        self.window.on_marks(&Loss { now: Time::from_nanos(now), flight: Bytes::new(flight) });
        true
    }

    /// A loss event begins with `flight` in flight. The window stays where it was reduced for marks since the
    /// lost segment was sent.
    pub(super) fn answer_loss(&mut self, flight: u64, now: u64) {
        self.recovery_begins();
        if let Some(marks) = &mut self.marks {
            let is_new = marks.is_new_loss(self.oldest);
            marks.reduced(self.next);
            if !is_new {
                return;
            }
        }
        self.window.on_loss(&Loss { now: Time::from_nanos(now), flight: Bytes::new(flight) });
    }

    /// Bytes `[start, end)` have arrived beyond a gap.
    pub(super) fn arrived(&mut self, start: u64, end: u64, now: u64) {
        if let Some(paced) = &mut self.paced {
            paced.arrived(start, end, None, now);
        }
    }

    /// Everything before what an acknowledgement names has arrived, as [`Flow::advance`] is to hear as well.
    pub(super) fn arrived_to(&mut self, ack: &Acknowledgement, now: u64) {
        if let Some(paced) = &mut self.paced {
            paced.arrived(self.oldest, ack.next, self.timestamps.then_some(ack.echo), now);
        }
    }

    /// A recovery begins.
    pub(super) fn recovery_begins(&mut self) {
        if let Some(paced) = &mut self.paced {
            paced.recovery_begins();
        }
    }

    /// Whether the last recovery turns out with this acknowledgement not to have been needed; it has been
    /// taken in as far as it says what has arrived.
    pub(super) fn takes_back(&mut self, ack: &Acknowledgement, now: u64) -> bool {
        let Some(paced) = &mut self.paced else { return false };
        if let Some((start, end)) = ack.duplicate() {
            paced.duplicated(start, end);
        }
        paced.takes_back(now, &mut self.window)
    }

    /// Those of the bytes `[start, end)` are lost that have not arrived.
    pub(super) fn lost(&mut self, start: u64, end: u64, now: u64) {
        if let Some(paced) = &mut self.paced {
            paced.lost(start, end, now, &mut self.window);
        }
    }

    /// What was sent again and is lost again, as far as the books of a paced flow tell.
    pub(super) fn lost_again(&mut self, now: u64) -> Vec<(u64, u64)> {
        let Some(paced) = &mut self.paced else { return Vec::new() };
        paced.lost_again(now, &mut self.window)
    }

    /// An acknowledgement has been read.
    pub(super) fn acknowledged(&mut self, is_in_recovery: bool, now: u64) {
        if let Some(paced) = &mut self.paced {
            paced.acknowledged(is_in_recovery, now, &mut self.window);
        }
    }

    /// Something has happened that may let more be sent: whether it was the application that held the flow
    /// back until now.
    pub(super) fn check_app_limited(&mut self) {
        if let Some(paced) = &mut self.paced {
            paced.check_app_limited(self.next < self.written, &self.window);
        }
    }

    /// The next bytes that were never sent, as far as the receiver takes them.
    pub(super) fn new_segment(&self) -> Option<(u64, u64)> {
        let wanted = (self.written - self.next).min(self.segment);
        let possible = self.edge.saturating_sub(self.next);
        // A receive window that cuts a segment short is waited for, unless nothing is on its way (RFC 9293,
        // section 3.8.6.2).
        let length = if possible >= wanted {
            wanted
        } else if self.next == self.oldest {
            possible
        } else {
            0
        };
        (length > 0).then_some((self.next, self.next + length))
    }

    /// A segment leaves. Answers whether any of it was sent before.
    pub(super) fn sent(&mut self, start: u64, end: u64, now: u64) -> bool {
        let is_retransmission = start < self.highest_sent;
        if let Some(paced) = &mut self.paced {
            paced.sent(start, end, is_retransmission, now, &self.window);
        }
        if is_retransmission {
            // What was sent twice is not timed (RFC 6298, section 3).
            self.timed = self.timed.filter(|(end, _)| *end <= start);
        } else if !self.timestamps && self.timed.is_none() {
            self.timed = Some((end, now));
        }
        self.next = self.next.max(end);
        self.highest_sent = self.highest_sent.max(end);
        self.last_sent = now;
        if self.deadline == u64::MAX {
            self.restart_timer(now);
        }
        is_retransmission
    }
}
