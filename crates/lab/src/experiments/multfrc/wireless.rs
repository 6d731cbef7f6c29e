//! The path of figures 1 and 6: a fixed host, a base, and a mobile behind a link that loses packets.

use anabranch_sim::model::{Kind, Loss, Model};
use anabranch_units::{Bytes, Duration, Time};

use super::sending::Sending;
use crate::case::Measured;
use crate::simulate::Recording;
use crate::validation::network::{Network, PLENTY};

/// Links of the model: host to base and back, base to mobile and back.
pub(super) const BOTTLENECK: usize = 2;
/// A report's size on the wire, and the fast link's rate in bits per millisecond.
const REPORT_BITS: f64 = 320.0;
const ACCESS_KBPS: f64 = 1e5;

pub(super) const THROUGHPUT: &str = "throughput";
pub(super) const LOSS: &str = "loss";
pub(super) const RTT: &str = "round trip";
/// Mean number of open connections, or of those that one stands for.
pub(super) const CONNECTIONS: &str = "connections";

/// A path.
#[derive(Clone, Copy)]
pub(super) struct Wireless {
    pub kbps: f64,
    /// Size of a packet on the wire.
    pub size: Bytes,
    /// One way over the wireless link; there are 10 ms before it.
    pub delay_ms: f64,
    /// Of the base, in packets.
    pub queue: u32,
    pub seconds: u64,
    pub warm_up: u64,
}

impl Wireless {
    /// Milliseconds without a queue.
    fn least_rtt_ms(&self) -> f64 {
        let per_packet = |bits: f64| bits / self.kbps + bits / ACCESS_KBPS;
        2.0 * (10.0 + self.delay_ms) + per_packet(8.0 * self.size.as_f64()) + per_packet(REPORT_BITS)
    }

    /// Streams over the path at one loss rate.
    pub(super) fn model(&self, sending: Sending, streams: u32, loss: f64, seed: u64) -> Model {
        let mut network = Network::new(seed, self.seconds, self.warm_up, Duration::from_secs(1));
        let (host, base, mobile) = (network.node(), network.node(), network.node());
        network.duplex(host, base, ACCESS_KBPS / 1e3, 10.0, PLENTY);
        let bottleneck = network.duplex(base, mobile, self.kbps / 1e3, self.delay_ms, self.queue);
        network.model.links[bottleneck].loss = Loss::Bernoulli(loss);
        for _ in 0..streams {
            let (parameters, scheme) = (sending.tfrc, sending.connections);
            let kind = Kind::Tfrc { from: host, to: mobile, size: self.size, parameters, scheme };
            network.flow(kind, (0.0, 1.0), None);
        }
        network.model
    }

    pub(super) fn measure(&self, run: &Recording) -> Measured {
        let totals = &run.totals;
        let received: f64 = totals.flows.iter().map(|flow| flow.arrived_wire.as_f64()).sum();
        let sent: u64 = totals.flows.iter().map(|flow| flow.sent).sum();
        let link = &totals.links[BOTTLENECK];
        let throughput = received * 8e-3 / totals.counted.as_secs_f64();
        let lost = (link.dropped + link.lost) as f64 / sent as f64;
        let rtt = self.least_rtt_ms() + link.waited.as_secs_f64() * 1e3 / link.packets as f64;
        let connections = self.mean_connections(run, self.warm_up, self.seconds);
        Measured::default()
            .figure(THROUGHPUT, throughput, "kbps")
            .figure(LOSS, lost, "")
            .figure(RTT, rtt, "ms")
            .figure(CONNECTIONS, connections, "")
    }

    /// The mean number of connections that the streams stand for between two seconds.
    pub(super) fn mean_connections(&self, run: &Recording, from: u64, to: u64) -> f64 {
        let moment = |second| Time::ZERO + Duration::from_secs(second);
        let within = run.flows.iter().filter(|sample| sample.at > moment(from) && sample.at <= moment(to));
        let (sum, count) = within.fold((0.0, 0.0), |(sum, count), sample| (sum + sample.flows, count + 1.0));
        sum / count * run.totals.flows.len() as f64
    }
}
