//! What is saved for a recovery, and taken back of one that was not needed (section 5.5.11).

use super::flow::Bbr;
use super::state::State;
use super::undo::Undo;

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
