//! Reno, the standard window control (RFC 5681), and MulTCP, which is Reno for N flows in one (J. Crowcroft,
//! P. Oechslin, "Differentiated end-to-end Internet services using a weighted proportional fair sharing TCP",
//! ACM CCR 28(3), 1998).

use anabranch_units::{Bytes, Time};

use crate::control::{Ack, Controller, Loss, Start, Timeout};

/// As many flows as one connection may stand for. More than this is never meant, and bounds the arithmetic.
pub const MOST_FLOWS: f64 = 10_000.0;

/// MulTCP. With N = 1 it is Reno. The window is counted in fractions of a byte, so that congestion avoidance
/// adds what equation 3 of RFC 5681 says at every acknowledgement, however small.
///
/// - Congestion avoidance: N segments more each round trip.
/// - A loss event: of N flows one loses, and halves its part of the window: 1 - 1/(2N) of the window stays (N
///   = 1: equation 4).
/// - Slow start: three segments for each acknowledgement until the window is what N flows would have after as
///   many round trips, then two. From the same beginning that is at 3^k = N 2^k times the initial window.
/// - A time-out: one segment, as Reno. The threshold is what a loss event leaves.
#[derive(Clone, Debug)]
pub struct MulTcp {
    flows: f64,
    segment: f64,
    restart_window: f64,
    /// Up to here slow start triples the window, bytes.
    triples_below: f64,
    cwnd: f64,
    ssthresh: f64,
}

impl MulTcp {
    /// Reno: a flow that begins, and counts for one.
    pub fn reno(start: &Start) -> Self {
        Self::new(start, 1.0)
    }

    /// A flow that begins and counts for `flows`, which need not be whole; less than one counts as one, and
    /// not-a-number too.
    pub fn new(start: &Start, flows: f64) -> Self {
        let initial = start.initial_window.as_f64();
        let mut multcp = Self {
            flows: 1.0,
            segment: start.segment.as_f64(),
            restart_window: initial,
            triples_below: 0.0,
            cwnd: initial,
            ssthresh: start.initial_ssthresh.map_or(f64::INFINITY, Bytes::as_f64),
        };
        multcp.set_flows(flows);
        multcp
    }

    /// For how many flows it counts from now on.
    pub fn set_flows(&mut self, flows: f64) {
        self.flows = if flows >= 1.0 { flows.min(MOST_FLOWS) } else { 1.0 };
        self.triples_below =
            if self.flows > 1.0 { self.restart_window * tripling_factor(self.flows) } else { 0.0 };
    }

    /// For how many flows it counts.
    pub fn flows(&self) -> f64 {
        self.flows
    }

    /// What a loss event leaves, two segments at least. A window that is full is the flight and a part of a
    /// segment more.
    fn reduced(&self, flight: Bytes) -> f64 {
        let full = self.cwnd.min(flight.as_f64() + self.segment);
        (full * (1.0 - 0.5 / self.flows)).max(2.0 * self.segment)
    }
}

/// How many times the initial window slow start triples up to, for so many flows: N 2^k = 3^k at k = ln N /
/// ln 1.5, and there the window is 3^k = N^(ln 3 / ln 1.5) of the initial one.
pub fn tripling_factor(flows: f64) -> f64 {
    libm::pow(flows, libm::log(3.0) / libm::log(1.5))
}

impl Controller for MulTcp {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.is_cwnd_limited {
            return;
        }
        if self.cwnd < self.ssthresh {
            // Equation 2: at most one segment for each acknowledgement.
            let acked = ack.acked.as_f64().min(self.segment);
            let is_tripling = self.cwnd < self.triples_below;
            self.cwnd += if is_tripling { 2.0 * acked } else { acked };
        } else {
            self.cwnd += self.flows * self.segment * self.segment / self.cwnd;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.ssthresh = self.reduced(loss.flight);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        if !timeout.is_repeated {
            self.ssthresh = self.reduced(timeout.flight);
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
