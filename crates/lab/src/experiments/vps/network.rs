//! Figure 2 of the paper.

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::vps::Weight;
use anabranch_sim::model::{Form, Kind, Model, Pattern, Recovery, Share, Source, Tcp};
use anabranch_units::{Bytes, Duration, Rate};

use crate::scheme::{MULTCP, Scheme, VPS};
use crate::validation::network::{Network, PLENTY, tcp};

/// What the paper leaves open, or what was done otherwise, in all its simulations.
pub(super) const ASSUMED: [&str; 7] = [
    "the bottleneck's queue holds a bandwidth-delay product: 67 packets for each 4 Mbps",
    "packets of 1000 bytes and 40 of headers, an initial window of two, one acknowledgement a packet, as ns-2 has them; SACK as RFC 6675 has it",
    "the weighted flows come from one host, the plain ones from another, to a host each",
    "every packet leaves up to 1 ms late by chance, and flows begin within the first 5 s: without it the phases of the queue decide who is dropped",
    "the background is on and off for 500 ms each on average, at 160 N kbps while on",
    "MulTCP of a flow with weight w is MulTCP with N = w: a flow cannot count for less than one",
    "shorter than the paper's hour: 600 s (figures 3 to 5) and 300 s (the others), of which the first 20 s do not count; the confidence intervals show what that costs",
];

/// What does not count of a run, seconds.
pub(super) const WARM_UP: u64 = 20;

/// A run: the flows with these weights under a scheme, and as many plain ones.
#[derive(Clone)]
pub(super) struct Setup {
    pub scheme: Scheme,
    pub weights: Vec<f64>,
    pub seconds: u64,
}

impl Setup {
    pub(super) fn new(scheme: Scheme, weights: &[f64], seconds: u64) -> Self {
        Self { scheme, weights: weights.to_vec(), seconds }
    }

    /// How many weighted flows there are.
    pub(super) fn count(&self) -> usize {
        self.weights.len()
    }

    /// Flows with weights first, then as many plain ones, then the background. The link has 4 Mbps for each
    /// weighted flow and its plain one.
    pub(super) fn model(&self, seed: u64) -> Model {
        let count = self.count();
        let mut network = Network::new(seed, self.seconds, WARM_UP, Duration::from_secs(1));
        let (left, right) = (network.node(), network.node());
        network.duplex(left, right, 4.0 * count as f64, 50.0, 67 * count as u32);
        let (server, other) = (network.node(), network.node());
        for host in [server, other] {
            network.duplex(host, left, 100.0, 10.0, PLENTY);
        }
        let receiver = |network: &mut Network| {
            let node = network.node();
            network.duplex(right, node, 100.0, 10.0, PLENTY);
            node
        };
        for weight in &self.weights {
            let to = receiver(&mut network);
            let kind = Kind::Tcp { from: server, to, tcp: self.tcp(*weight), source: Source::Greedy };
            network.flow(kind, (0.0, 5.0), None);
        }
        for _ in 0..count {
            let to = receiver(&mut network);
            let kind = Kind::Tcp { from: other, to, tcp: reno(), source: Source::Greedy };
            network.flow(kind, (0.0, 5.0), None);
        }
        let to = receiver(&mut network);
        let half_second = Duration::from_millis(500);
        let rate = Rate::from_kbps(160 * count as u64);
        let pattern = Pattern::Exponential { rate, on: half_second, off: half_second };
        network.flow(Kind::Udp { from: other, to, size: Bytes::new(1000), pattern }, (0.0, 0.0), None);
        network.model
    }

    fn tcp(&self, weight: f64) -> Tcp {
        match self.scheme {
            VPS => {
                let weight = Weight::new(weight).unwrap_or(Weight::ONE);
                let share = Share { group: "group".into(), weight, watches: false, form: Form::Vps };
                Tcp { share: Some(share), ..reno() }
            }
            other => {
                debug_assert_eq!(other, MULTCP);
                Tcp { congestion: Algorithm::MulTcp(weight), ..reno() }
            }
        }
    }
}

fn reno() -> Tcp {
    Tcp { send_jitter: Duration::from_millis(1), ..tcp(Recovery::Sack) }
}
