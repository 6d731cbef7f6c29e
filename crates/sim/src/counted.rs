//! What is counted of a flow since its beginning.

use std::ops::AddAssign;

use crate::network::{Datagrams, Half, Tfrc};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowCounted {
    pub delivered: u64,
    pub arrived_wire: u64,
    pub sent: u64,
    pub dropped: u64,
    pub lost: u64,
    pub retransmitted: u64,
    pub loss_events: u64,
    pub timeouts: u64,
    /// Sum and number of the round trips measured.
    pub rtt: (u64, u64),
}

impl AddAssign for FlowCounted {
    fn add_assign(&mut self, other: Self) {
        self.delivered += other.delivered;
        self.arrived_wire += other.arrived_wire;
        self.sent += other.sent;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.retransmitted += other.retransmitted;
        self.loss_events += other.loss_events;
        self.timeouts += other.timeouts;
        self.rtt.0 += other.rtt.0;
        self.rtt.1 += other.rtt.1;
    }
}

/// What is counted of one half connection.
pub(crate) fn half_counted(half: &Half) -> FlowCounted {
    let counters = &half.counters;
    FlowCounted {
        delivered: half.receiver.next(),
        arrived_wire: counters.arrived_wire,
        sent: counters.sent,
        dropped: counters.dropped,
        lost: counters.lost,
        retransmitted: counters.retransmitted,
        loss_events: counters.loss_events,
        timeouts: counters.timeouts,
        rtt: half.sender.measured(),
    }
}

/// What is counted of a flow of datagrams.
pub(crate) fn datagrams_counted(datagrams: &Datagrams) -> FlowCounted {
    let bytes = datagrams.arrived * u64::from(datagrams.size);
    FlowCounted {
        delivered: bytes,
        arrived_wire: bytes,
        sent: datagrams.sent,
        dropped: datagrams.dropped,
        lost: datagrams.lost,
        ..FlowCounted::default()
    }
}

/// What is counted of a connection under TFRC.
pub(crate) fn tfrc_counted(tfrc: &Tfrc) -> FlowCounted {
    let bytes = tfrc.arrived * u64::from(tfrc.size);
    FlowCounted {
        delivered: bytes,
        arrived_wire: bytes,
        sent: tfrc.sent,
        dropped: tfrc.dropped,
        lost: tfrc.lost,
        loss_events: tfrc.loss_events(),
        rtt: tfrc.rtt,
        ..FlowCounted::default()
    }
}
