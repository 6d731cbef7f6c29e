//! The dumbbell of figure 11 as table V has it: streams and TCPs over one lossy link.

use anabranch_sim::model::{Kind, Loss, Model, Recovery, Tcp};
use anabranch_units::Duration;

use super::sending::Sending;
use super::wireless::SIZE;
use crate::case::Measured;
use crate::simulate::Recording;
use crate::statistics::mean;
use crate::validation::network::{Network, PLENTY, tcp};

/// The shared link: 5 Mbps and 500 ms follow from the numbers of table V.
const MBPS: f64 = 5.0;
/// A round trip without a queue: 2 * 250 ms, a packet over three links, a report over three.
const LEAST_RTT_MS: f64 = 502.0;
const WARM_UP: u64 = 200;
/// The shared link's place.
const BOTTLENECK: usize = 0;
const SECONDS: u64 = 5000;
const SAMPLING: Duration = Duration::from_secs(10);

/// What the paper leaves open about the dumbbell.
pub(super) const DUMBBELL: [&str; 3] = [
    "a shared link of 5 Mbps and 230 ms one way, which follow from table V, behind a queue of a bandwidth-delay product (312 packets): the delay that MULTFRC bears has room in it",
    "10 ms and 100 Mbps on each side of it; p_w is the shared link's",
    "SACK TCP as ns-2 has it, with unlimited windows and 1000 bytes of payload; starts within 5 s",
];

/// Streams and TCPs over a dumbbell.
pub(super) fn model(sending: Sending, (streams, tcps): (usize, usize), loss: f64, seed: u64) -> Model {
    let mut network = Network::new(seed, SECONDS, WARM_UP, SAMPLING);
    let (left, right) = (network.node(), network.node());
    let bottleneck = network.duplex(left, right, MBPS, 230.0, 312);
    network.model.links[bottleneck].loss = Loss::Bernoulli(loss);
    let tcp: Tcp = tcp(Recovery::Sack);
    for index in 0..streams + tcps {
        let (sender, receiver) = (network.node(), network.node());
        network.duplex(sender, left, 100.0, 10.0, PLENTY);
        network.duplex(right, receiver, 100.0, 10.0, PLENTY);
        let start = (0.0, 5.0);
        if index < streams {
            let (parameters, scheme) = (sending.tfrc, sending.connections);
            network.flow(
                Kind::Tfrc { from: sender, to: receiver, size: SIZE, parameters, scheme },
                start,
                None,
            );
        } else {
            network.greedy(sender, receiver, &tcp, start);
        }
    }
    network.model
}

pub(super) const STREAM_RATE: &str = "rate of a stream";
pub(super) const TCP_RATE: &str = "rate of a TCP";
pub(super) const UTILIZATION: &str = "utilization";
pub(super) const RTT: &str = "round trip";
pub(super) const CONNECTIONS: &str = "connections";

/// Means over the run; `streams`: how many of the flows are streams.
pub(super) fn measure(run: &Recording, streams: usize) -> Measured {
    let totals = &run.totals;
    let seconds = totals.counted.as_secs_f64();
    let rates: Vec<f64> = totals.flows.iter().map(|flow| flow.delivered.as_f64() * 8e-3 / seconds).collect();
    let (streams, tcps) = rates.split_at(streams);
    let link = &totals.links[BOTTLENECK];
    let counts: Vec<f64> =
        run.flows.iter().filter(|sample| sample.flow < streams.len()).map(|sample| sample.flows).collect();
    Measured::default()
        .figure(STREAM_RATE, mean(streams).unwrap_or(f64::NAN), "kbps")
        .figure(TCP_RATE, mean(tcps).unwrap_or(f64::NAN), "kbps")
        .figure(UTILIZATION, link.transmitted.as_f64() * 8e-6 / seconds / MBPS, "")
        .figure(RTT, LEAST_RTT_MS + link.waited.as_secs_f64() * 1e3 / link.packets as f64, "ms")
        .figure(CONNECTIONS, mean(&counts).unwrap_or(f64::NAN), "")
}
