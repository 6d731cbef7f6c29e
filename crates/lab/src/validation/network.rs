//! Building blocks of the reference's scenarios: ns-2's TCP, links, flows.

use anabranch_congestion::tfrc;
use anabranch_sim::model::{
    Congestion, Flow, Kind, Link, Model, Node, NodeId, Recovery, Rto, Run, Source, Tcp, When,
};
use anabranch_units::{Bytes, Duration, Packets, Rate, Time};

/// ns-2's queues that are not the bottleneck.
pub(crate) const PLENTY: u32 = 5000;

/// The reference's TCP: SACK, 1000 bytes of payload, one acknowledgement a packet, an initial window of two.
pub(crate) fn tcp(recovery: Recovery) -> Tcp {
    Tcp {
        segment: Bytes::new(1000),
        congestion: Congestion::Reno,
        initial_window: Packets::new(2),
        delayed_ack: None,
        timestamps: false,
        rto: Rto {
            initial: Duration::from_secs(3),
            least: Duration::from_millis(200),
            most: Duration::from_secs(60),
            granularity: Duration::from_millis(10),
        },
        recovery,
        ..Tcp::DEPLOYED
    }
}

/// TFRC at the ends, by the same rules as TCP.
pub(crate) const fn tfrc(recovery: Recovery) -> tfrc::Parameters {
    match recovery {
        Recovery::Sack => tfrc::Parameters::RFC5348,
        Recovery::Ns2Sack1 => tfrc::Parameters::NS2,
    }
}

/// A model that grows.
pub(crate) struct Network {
    /// What it has grown to.
    pub(crate) model: Model,
}

impl Network {
    pub(crate) fn new(seed: u64, seconds: u64, warm_up: u64, sampling: Duration) -> Self {
        let run = Run {
            duration: Duration::from_secs(seconds),
            seed,
            sampling,
            warm_up: Duration::from_secs(warm_up),
        };
        Self { model: Model { nodes: Vec::new(), links: Vec::new(), flows: Vec::new(), run } }
    }

    pub(crate) fn node(&mut self) -> NodeId {
        let id = self.model.nodes.len();
        self.model.nodes.push(Node::new(format!("n{id}")));
        id
    }

    /// Two links, there and back; answers the number of the first.
    pub(crate) fn duplex(&mut self, from: NodeId, to: NodeId, mbps: f64, delay_ms: f64, queue: u32) -> usize {
        let rate = Rate::from_bps_f64(mbps * 1e6);
        let delay = Duration::from_secs_f64(delay_ms / 1e3);
        self.model.links.push(Link::drop_tail(from, to, rate, delay, queue));
        self.model.links.push(Link::drop_tail(to, from, rate, delay, queue));
        self.model.links.len() - 2
    }

    pub(crate) fn greedy(&mut self, from: NodeId, to: NodeId, tcp: &Tcp, start: (f64, f64)) {
        let kind = Kind::Tcp { from, to, tcp: tcp.clone(), source: Source::Greedy };
        self.flow(kind, start, None);
    }

    pub(crate) fn flow(&mut self, kind: Kind, start: (f64, f64), stop: Option<f64>) {
        let time = |seconds| Time::ZERO + Duration::from_secs_f64(seconds);
        let start = if start.0 < start.1 {
            When::Between(time(start.0), time(start.1))
        } else {
            When::At(time(start.0))
        };
        let name = format!("f{}", self.model.flows.len());
        self.model.flows.push(Flow { name, start, stop: stop.map(time), kind });
    }
}
