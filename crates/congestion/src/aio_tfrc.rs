//! AIO-TFRC: one connection instead of many, at n times the rate of one under TFRC, n not necessarily a whole number.
//!
//! Section IV.C of the paper of [`crate::multfrc`]; M. Chen, A. Zakhor, "AIO-TFRC: a light-weighted rate control scheme for
//! streaming over wireless" (WirelessCom 2005). The number n is controlled as MULTFRC does it; the rate is that of
//! [`tfrc::Sender`] times n; at the receiver the losses are those of virtual connections ([`tfrc::Filter`]). The receiver is
//! [`tfrc::Receiver`], and the contract with the driver is that of [`tfrc`].

use units::{Bytes, Duration, Rate, Time};

use crate::multfrc::{self, Controller, Decision};
use crate::tfrc::{self, Feedback, PacketInfo};

/// The sender of AIO-TFRC.
#[derive(Clone, Debug)]
pub struct Sender {
    tfrc: tfrc::Sender,
    controller: Controller,
}

impl Sender {
    /// A sender of packets of `packet_size` that stands for one connection at first.
    pub fn new(tfrc: tfrc::Parameters, control: multfrc::Parameters, packet_size: Bytes) -> Self {
        Self { tfrc: tfrc::Sender::new(tfrc, packet_size), controller: Controller::new(control) }
    }

    /// When the next packet may leave; it may be in the past.
    pub fn next_send(&self) -> Time {
        self.tfrc.next_send()
    }

    /// A packet leaves. `has_more` says whether further data waits.
    pub fn sent(&mut self, now: Time, has_more: bool) -> PacketInfo {
        self.tfrc.sent(now, has_more)
    }

    /// A report arrived. Answers with a decision if it completed an average of the round-trip time.
    pub fn feedback(&mut self, feedback: &Feedback, now: Time) -> Option<Decision> {
        let sample = self.tfrc.feedback(feedback, now)?;
        let decision = self.controller.rtt(now, sample)?;
        self.tfrc.set_flows(decision.target);
        Some(decision)
    }

    /// When [`Self::tick`] is to be called.
    pub fn deadline(&self) -> Time {
        self.tfrc.deadline()
    }

    /// The nofeedback timer ran out. Before the deadline it changes nothing.
    pub fn tick(&mut self, now: Time) {
        self.tfrc.tick(now);
    }

    /// The allowed rate of all that the sender stands for.
    pub fn allowed_rate(&self) -> Rate {
        self.tfrc.allowed_rate()
    }

    /// How many connections the sender stands for (n).
    pub fn flows(&self) -> f64 {
        self.tfrc.flows()
    }

    /// The smoothed round-trip time, once there was a report.
    pub fn rtt(&self) -> Option<Duration> {
        self.tfrc.rtt()
    }
}
