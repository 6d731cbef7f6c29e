//! The congestion window of a sender, and who decides it.

use std::hint::black_box;

use anabranch_congestion::control::{
    Ack, Begin, Controller, Delivery, Feedback, Loss, Pacing, Spurious, Start, Timeout,
};
use anabranch_congestion::delivery_rate::LostPacket;
use anabranch_congestion::tfwc::{Tfwc, Tuning};
use anabranch_units::{Bytes, Time};

use super::receiver::NO_LIMIT;
use crate::model::{Congestion, Tcp};

/// How a flow's window begins; `seed`: of its controller's random numbers.
pub(crate) fn start(tcp: &Tcp, seed: u64) -> Start {
    Start {
        segment: tcp.segment,
        initial_window: tcp.initial_window * tcp.segment,
        initial_ssthresh: tcp.initial_ssthresh.map(|window| window * tcp.segment),
        seed,
    }
}

/// The window. Every segment asks for it, so it is kept as its owner answered last.
#[derive(Debug)]
pub(super) struct Window {
    bytes: u64,
    owner: Owner,
}

/// Who decides the window.
#[derive(Debug)]
enum Owner {
    /// A controller of the flow's own.
    Controller(Box<dyn Controller>),
    /// The same, where a player's buffer tunes it.
    Tunable(Box<Tfwc>),
    /// A group, which grants bytes instead of a window and hears of everything by notes; the threshold is
    /// that of a flow that begins.
    Group { ssthresh: Bytes },
}

impl Window {
    /// That of a flow that begins.
    pub(super) fn new(tcp: &Tcp, seed: u64) -> Self {
        let start = start(tcp, seed);
        match tcp.congestion {
            algorithm if tcp.share.is_some() => {
                let ssthresh = algorithm.controller(&start).ssthresh();
                Self { bytes: NO_LIMIT, owner: Owner::Group { ssthresh } }
            }
            Congestion::Tfwc(parameters) if tcp.tuning.is_some() => {
                let controller = Box::new(Tfwc::new(&start, parameters));
                Self { bytes: controller.cwnd().get(), owner: Owner::Tunable(controller) }
            }
            algorithm => Self::of(algorithm.controller(&start)),
        }
    }

    /// That of a controller.
    pub(super) fn of(controller: Box<dyn Controller>) -> Self {
        Self { bytes: controller.cwnd().get(), owner: Owner::Controller(controller) }
    }

    /// How much may be on its way.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The slow start threshold.
    pub(super) fn ssthresh(&self) -> Bytes {
        match &self.owner {
            Owner::Controller(controller) => controller.ssthresh(),
            Owner::Tunable(controller) => controller.ssthresh(),
            Owner::Group { ssthresh } => *ssthresh,
        }
    }

    /// How packets leave, where the controller is paced.
    pub(super) fn pacing(&self) -> Option<Pacing> {
        match &self.owner {
            Owner::Controller(controller) => controller.pacing(),
            Owner::Tunable(_) | Owner::Group { .. } => None,
        }
    }

    /// Whether a controller of the flow's own decides it.
    pub(super) fn is_own(&self) -> bool {
        !matches!(self.owner, Owner::Group { .. })
    }

    /// How smooth or fast the controller is to be from now on, where the window can be tuned.
    pub(super) fn tune(&mut self, tuning: Tuning) {
        if let Owner::Tunable(controller) = &mut self.owner {
            controller.set_tuning(tuning);
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.tell(|controller| controller.on_ack(ack));
    }

    pub(super) fn on_loss(&mut self, loss: &Loss) {
        self.tell(|controller| controller.on_loss(loss));
    }

    pub(super) fn on_feedback(&mut self, feedback: &Feedback) {
        self.tell(|controller| controller.on_feedback(feedback));
    }

    pub(super) fn on_marks(&mut self, marks: &Loss) {
        self.tell(|controller| controller.on_marks(marks));
    }

    pub(super) fn on_timeout(&mut self, timeout: &Timeout) {
        self.tell(|controller| controller.on_timeout(timeout));
    }

    pub(super) fn on_idle(&mut self, now: Time) {
        self.tell(|controller| controller.on_idle(now));
    }

    pub(super) fn on_begin(&mut self, begin: &Begin) {
        self.tell(|controller| controller.on_begin(begin));
    }

    pub(super) fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.tell(|controller| controller.on_packet_lost(lost));
    }

    pub(super) fn on_spurious(&mut self, spurious: &Spurious) {
        self.tell(|controller| controller.on_spurious(spurious));
    }

    pub(super) fn on_delivery(&mut self, delivery: &Delivery) {
        self.tell(|controller| controller.on_delivery(delivery));
    }

    /// Tells the flow's own controller, and asks for its window.
    fn tell(&mut self, what: impl FnOnce(&mut dyn Controller)) {
        let controller: &mut dyn Controller = match &mut self.owner {
            Owner::Controller(controller) => controller.as_mut(),
            Owner::Tunable(controller) => controller.as_mut(),
            Owner::Group { .. } => return,
        };
        what(controller);
        self.bytes = controller.cwnd().get();
    }

    /// Reads of what every acknowledgement needs, a line of the processor's memory each.
    pub(super) fn touch(&self) {
        if let Owner::Controller(controller) = &self.owner {
            black_box(controller.cwnd());
        }
    }
}
