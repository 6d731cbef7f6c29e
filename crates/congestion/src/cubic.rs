//! CUBIC, the window control of most TCP senders (RFC 9438).

use anabranch_units::{Bytes, Duration, Time};

use crate::control::{Ack, Controller, Loss, Start, Timeout};

/// How aggressively the window grows, segments/s^3 (C, section 5.1).
const CUBIC_FACTOR: f64 = 0.4;
/// What remains of the window after a loss event (beta_cubic, section 4.6).
const DECREASE: f64 = 0.7;
/// Additive increase that, with [`DECREASE`], gives Reno's average window (alpha_cubic, section 4.3),
/// segments a round trip.
const FRIENDLY_INCREASE: f64 = 3.0 * (1.0 - DECREASE) / (1.0 + DECREASE);

/// CUBIC without HyStart++: slow start as Reno's, then a cubic function of the time since congestion
/// avoidance began.
///
/// Where the RFC adds to the window once for each acknowledgement, this adds once for each segment
/// acknowledged, as Linux does: delayed acknowledgements do not make it slower.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// Bytes of a segment. The windows below are in segments.
    segment: f64,
    restart_window: f64,
    cwnd: f64,
    ssthresh: f64,
    /// Where the window was before the last reduction, less with fast convergence (W_max); zero where nothing
    /// is known.
    plateau: f64,
    /// The window when ssthresh was set last (cwnd_prior).
    window_at_reduction: f64,
    epoch: Option<Epoch>,
    /// When it was told last that the connection was alive.
    last_event: Time,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began, later by all the time in which the application did not fill the window (section 5.8).
    start: Time,
    /// Seconds until the window is at the plateau (K).
    to_plateau: f64,
    /// What Reno's window would be, segments (W_est).
    friendly: f64,
}

impl Cubic {
    /// A flow that begins. A segment of no bytes counts as one byte, an initial window below a segment as one
    /// segment.
    pub fn new(start: &Start) -> Self {
        let segment = start.segment.as_f64().max(1.0);
        let initial = (start.initial_window.as_f64() / segment).max(1.0);
        Self {
            segment,
            restart_window: initial,
            cwnd: initial,
            ssthresh: start.initial_ssthresh.map_or(f64::INFINITY, |ssthresh| ssthresh.as_f64() / segment),
            plateau: 0.0,
            window_at_reduction: 0.0,
            epoch: None,
            last_event: Time::ZERO,
        }
    }

    /// The time since it was told of anything, counted once.
    fn since_last_event(&mut self, now: Time) -> Duration {
        let elapsed = now.since(self.last_event);
        self.last_event = self.last_event.max(now);
        elapsed
    }

    /// Congestion avoidance begins: after slow start or after recovery (sections 4.2, 4.8 and 4.10).
    fn begin_epoch(&mut self, now: Time) -> Epoch {
        self.plateau = self.plateau.max(self.cwnd);
        let to_plateau = libm::cbrt((self.plateau - self.cwnd) / CUBIC_FACTOR);
        Epoch { start: now, to_plateau, friendly: self.cwnd }
    }

    /// One acknowledgement in congestion avoidance (sections 4.2 to 4.5).
    fn grow(&mut self, ack: &Ack, segments_acked: f64) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(ack.now),
        };
        let increase = if epoch.friendly < self.window_at_reduction { FRIENDLY_INCREASE } else { 1.0 };
        epoch.friendly += increase * segments_acked / self.cwnd;
        let elapsed = ack.now.since(epoch.start);
        if self.cubic_window(&epoch, elapsed) < epoch.friendly {
            self.cwnd = self.cwnd.max(epoch.friendly);
        } else {
            let next = self.cubic_window(&epoch, elapsed + ack.srtt);
            let target = next.clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd = (self.cwnd + (target - self.cwnd) / self.cwnd * segments_acked).min(target);
        }
        self.epoch = Some(epoch);
    }

    /// W_cubic (section 4.2, equation 1), segments.
    fn cubic_window(&self, epoch: &Epoch, elapsed: Duration) -> f64 {
        let distance = elapsed.as_secs_f64() - epoch.to_plateau;
        CUBIC_FACTOR * distance * distance * distance + self.plateau
    }

    /// The window to go on with after a congestion event (section 4.6).
    fn reduce(&mut self, flight: Bytes) {
        self.window_at_reduction = self.cwnd;
        self.ssthresh = (flight.as_f64() / self.segment * DECREASE).max(2.0);
    }

    /// What every congestion event changes (sections 4.6 and 4.7), but for the window.
    fn congestion_event(&mut self, event: &Loss) {
        self.since_last_event(event.now);
        // Fast convergence (section 4.7): below the last plateau there is less room than before, so leave
        // more of it.
        let is_below = self.cwnd < self.plateau;
        self.plateau = if is_below { self.cwnd * (1.0 + DECREASE) / 2.0 } else { self.cwnd };
        self.reduce(event.flight);
        self.epoch = None;
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        let elapsed = self.since_last_event(ack.now);
        if !ack.is_cwnd_limited {
            if let Some(epoch) = &mut self.epoch {
                epoch.start += elapsed;
            }
            return;
        }
        let segments_acked = ack.acked.as_f64() / self.segment;
        if self.cwnd < self.ssthresh {
            self.epoch = None;
            self.cwnd += segments_acked.min(1.0);
        } else {
            self.grow(ack, segments_acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.congestion_event(loss);
        self.cwnd = self.ssthresh;
    }

    /// As at a loss, but down to one segment. The RFC has no other factor for marks, as RFC 8511 has.
    fn on_marks(&mut self, marks: &Loss) {
        self.congestion_event(marks);
        self.cwnd = (marks.flight.as_f64() / self.segment * DECREASE).clamp(1.0, self.ssthresh);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.since_last_event(timeout.now);
        if !timeout.is_repeated {
            self.reduce(timeout.flight);
        }
        // Section 4.8: after a time-out the plateau is where congestion avoidance begins.
        self.plateau = 0.0;
        self.cwnd = 1.0;
        self.epoch = None;
    }

    fn on_idle(&mut self, now: Time) {
        let elapsed = self.since_last_event(now);
        if let Some(epoch) = &mut self.epoch {
            epoch.start += elapsed;
        }
        self.cwnd = self.cwnd.min(self.restart_window);
    }

    fn cwnd(&self) -> Bytes {
        Bytes::from_f64(self.cwnd * self.segment)
    }

    fn ssthresh(&self) -> Bytes {
        Bytes::from_f64(self.ssthresh * self.segment)
    }
}
