//! The pacing rate and the send quantum (sections 5.6.2 and 5.6.3).

use anabranch_units::Duration;

use super::flow::Bbr;
use super::parameters::{LARGEST_QUANTUM, PACING_MARGIN};

/// The round trip of a flow that has measured none (`InitPacingRate`).
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// The highest rate in bytes per second: far beyond any link, and its bits have room in 64 bits.
const HIGHEST_RATE: f64 = 1e15;

impl Bbr {
    /// `InitPacingRate`.
    pub(super) fn init_pacing_rate(&mut self, srtt: Duration) {
        let rtt = if srtt.is_zero() { NOMINAL_RTT } else { srtt };
        self.pacing_rate = self.bounded(self.state.pacing_gain() * self.initial_window / rtt.as_secs_f64());
    }

    /// `SetPacingRateWithGain`.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.bounded(gain * self.bandwidth * PACING_MARGIN);
        if self.full_pipe.was_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn bounded(&self, rate: f64) -> f64 {
        rate.clamp(self.segment.min(HIGHEST_RATE), HIGHEST_RATE)
    }

    /// `SetSendQuantum`, in bytes.
    pub(super) fn send_quantum(&self) -> f64 {
        (self.pacing_rate * 0.001).min(LARGEST_QUANTUM).max(2.0 * self.segment)
    }
}
