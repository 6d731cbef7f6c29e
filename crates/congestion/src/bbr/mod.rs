//! BBRv3 (draft-ietf-ccwg-bbr-06, July 2026): a rate and a window from a model of the path.
//!
//! The model is the most that the path delivered lately, the least round trip, and what losses say of how
//! much it holds. The states ask it in turn: for more bandwidth every two to three seconds, for the round
//! trip without a queue every five. Each rule names its section and its name in the draft; constants are in
//! `parameters`.
//!
//! `state`, `rounds`, `filters`, `full_pipe`, `short_term`, `losses`, `min_rtt`, `aggregation`, `cycle` and
//! `undo` keep numbers, and `flow` has one of each. What is done with them is in `model`, in `volume` and
//! `rate`, which make the window and the pacing rate, in `long_term`, in `spurious`, and in `startup`,
//! `probe_bw` and `probe_rtt`, the states.
//!
//! What is open in the draft, or otherwise here:
//! - It has volumes in bytes and compares one with round trips (`IsRenoCoexistenceProbeTime`): segments are
//!   meant (`T_reno` in section 5.3.3.8).
//! - `Inflight` has one argument in some places and two in others: the bandwidth is `BBR.max_bw` where the
//!   draft says so, and `BBR.bw` elsewhere.
//! - `lost_prefix` (section 5.5.10.2) can come out negative, where more was lost before a packet than is
//!   tolerated: then it is zero.
//! - A cycle in which nothing was measured does not move the filter of bandwidths, which would be empty.
//! - In Startup, losses in six acknowledgements of a round trip stand for six ranges (section 5.3.1.3): a
//!   driver tells of packets, and need not know where ranges begin.
//! - After a time-out everything that was in flight counts as lost, so that the window is a segment
//!   (`OnEnterRTO`, section 5.6.4.4).
//! - The state for an undo is saved when a recovery begins, as section 5.5.11.1 has it in words. By its code
//!   each round trip with losses would save it anew (`NoteLoss`), and an undo would bring back what the first
//!   one left. Losses outside of a recovery, which are marks, save it by the round trip. A time-out for the
//!   same segment again is of the recovery that the first one began.
//! - `C.has_selective_acks` is true: both drivers have them.
//! - The offload budget is TCP's, three quanta, for QUIC too: quinn hands packets over in trains as TCP does.
//! - The pacing rate is at least a segment a second, so that a path that stood still is asked again.
//! - A round trip without losses after a restart from idle needs no slow start: `on_idle` changes nothing
//!   (section 5.4.2).

mod aggregation;
mod chance;
mod cycle;
mod filters;
mod flow;
mod full_pipe;
mod long_term;
mod losses;
mod min_rtt;
mod model;
mod parameters;
mod probe_bw;
mod probe_rtt;
mod rate;
mod rounds;
mod short_term;
mod spurious;
mod startup;
mod state;
mod undo;
mod volume;

use anabranch_units::{Bytes, Rate, Time};

use crate::control::{Ack, Begin, Controller, Delivery, Loss, Pacing, Spurious, Timeout};
use crate::delivery_rate::LostPacket;
use aggregation::Aggregation;
pub use flow::Bbr;
use min_rtt::MinRtt;
pub use state::State;

impl Controller for Bbr {
    /// What an acknowledgement says is told as a delivery, also outside recovery.
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_loss(&mut self, loss: &Loss) {
        self.now = loss.now;
        self.save_state_upon_loss();
        self.enter_recovery();
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.now = timeout.now;
        if timeout.is_repeated {
            self.save_cwnd();
        } else {
            self.save_state_upon_loss();
        }
        self.enter_recovery();
        self.cwnd = self.segment;
    }

    fn on_idle(&mut self, _now: Time) {}

    /// `OnInit` (section 5.2.1) for the first, `HandleRestartFromIdle` (section 5.4.1) for the others.
    fn on_begin(&mut self, begin: &Begin) {
        self.now = begin.now;
        if !std::mem::replace(&mut self.has_begun, true) {
            self.min_rtt = MinRtt::new(begin.now, begin.srtt);
            self.aggregation = Aggregation::new(begin.now);
            self.init_pacing_rate(begin.srtt);
            return;
        }
        self.is_idle_restart = true;
        self.aggregation.restart(begin.now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done();
        }
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.now = lost.now;
        self.delivered = lost.total_delivered.get();
        self.handle_lost_packet(lost);
    }

    fn on_spurious(&mut self, spurious: &Spurious) {
        self.now = spurious.now;
        self.delivered = spurious.total_delivered.get();
        self.handle_spurious_loss_detection();
    }

    /// `UpdateOnACK` (section 5.2.3).
    fn on_delivery(&mut self, delivery: &Delivery) {
        let sample = &delivery.sample;
        self.now = delivery.now;
        self.delivered = sample.total_delivered.get();
        self.cycle.is_cwnd_limited = delivery.is_cwnd_limited;
        if !delivery.is_in_recovery && self.recovery_since.take().is_some() {
            self.restore_cwnd();
        }
        self.update_model_and_state(sample);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(sample);
    }

    fn pacing(&self) -> Option<Pacing> {
        Some(Pacing {
            rate: Rate::from_bps_f64(self.pacing_rate * 8.0),
            quantum: Bytes::from_f64(self.send_quantum()),
            is_held_back: self.state == State::ProbeRtt,
        })
    }

    fn cwnd(&self) -> Bytes {
        Bytes::from_f64(self.cwnd)
    }

    fn ssthresh(&self) -> Bytes {
        Bytes::MAX
    }
}
