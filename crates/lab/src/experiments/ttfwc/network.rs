//! Flows through one bottleneck, each from a host of its own to a host of its own.

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::tfwc::{Parameters, Tuning, Update};
use anabranch_sim::model::{Model, Recovery, Tcp};
use anabranch_units::{Bytes, Duration};

use crate::scheme::{Scheme, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};
use crate::simulate::Recording;
use crate::validation::network::{Network, PLENTY, tcp};

/// What the thesis leaves open in its simulations.
pub(super) const ASSUMED: [&str; 4] = [
    "packets of 1000 bytes and 40 of headers, an initial window of two, one acknowledgement a packet, as ns-2 has them; SACK as RFC 6675 has it",
    "weights of the loss intervals as RFC 5348 has them, and equation (3.1) with them; the mean interval is reckoned accurately",
    "a host for each flow; every packet leaves up to 1 ms late by chance, and flows begin within the first 5 s",
    "DropTail",
];

/// The bottleneck, and how long a run is.
#[derive(Clone, Copy)]
pub(super) struct Path {
    pub mbps: f64,
    /// One way, ms.
    pub delay_ms: f64,
    /// Packets.
    pub queue: u32,
    /// Payload of a packet, bytes.
    pub segment: u64,
    /// The longest random delay of a packet at its sender.
    pub jitter: Duration,
    pub seconds: u64,
    pub warm_up: u64,
}

/// A flow: its control, and one way from its sender to the bottleneck and from there to its receiver, ms.
#[derive(Clone, Copy)]
pub(super) struct Sender {
    pub control: Algorithm,
    pub access_ms: (f64, f64),
}

/// The control that a scheme stands for; plain TCP is Reno.
pub(super) fn control(scheme: Scheme) -> Algorithm {
    let tuned = |tp| {
        let tuning = Tuning::new(tp).unwrap_or(Tuning::SMOOTHEST);
        Algorithm::Tfwc(Parameters { tuning, update: Update::Accurate })
    };
    match scheme {
        TTFWC_0_0 => tuned(0.0),
        TTFWC_0_4 => tuned(0.4),
        TTFWC_0_9 => tuned(0.9),
        _ => Algorithm::Reno,
    }
}

/// Flows through the bottleneck.
pub(super) fn model(path: &Path, senders: &[Sender], seed: u64) -> Model {
    let mut network = Network::new(seed, path.seconds, path.warm_up, Duration::from_secs(1));
    let (left, right) = (network.node(), network.node());
    network.duplex(left, right, path.mbps, path.delay_ms, path.queue);
    let access = (4.0 * path.mbps).max(100.0);
    for sender in senders {
        let (from, to) = (network.node(), network.node());
        network.duplex(from, left, access, sender.access_ms.0, PLENTY);
        network.duplex(right, to, access, sender.access_ms.1, PLENTY);
        let settings = Tcp {
            congestion: sender.control,
            segment: Bytes::new(path.segment),
            send_jitter: path.jitter,
            ..tcp(Recovery::Sack)
        };
        network.greedy(from, to, &settings, (0.0, 5.0));
    }
    network.model
}

/// Goodputs of all flows over what is counted, Mbps.
pub(super) fn rates(run: &Recording) -> Vec<f64> {
    let seconds = run.totals.counted.as_secs_f64();
    run.totals.flows.iter().map(|flow| flow.delivered.as_f64() * 8e-6 / seconds).collect()
}

/// Packets dropped of those sent by flows from `first` on, `count` of them.
pub(super) fn loss(run: &Recording, first: usize, count: usize) -> f64 {
    let flows = || run.totals.flows.iter().skip(first).take(count);
    let (dropped, sent): (u64, u64) =
        (flows().map(|flow| flow.dropped).sum(), flows().map(|flow| flow.sent).sum());
    dropped as f64 / sent.max(1) as f64
}
