//! TCP-friendly window control, and its tunable extension.
//!
//! TFWC (S.-H. Choi, M. Handley, "Fairer TCP-friendly congestion control protocol for multimedia streaming",
//! 2007) sets its window from the TCP equation and the mean of the last sixteen loss intervals. The window
//! falls little at a loss event, stays *flat* until the open interval is so long that it makes the mean
//! longer, and *increases* with it from there on. TTFWC (bachelor's thesis "Extending TFWC for multimedia
//! applications", chapter 3; its sections and equations are cited here) changes three things, by a tuning
//! parameter: a part of the distance to Reno's window is added where the increase begins (3.2), the
//! responsive mode averages eight intervals (3.3), and a window below two packets is Reno's (3.4). With a
//! tuning parameter of zero it is TFWC, save for the last one: TFWC sends by a timer there.
//!
//! Where the thesis leaves something open, or its listings (chapter 4) contradict its text:
//! - The weights of the intervals are those of RFC 5348, section 5.4. The thesis does not print its own; its
//!   listing's thresholds (0.81 and 0.72) and counts (6 and 3) belong to other weights, such as
//!   [`Weights::Geometric`](crate::loss_history::Weights). The threshold of equation (3.1) follows from the
//!   weights here.
//! - A loss interval goes from the first lost packet of a loss event to that of the next one, as the equation
//!   wants it. The listing does not count what is acknowledged during recovery.
//! - The window moves to what is added at the beginning of the increasing period by one packet for each
//!   packet acknowledged, as the listing does: the line that would add it at once is never reached. No burst
//!   leaves.
//! - The distance to Reno's window is taken where the increase begins, as section 3.2 and figure 3.2 have it.
//!   The listing takes it at the loss event before, from half of Reno's window then, which is as far below
//!   the flat window as Reno's is above it later if Reno follows the figure. With [`Addition::Listing`] it is
//!   done so here.

mod buffer;
mod equation;
mod parameters;

use anabranch_units::{Bytes, Time};

use crate::control::{Ack, Controller, Loss, Start, Timeout};
use crate::loss_history::LossHistory;
pub use buffer::BufferRule;
pub use equation::{interval, window};
pub use parameters::{Addition, Parameters, Tuning, Update};

/// Below this window it is Reno, packets (section 3.4).
const RENO_BELOW: f64 = 2.0;

/// A period that is a whole number of packets may come out this much shorter, and must not end a packet
/// earlier.
const ROUNDING: f64 = 1e-6;

/// TFWC and TTFWC. Windows are in packets, fractions included, and so are intervals.
#[derive(Clone, Debug)]
pub struct Tfwc {
    parameters: Parameters,
    /// Bytes of a packet.
    segment: f64,
    restart_window: f64,
    cwnd: f64,
    ssthresh: f64,
    history: LossHistory,
    /// Bytes acknowledged, those in recoveries included: the place in the order of packets that the history
    /// counts in.
    acked: u64,
    /// What of it is assumed to be acknowledged in the recovery that runs.
    in_recovery: u64,
    /// Something was acknowledged since the last loss event.
    has_acked: bool,
    /// The window of the equation at the last loss event.
    base: f64,
    /// Length of the flat period.
    flat: f64,
    /// What Reno's window would be, from the middle of the flat period to its end; by the listings, to the
    /// next loss event.
    reno: f64,
    /// The middle of the flat period is over.
    is_past_middle: bool,
    /// What is added to the window of the equation in the increasing period (alpha), once that is known.
    addition: Option<f64>,
    /// Reno runs: before the first loss event, or because the equation gives less than two packets.
    is_reno: bool,
}

impl Tfwc {
    /// A flow that begins. A segment of no bytes counts as one byte, an initial window below a segment as one
    /// segment.
    pub fn new(start: &Start, parameters: Parameters) -> Self {
        let segment = start.segment.as_f64().max(1.0);
        let initial = (start.initial_window.as_f64() / segment).max(1.0);
        let ssthresh = start.initial_ssthresh.map_or(f64::INFINITY, |ssthresh| ssthresh.as_f64() / segment);
        Self {
            parameters,
            segment,
            restart_window: initial,
            cwnd: initial,
            ssthresh: ssthresh.max(RENO_BELOW),
            history: LossHistory::new(parameters.tuning.intervals(), None).with_weights(parameters.weights),
            acked: 0,
            in_recovery: 0,
            has_acked: true,
            base: initial,
            flat: 0.0,
            reno: initial,
            is_past_middle: false,
            addition: None,
            is_reno: true,
        }
    }

