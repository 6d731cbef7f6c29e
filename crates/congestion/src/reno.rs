//! Reno, the standard window control (RFC 5681).

use units::{Bytes, Time};

use crate::control::{Ack, Controller, Loss, Start, Timeout};

/// Reno: slow start, congestion avoidance, half the window at a loss event (RFC 5681, section 3). The window is counted in
/// fractions of a byte, so that congestion avoidance adds what equation 3 says at every acknowledgement, however small.
#[derive(Clone, Debug)]
pub struct Reno {
    segment: f64,
    restart_window: f64,
    cwnd: f64,
    ssthresh: f64,
}

impl Reno {
    /// A flow that begins.
    pub fn new(start: &Start) -> Self {
        let initial = start.initial_window.as_f64();
        Self {
            segment: start.segment.as_f64(),
            restart_window: initial,
            cwnd: initial,
            ssthresh: start.initial_ssthresh.map_or(f64::INFINITY, Bytes::as_f64),
        }
    }

    /// Half of what was in flight, two segments at least (RFC 5681, equation 4). A window that is full is the flight and a
    /// part of a segment more; half of that part counts as well.
    fn half(&self, flight: Bytes) -> f64 {
        (self.cwnd.min(flight.as_f64() + self.segment) / 2.0).max(2.0 * self.segment)
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.is_cwnd_limited {
            return;
        }
        if self.cwnd < self.ssthresh {
            // Equation 2: at most one segment for each acknowledgement.
            self.cwnd += ack.acked.as_f64().min(self.segment);
        } else {
            self.cwnd += self.segment * self.segment / self.cwnd;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.ssthresh = self.half(loss.flight);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        if !timeout.is_repeated {
            self.ssthresh = self.half(timeout.flight);
        }
        self.cwnd = self.segment;
    }

    fn on_idle(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.restart_window);
    }

    fn cwnd(&self) -> Bytes {
        Bytes::from_f64(self.cwnd)
    }

    fn ssthresh(&self) -> Bytes {
        Bytes::from_f64(self.ssthresh)
    }
}
