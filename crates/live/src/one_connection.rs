//! The loss event rate as a single connection would see it (RFC 5348, sections 5.2 and 5.4): what is lost
//! within a round trip is one event.
//!
//! The receiver finds loss events in each of the virtual connections that a stream stands for. What a full
//! queue takes in a round trip is an event for each of them that loses something, and so for one connection's
//! share a much higher rate than one connection would have.

use anabranch_congestion::loss_history::LossHistory;
use anabranch_units::{Duration, Packets, Time};

use super::control::parameters;

/// The losses of a connection's datagrams, all taken together.
#[derive(Clone, Debug)]
pub(super) struct OneConnection {
    history: LossHistory,
    /// When the datagram left with which the last loss event began.
    began: Option<Time>,
}

impl Default for OneConnection {
    fn default() -> Self {
        let parameters = parameters(false);
        Self { history: LossHistory::new(parameters.intervals, parameters.discounting), began: None }
    }
}

impl OneConnection {
    /// The datagram `sequence` was lost, which left at `sent`. They are told in their order.
    pub(super) fn lost(&mut self, sequence: u64, sent: Time, rtt: Duration) {
        if self.began.is_some_and(|began| sent <= began + rtt) {
            return;
        }
        self.began = Some(sent);
        if self.history.is_empty() {
            // All before the first loss is what the path bore.
            self.history.begin(sequence, Packets::new(sequence).as_f64());
        } else {
            self.history.event(sequence);
        }
    }

    /// The datagram `sequence` has arrived, or is known to be lost.
    pub(super) fn reached(&mut self, sequence: u64) {
        self.history.advance(sequence);
    }

    /// The loss event rate; `None` before the first loss.
    pub(super) fn loss_event_rate(&self) -> Option<f64> {
        self.history.mean_interval().map(f64::recip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A datagram in 10 ms; of each hundred the first `lost` of every second one are lost.
    fn rate(lost: u64) -> f64 {
        let mut one = OneConnection::default();
        for sequence in 100..2000 {
            if sequence % 2 == 0 && sequence % 100 < 2 * lost {
                one.lost(sequence, Time::ZERO + Duration::from_millis(10 * sequence), RTT);
            }
            one.reached(sequence);
        }
        one.loss_event_rate().unwrap_or(0.0)
    }

    #[test]
    fn what_is_lost_in_a_round_trip_is_one_event() {
        assert!((rate(1) - 0.01).abs() < 1e-9, "{}", rate(1));
        assert_eq!((rate(5), rate(0)), (rate(1), 0.0));
        // Thirteen lost over 240 ms are three events in a hundred datagrams, at 0, 120 and 240 ms; the last
        // intervals weigh most.
        assert!((0.02..0.04).contains(&rate(13)), "{}", rate(13));
    }
}
