//! What is counted of a flow since its beginning.

use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowCounted {
    pub delivered: u64,
    pub arrived_wire: u64,
    pub sent: u64,
    pub dropped: u64,
    pub lost: u64,
    /// Packets that arrived marked.
    pub marked: u64,
    pub retransmitted: u64,
    pub loss_events: u64,
    pub timeouts: u64,
    /// Acknowledgements with which the window could grow.
    pub growths: u64,
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
        self.marked += other.marked;
        self.retransmitted += other.retransmitted;
        self.loss_events += other.loss_events;
        self.timeouts += other.timeouts;
        self.growths += other.growths;
        self.rtt.0 += other.rtt.0;
        self.rtt.1 += other.rtt.1;
    }
}
