//! A connection under TFRC, and what it waits for.

use anabranch_congestion::tfrc::{Parameters, Receiver, Sender};
use anabranch_units::{Bytes, Time};

use crate::counted::FlowCounted;
use crate::model::FlowId;

/// A connection under TFRC that always has data to send. It may end and begin anew.
#[derive(Debug)]
pub(crate) struct Tfrc {
    pub flow: FlowId,
    /// Its place among the connections of the flow.
    pub connection: u32,
    /// The flow's place among those under TFRC.
    pub(in crate::network) group: u32,
    pub size: u32,
    pub sender: Sender,
    pub receiver: Receiver,
    pub sent: u64,
    pub arrived: u64,
    pub dropped: u64,
    pub lost: u64,
    /// Sum and number of the round trips measured at the sender.
    pub rtt: (u64, u64),
    /// How often it has begun. Packets of an earlier life are let pass.
    pub(in crate::network) life: u32,
    pub(in crate::network) loss_events_before: u64,
    pub(in crate::network) reports: u64,
    pub(in crate::network) data_path: u32,
    pub(in crate::network) feedback_path: u32,
    pub(in crate::network) is_running: bool,
    /// When each timer's event comes; [`u64::MAX`]: there is none. The deadline may be later by then.
    pub(in crate::network) timer_at: [u64; TIMERS.len()],
}

/// What a flow waits for; an event names it in its last bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum Timer {
    /// The next packet may leave.
    Send,
    /// No report has come for long.
    NoFeedback,
    /// The receiver reports.
    Report,
}

pub(in crate::network) const TIMERS: [Timer; 3] = [Timer::Send, Timer::NoFeedback, Timer::Report];
pub(in crate::network) const TIMER_BITS: u32 = 2;

impl Tfrc {
    /// One that has not begun. `place`: its group and its number there.
    pub(in crate::network) fn new(
        flow: FlowId,
        place: (u32, u32),
        size: Bytes,
        parameters: Parameters,
        paths: (u32, u32),
    ) -> Self {
        Self {
            flow,
            group: place.0,
            connection: place.1,
            size: size.get() as u32,
            sender: Sender::new(parameters, size),
            receiver: Receiver::new(parameters),
            sent: 0,
            arrived: 0,
            dropped: 0,
            lost: 0,
            rtt: (0, 0),
            life: 0,
            loss_events_before: 0,
            reports: 0,
            data_path: paths.0,
            feedback_path: paths.1,
            is_running: false,
            timer_at: [u64::MAX; TIMERS.len()],
        }
    }

    /// What is counted of it.
    pub(crate) fn counted(&self) -> FlowCounted {
        let bytes = self.arrived * u64::from(self.size);
        FlowCounted {
            delivered: bytes,
            arrived_wire: bytes,
            sent: self.sent,
            dropped: self.dropped,
            lost: self.lost,
            loss_events: self.loss_events(),
            rtt: self.rtt,
            ..FlowCounted::default()
        }
    }

    /// Loss events of all its lives.
    pub(crate) fn loss_events(&self) -> u64 {
        self.loss_events_before + self.receiver.loss_events()
    }

    /// The path of the sender's packets, or that of the receiver's.
    pub(in crate::network) fn path(&self, is_from_sender: bool) -> u32 {
        if is_from_sender { self.data_path } else { self.feedback_path }
    }

    pub(in crate::network) fn deadline(&self, timer: Timer) -> u64 {
        let deadline = match timer {
            Timer::Report => self.receiver.deadline(),
            _ if !self.is_running => Time::NEVER,
            Timer::Send => self.sender.next_send(),
            Timer::NoFeedback => self.sender.deadline(),
        };
        deadline.as_nanos()
    }
}
