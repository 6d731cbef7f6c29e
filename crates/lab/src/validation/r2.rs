//! R2: one TCP over a lossy path.

use anabranch_sim::model::{DelayedAck, LossModel, Recovery};
use anabranch_units::Duration;

use super::job::job;
use super::network::{Network, tcp};
use super::reference::number;
use crate::case::Measured;
use crate::experiment::Job;

pub(super) fn run(configuration: &str, seed: u64, recovery: Recovery) -> Job {
    let mut network = Network::new(seed, 1000, 0, Duration::from_secs(100));
    let (sender, receiver) = (network.node(), network.node());
    let rtt = number(configuration, "rtt_prop_ms");
    let link = network.duplex(sender, receiver, number(configuration, "bw_mbps"), rtt / 2.0, 1000);
    network.model.links[link].loss = LossModel::Bernoulli(number(configuration, "p"));
    let mut tcp = tcp(recovery);
    if number(configuration, "delack") > 0.0 {
        tcp.delayed_ack = Some(DelayedAck { every: 2, delay: Duration::from_millis(100) });
    }
    network.greedy(sender, receiver, &tcp, (0.0, 0.0));
    job(configuration, recovery, network, &[], |recording| {
        let flow = &recording.totals.flows[0];
        let sent = flow.sent as f64;
        Measured::default()
            .figure("goodput_kbps", flow.delivered.as_f64() * 8.0 / 1e6, "kbit/s")
            .figure("sendrate_kbps", sent * 8.0 / 1e3, "kbit/s")
            .figure("measured_loss", (flow.lost + flow.dropped) as f64 / sent, "")
            .figure("loss_events", flow.loss_events as f64, "")
            .figure("timeouts", flow.timeouts as f64, "")
            .figure("loss_event_rate", flow.loss_events as f64 / sent, "")
    })
}
