//! Data Center TCP, whose window falls by as much as was marked (RFC 8257).

use anabranch_units::{Bytes, Time};

use crate::control::{Ack, Controller, Feedback, Loss, Start, Timeout};

/// Weight of the last round trip in the estimate of what is marked (g, section 4.2).
const GAIN: f64 = 1.0 / 16.0;
/// The estimate of a flow that begins: it answers its first mark as a loss (section 4.2).
const FIRST_ESTIMATE: f64 = 1.0;
/// What marks and losses leave of the window at least, segments (RFC 5681, equation 4).
const LEAST_SEGMENTS: f64 = 2.0;

/// DCTCP. Apart from marks it is Reno, which counts bytes: a segment more each round trip, however many
/// acknowledgements it has (RFC 3465).
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// Bytes, as all that follow but for `estimate`.
    segment: f64,
    restart_window: f64,
    cwnd: f64,
    ssthresh: f64,
    /// The part of what is sent that is marked (DCTCP.Alpha).
    estimate: f64,
    /// What was acknowledged in this observation window, and how much of it had been marked.
    acked: f64,
    marked: f64,
    /// The window ends when more than this has been acknowledged.
    left: f64,
}

impl Dctcp {
    /// A flow that begins. A segment of no bytes counts as one byte.
    pub fn new(start: &Start) -> Self {
        let segment = start.segment.as_f64().max(1.0);
        let initial = start.initial_window.as_f64().max(segment);
        Self {
            segment,
            restart_window: initial,
            cwnd: initial,
            ssthresh: start.initial_ssthresh.map_or(f64::INFINITY, Bytes::as_f64),
            estimate: FIRST_ESTIMATE,
            acked: 0.0,
            marked: 0.0,
            left: 0.0,
        }
    }

    /// The part of what is sent that is marked, as it has it.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// What a loss leaves.
    fn half(&self, flight: Bytes) -> f64 {
        let full = self.cwnd.min(flight.as_f64() + self.segment);
        (full / 2.0).max(LEAST_SEGMENTS * self.segment)
    }
}

impl Controller for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.is_cwnd_limited {
            return;
        }
        let acked = ack.acked.as_f64();
        self.cwnd += if self.cwnd < self.ssthresh {
            acked.min(self.segment)
        } else {
            self.segment * acked.min(self.cwnd) / self.cwnd
        };
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.ssthresh = self.half(loss.flight);
        self.cwnd = self.ssthresh;
    }

    /// Section 3.3, steps 1 to 7.
    fn on_feedback(&mut self, feedback: &Feedback) {
        self.acked += feedback.acked.as_f64();
        self.marked += feedback.marked.as_f64();
        self.left -= feedback.acked.as_f64();
        if self.left >= 0.0 || self.acked <= 0.0 {
            return;
        }
        let share = (self.marked / self.acked).min(1.0);
        self.estimate += GAIN * (share - self.estimate);
        self.left = feedback.flight.as_f64();
        (self.acked, self.marked) = (0.0, 0.0);
    }

    /// Section 3.3, step 8.
    fn on_marks(&mut self, _marks: &Loss) {
        self.cwnd = (self.cwnd * (1.0 - self.estimate / 2.0)).max(LEAST_SEGMENTS * self.segment);
        self.ssthresh = self.cwnd;
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

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    fn segments(count: u64) -> Bytes {
        Bytes::new(count * SEGMENT)
    }

    fn dctcp(window: u64) -> Dctcp {
        Dctcp::new(&Start {
            segment: segments(1),
            initial_window: segments(window),
            initial_ssthresh: Some(segments(window)),
            seed: 0,
        })
    }

    /// Round trips of so many segments, of each of which so many had been marked.
    fn round_trips(dctcp: &mut Dctcp, count: u32, window: u64, marked: u64) {
        for _ in 0..count {
            for number in 0..window {
                let marked = segments(u64::from(number < marked));
                dctcp.on_feedback(&Feedback { acked: segments(1), marked, flight: segments(window - 1) });
            }
        }
    }

    fn marks(window: u64) -> Loss {
        Loss { now: Time::ZERO, flight: segments(window) }
    }

    #[test]
    fn the_first_mark_halves_the_window_and_later_ones_take_half_of_the_marked_part() {
        let mut dctcp = dctcp(100);
        dctcp.on_marks(&marks(100));
        assert_eq!((dctcp.cwnd(), dctcp.ssthresh()), (segments(50), segments(50)));
        // A fifth is marked, until nothing is left of the beginning.
        round_trips(&mut dctcp, 200, 50, 10);
        assert!((dctcp.estimate() - 0.2).abs() < 1e-4, "{}", dctcp.estimate());
        dctcp.on_marks(&marks(50));
        assert!((dctcp.cwnd().as_f64() - 45_000.0).abs() < 10.0, "{}", dctcp.cwnd());
    }

    #[test]
    fn the_estimate_moves_by_a_sixteenth_each_round_trip() {
        let mut dctcp = dctcp(10);
        // The first observation window is that of the first acknowledgement alone.
        round_trips(&mut dctcp, 1, 1, 0);
        assert!((dctcp.estimate() - 15.0 / 16.0).abs() < 1e-9);
        let before = dctcp.estimate();
        round_trips(&mut dctcp, 1, 8, 0);
        assert!((dctcp.estimate() / before - 15.0 / 16.0).abs() < 1e-9, "{}", dctcp.estimate());
    }

    #[test]
    fn losses_are_answered_as_reno_does_and_the_window_keeps_two_segments() {
        let mut dctcp = dctcp(20);
        dctcp.on_loss(&marks(20));
        assert_eq!(dctcp.cwnd(), segments(10));
        (0..9).for_each(|_| dctcp.on_marks(&marks(2)));
        assert_eq!(dctcp.cwnd(), segments(2));
    }

    #[test]
    fn it_grows_by_a_segment_a_round_trip_however_many_acknowledgements_it_has() {
        for each in [1, 2, 5] {
            let mut dctcp = dctcp(50);
            for _ in 0..50 / each {
                dctcp.on_ack(&Ack {
                    now: Time::ZERO,
                    acked: segments(each),
                    flight: segments(50),
                    rtt: None,
                    srtt: anabranch_units::Duration::ZERO,
                    is_cwnd_limited: true,
                });
            }
            assert!((dctcp.cwnd().as_f64() / 51_000.0 - 1.0).abs() < 1e-3, "{each}: {}", dctcp.cwnd());
        }
    }
}
