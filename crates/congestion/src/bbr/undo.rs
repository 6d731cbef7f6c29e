//! What is taken back of a recovery that was not needed (section 5.5.11).

use super::flow::Bbr;
use super::state::State;

/// What the model was when the last recovery began (section 2.15). All bounds are zero before the first, and
/// an undo raises none.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the state that losses of this recovery ended.
    pub state: Option<State>,
    /// `BBR.undo_bw_shortterm` in bytes per second.
    bandwidth: f64,
    /// `BBR.undo_inflight_shortterm` in bytes.
    inflight: f64,
    /// `BBR.undo_inflight_longterm` in bytes.
    longterm_inflight: f64,
}

impl Bbr {
    /// `SaveStateUponLoss` (section 5.5.11.1).
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bandwidth: self.short_term.bandwidth,
            inflight: self.short_term.inflight,
            longterm_inflight: self.long_term.inflight,
        };
    }

    /// `HandleSpuriousLossDetection` (section 5.5.11.2). The recovery is over (section 5.6.4.4).
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.recovery_since = None;
        self.restore_cwnd();
        self.full_pipe.reset(0.0);
        self.short_term.undo(self.undo.bandwidth, self.undo.inflight);
        self.long_term.inflight = self.long_term.inflight.max(self.undo.longterm_inflight);
        let is_probing_rtt = self.state == State::ProbeRtt;
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.was_reached = false;
                if !is_probing_rtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBwUp) if self.state != State::ProbeBwUp && !is_probing_rtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}
