//! The window of ns-2's TCP (`opencwnd` and `slowdown` in its `tcp.cc`, version 2.35, defaults).

use anabranch_congestion::control::{Ack, Controller, Loss, Start, Timeout};
use anabranch_units::{Bytes, Time};

/// Reno as ns-2 has it, counted in segments. Where windows are small it is not RFC 5681: a loss event halves
/// the window without a floor, from three segments to one and a half, of which the sender uses one;
/// `ssthresh` is cut off to whole segments, and alone has a floor of two.
#[derive(Clone, Debug)]
pub(super) struct Reno {
    segment: f64,
    cwnd: f64,
    ssthresh: f64,
}

impl Reno {
    pub(super) fn new(start: &Start) -> Self {
        let segment = start.segment.as_f64();
        Self {
            segment,
            cwnd: start.initial_window.as_f64() / segment,
            ssthresh: start.initial_ssthresh.map_or(f64::INFINITY, |bytes| bytes.as_f64() / segment),
        }
    }

    /// Half of what the window and the receiver allowed. Its driver passes that in place of what is in
    /// flight.
    fn halve(&mut self, allowed: Bytes) -> f64 {
        let half = allowed.as_f64() / self.segment / 2.0;
        self.ssthresh = half.trunc().max(2.0);
        half
    }
}

impl Controller for Reno {
    /// The same for every acknowledgement of something new, however much it is, and whatever held the sender
    /// back.
    fn on_ack(&mut self, _ack: &Ack) {
        self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cwnd = self.halve(loss.flight);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.halve(timeout.flight);
        self.cwnd = 1.0;
    }

    /// ns-2's `Sack1` does not look whether it was idle.
    fn on_idle(&mut self, _now: Time) {}

    fn cwnd(&self) -> Bytes {
        Bytes::from_f64(self.cwnd * self.segment)
    }

    fn ssthresh(&self) -> Bytes {
        Bytes::from_f64(self.ssthresh * self.segment)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Duration;

    use super::*;

    fn window(segments: u64) -> Reno {
        Reno::new(&Start {
            segment: Bytes::new(1000),
            initial_window: Bytes::new(segments * 1000),
            initial_ssthresh: None,
            seed: 0,
        })
    }

    fn loss(segments: u64) -> Loss {
        Loss { now: Time::ZERO, flight: Bytes::new(segments * 1000) }
    }

    #[test]
    fn small_windows_are_halved_below_two_segments_and_the_threshold_is_whole() {
        let mut window = window(3);
        window.on_loss(&loss(3));
        assert_eq!((window.cwnd(), window.ssthresh()), (Bytes::new(1500), Bytes::new(2000)));
        window.on_loss(&loss(7));
        assert_eq!((window.cwnd(), window.ssthresh()), (Bytes::new(3500), Bytes::new(3000)));
        window.on_timeout(&Timeout { now: Time::ZERO, flight: Bytes::new(9000), is_repeated: false });
        assert_eq!((window.cwnd(), window.ssthresh()), (Bytes::new(1000), Bytes::new(4000)));
    }

    #[test]
    fn it_grows_by_acknowledgements_even_where_the_receiver_holds_the_sender_back() {
        let mut window = window(2);
        let ack = Ack {
            now: Time::ZERO,
            acked: Bytes::new(2000),
            flight: Bytes::new(2000),
            rtt: None,
            srtt: Duration::ZERO,
            is_cwnd_limited: false,
        };
        window.on_ack(&ack);
        assert_eq!(window.cwnd(), Bytes::new(3000));
        window.on_loss(&loss(8));
        window.on_ack(&ack);
        assert_eq!(window.cwnd(), Bytes::new(4250));
    }
}
