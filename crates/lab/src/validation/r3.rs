//! R3: sixteen TCPs over a shared lossy link (table V of MULTFRC).

use sim::model::{Loss, Recovery};
use units::{Bytes, Duration};

use super::job;
use super::network::{Network, PLENTY, tcp};
use super::reference::number;
use crate::experiment::{Job, Measured};

pub(super) fn table_v(configuration: &str, seed: u64, recovery: Recovery) -> Job {
    let mut network = Network::new(seed, 5000, 50, Duration::from_secs(100));
    let (left, right) = (network.node(), network.node());
    let mbps = number(configuration, "bw_mbps");
    let bottleneck = network.duplex(left, right, mbps, 230.0, number(configuration, "qlimit_pkts") as u32);
    network.model.links[bottleneck].loss = Loss::Bernoulli(number(configuration, "p_w"));
    let mut tcp = tcp(recovery);
    tcp.receive_window = Some(Bytes::new(number(configuration, "window") as u64 * 1000));
    for _ in 0..number(configuration, "n") as usize {
        let (sender, receiver) = (network.node(), network.node());
        network.duplex(sender, left, 100.0, 10.0, PLENTY);
        network.duplex(right, receiver, 100.0, 10.0, PLENTY);
        network.greedy(sender, receiver, &tcp, (0.0, 5.0));
    }
    job(configuration, recovery, network, &[], move |recording| {
        let totals = &recording.totals;
        let seconds = totals.counted.as_secs_f64();
        let flows = totals.flows.len() as f64;
        let goodput: f64 =
            totals.flows.iter().map(|flow| flow.delivered.as_f64()).sum::<f64>() * 8e-3 / seconds / flows;
        let link = &totals.links[bottleneck];
        let count = |of: fn(&sim::report::FlowTotals) -> u64| totals.flows.iter().map(of).sum::<u64>() as f64;
        Measured::default()
            .figure("flow_goodput_kbps_mean", goodput, "kbit/s")
            .figure("flow_wire_kbps_mean", goodput * 1.04, "kbit/s")
            .figure("util_wire_at_queue", link.transmitted.as_f64() * 8e-6 / seconds / mbps, "")
            .figure("loss_congestion", link.dropped as f64 / link.offered as f64, "")
            .figure("mean_queue_pkts", link.waited.as_secs_f64() / seconds, "packets")
            .figure("timeouts_total", count(|flow| flow.timeouts), "")
            .figure("cuts_total", count(|flow| flow.loss_events), "")
    })
}