    /// The tuning parameter from now on. What the last loss event decided stays until the next one; intervals
    /// that the smooth mode does not know yet are awaited.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        if tuning == self.parameters.tuning {
            return;
        }
        self.parameters.tuning = tuning;
        self.history.set_intervals(tuning.intervals());
        self.flat = self.history.longer_from().unwrap_or(0.0);
    }

    /// The tuning parameter.
    pub fn tuning(&self) -> Tuning {
        self.parameters.tuning
    }

    /// The loss event rate p that the window follows; zero before the first loss event.
    pub fn loss_event_rate(&self) -> f64 {
        self.mean_interval().map_or(0.0, |packets| 1.0 / packets)
    }

    fn segments(&self, bytes: Bytes) -> f64 {
        bytes.as_f64() / self.segment
    }

    /// The place of the next packet in the order of packets.
    fn sequence(&self) -> u64 {
        self.acked / (self.segment as u64).max(1)
    }

    /// The mean loss interval, with the open one where that makes it longer.
    fn mean_interval(&self) -> Option<f64> {
        match self.parameters.update {
            Update::Accurate => self.history.mean_interval(),
            Update::Approximate => {
                let closed = self.history.mean_of_closed()?;
                // A sum that is whole may lie a bit above it.
                let packets_each = (self.history.weights_in_first() - 1e-6).ceil();
                let beyond = (self.history.open_packets() - self.flat).max(0.0);
                Some(closed + (beyond / packets_each).floor())
            }
        }
    }

    /// One acknowledgement after slow start, outside Reno.
    fn follow(&mut self, segments_acked: f64) {
        let open = self.history.open_packets();
        let is_flat = open <= self.flat + ROUNDING;
        if open >= self.flat / 2.0 && (is_flat || self.parameters.addition == Addition::Listing) {
            // Reno's sawtooth and the flat window enclose the same area when they cross in the middle of
            // the flat period (figure 3.2).
            if !std::mem::replace(&mut self.is_past_middle, true) {
                self.reno = self.base;
            }
            self.reno += segments_acked / self.reno;
        }
        if is_flat {
            return;
        }
        let distance = (self.reno - self.base).max(0.0);
        let addition = *self.addition.get_or_insert(self.parameters.tuning.share() * distance);
        if let Some(mean) = self.mean_interval() {
            let target = window(mean) + addition;
            self.cwnd = self.cwnd.max(target.min(self.cwnd + segments_acked));
        }
    }

    /// A loss event has ended an interval. Answers the window to go on with, which is not yet in force.
    fn loss_event(&mut self, flight: Bytes) -> f64 {
        let half = (self.cwnd.min(self.segments(flight) + 1.0) / 2.0).max(RENO_BELOW);
        let sequence = self.sequence();
        let is_first = self.history.is_empty();
        if is_first {
            self.history.begin(sequence, interval(half));
        } else {
            self.history.event(sequence);
        }
        self.flat = self.history.longer_from().unwrap_or(0.0);
        self.has_acked = false;
        let next = if is_first { half } else { window(self.history.mean_of_closed().unwrap_or(1.0)) };
        let was_reno = std::mem::replace(&mut self.is_reno, next < RENO_BELOW);
        let may_add = !is_first && !self.is_reno && !was_reno;
        self.addition = match self.parameters.addition {
            Addition::Text if may_add && self.fell_little(next) => None,
            Addition::Listing if may_add => Some(self.addition_at_loss(next)),
            Addition::Text | Addition::Listing => Some(0.0),
        };
        self.base = next.max(RENO_BELOW);
        self.is_past_middle = false;
        if self.parameters.addition == Addition::Text || !may_add {
            self.reno = self.base;
        }
        if self.is_reno && was_reno { half } else { self.base }
    }

    /// What a loss event adds to the window `next` that follows it, by the listings (figure 4.5, line 30, and
    /// figure 4.6).
    fn addition_at_loss(&mut self, next: f64) -> f64 {
        let before = self.addition.unwrap_or(0.0);
        if self.base > self.reno {
            return before;
        }
        self.reno /= 2.0;
        let left = next / (self.base - before).max(1.0);
        let tuning = self.parameters.tuning;
        let is_within = left < 1.0 && left > Addition::least_left(tuning);
        if is_within { tuning.share() * (next - self.reno).max(0.0) } else { 0.0 }
    }

    /// Whether the window falls no further than the newest interval alone can make it (equation 3.1).
    /// Otherwise losses came early, the flow has had more than Reno, and nothing is added in the next
    /// increasing period.
    fn fell_little(&self, next: f64) -> bool {
        1.0 - next / self.base < 1.0 / self.history.weights_in_first()
    }
}

impl Controller for Tfwc {
    fn on_ack(&mut self, ack: &Ack) {
        let segments_acked = self.segments(ack.acked);
        self.acked = self.acked.saturating_add(ack.acked.get());
        self.in_recovery = 0;
        self.has_acked |= !ack.acked.is_zero();
        self.history.advance(self.sequence());
        if !ack.is_cwnd_limited {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd += segments_acked.min(1.0);
        } else if self.is_reno {
            self.cwnd += segments_acked.min(self.cwnd) / self.cwnd;
        } else {
            self.follow(segments_acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.ssthresh = self.loss_event(loss.flight);
        self.cwnd = self.ssthresh;
        // Everything in flight will be acknowledged or sent again before the next acknowledgement is told.
        self.in_recovery = loss.flight.get();
        self.acked = self.acked.saturating_add(self.in_recovery);
    }

    /// A loss event (RFC 5348, section 3), and no recovery follows.
    fn on_marks(&mut self, marks: &Loss) {
        self.ssthresh = self.loss_event(marks.flight);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        // Reno's, with the equation's window as the threshold (section 4.1). What is still lost of a window
        // belongs to its loss event.
        if self.has_acked && !timeout.is_repeated {
            self.ssthresh = self.loss_event(timeout.flight);
        }
        // The rest of the recovery is told after all.
        self.acked = self.acked.saturating_sub(std::mem::take(&mut self.in_recovery));
        self.cwnd = 1.0;
    }

    fn on_idle(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.restart_window);
    }

    fn cwnd(&self) -> Bytes {
        Bytes::from_f64(self.cwnd * self.segment)
    }

    fn ssthresh(&self) -> Bytes {
        Bytes::from_f64(self.ssthresh * self.segment)
    }
}
