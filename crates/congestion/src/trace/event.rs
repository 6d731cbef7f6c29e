//! An event of a trace, and what a controller answers.

use anabranch_units::{Bytes, Time};

use crate::control::{Ack, Controller, Loss, Timeout};

/// An event, and the windows after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What the controller was told.
    pub event: Event,
    /// What it answered.
    pub windows: Windows,
}

/// What a controller is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// An acknowledgement.
    Ack(Ack),
    /// A loss event.
    Loss(Loss),
    /// A time-out.
    Timeout(Timeout),
    /// Nothing was sent for long.
    Idle(Time),
}

/// What a controller answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The congestion window.
    pub cwnd: Bytes,
    /// The slow start threshold.
    pub ssthresh: Bytes,
}

impl Windows {
    /// Those of a controller now.
    pub fn of(controller: &dyn Controller) -> Self {
        Self { cwnd: controller.cwnd(), ssthresh: controller.ssthresh() }
    }
}

impl Event {
    /// Tells it to a controller.
    pub fn tell(&self, controller: &mut dyn Controller) {
        match self {
            Self::Ack(ack) => controller.on_ack(ack),
            Self::Loss(loss) => controller.on_loss(loss),
            Self::Timeout(timeout) => controller.on_timeout(timeout),
            Self::Idle(now) => controller.on_idle(*now),
        }
    }
}
