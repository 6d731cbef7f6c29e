//! What happens in a network, and what its user is told of it.

use super::half::HalfId;
use super::live::LiveDatagram;
use crate::model::FlowId;

/// What happens at a moment: a kind and a number in one word, because millions of these move in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::network) struct Event(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum Kind {
    /// A packet enters a link or arrives.
    Packet,
    /// A half connection's retransmission timer.
    Retransmission,
    /// A half connection's delayed acknowledgement.
    DelayedAck,
    /// A half connection's random delay of sending is over.
    Jitter,
    /// A paced half connection's next segment may leave.
    Departure,
    /// A flow's own timer: its beginning, its end, the next datagram, what its application writes next.
    Flow,
    /// A link's queue has to be asked.
    Service,
    /// The end of a flow.
    Stop,
    /// One of the timers of a TFRC flow.
    Tfrc,
    /// What a server writes next under one of its caps.
    Pace,
}

const KINDS: [Kind; 10] = [
    Kind::Packet,
    Kind::Retransmission,
    Kind::DelayedAck,
    Kind::Jitter,
    Kind::Departure,
    Kind::Flow,
    Kind::Service,
    Kind::Stop,
    Kind::Tfrc,
    Kind::Pace,
];
const KIND_SHIFT: u32 = 28;

impl Event {
    #[inline]
    pub(in crate::network) fn new(kind: Kind, number: u32) -> Self {
        Self((kind as u32) << KIND_SHIFT | number)
    }

    #[inline]
    pub(in crate::network) fn open(self) -> (Kind, u32) {
        (KINDS[(self.0 >> KIND_SHIFT) as usize], self.0 & ((1 << KIND_SHIFT) - 1))
    }
}

/// What the user of a network is told after an event.
#[derive(Debug)]
pub(crate) enum Upcall {
    /// A flow's timer went off.
    Flow(FlowId),
    /// A flow's time is over.
    Stop(FlowId),
    /// The set-up that this half began is answered.
    Connected(HalfId),
    /// The set-up that this half began is refused.
    Refused(HalfId),
    /// Bytes have arrived in order at the receiver of this half.
    Delivered(HalfId, u64),
    /// A datagram of a live stream has arrived that went over this uplink.
    Datagram(FlowId, u32, Box<LiveDatagram>),
}
