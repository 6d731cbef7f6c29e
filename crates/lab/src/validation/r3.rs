//! R3: TFRC to a wireless host (figure 2 of MULTFRC), and sixteen TCPs over a shared lossy link (its table
//! V).

use anabranch_congestion::aggregate::Scheme;
use anabranch_sim::model::{Kind, LossModel, Recovery};
use anabranch_units::{Bytes, Duration};

use super::job::job;
use super::network::{Network, PLENTY, tcp, tfrc};
use super::reference::number;
use crate::case::Measured;
use crate::experiment::Job;

/// Round trip without a queue in milliseconds: propagation, a packet and a report over both links.
const BASE_RTT_MS: f64 = 168.4;

pub(super) fn wireless(configuration: &str, seed: u64, recovery: Recovery) -> Job {
    let mut network = Network::new(seed, 1000, 20, Duration::from_secs(100));
    let (host, base, mobile) = (network.node(), network.node(), network.node());
    let mbps = number(configuration, "bw_mbps");
    let kept = 1.0 - number(configuration, "p_w");
    network.duplex(host, base, 100.0, 10.0, PLENTY);
    let bottleneck = network.duplex(base, mobile, mbps, 70.0, 50);
    network.model.links[bottleneck].loss = LossModel::Bernoulli(1.0 - kept);
    for _ in 0..number(configuration, "n") as usize {
        let size = Bytes::new(number(configuration, "psize_B") as u64);
        let kind =
            Kind::Tfrc { from: host, to: mobile, size, parameters: tfrc(recovery), scheme: Scheme::TFRC };
        network.flow(kind, (0.0, 1.0), None);
    }
    job(configuration, recovery, network, &[], move |recording| {
        let totals = &recording.totals;
        let seconds = totals.counted.as_secs_f64();
        let link = &totals.links[bottleneck];
        let sum = |of: fn(&anabranch_sim::report::FlowTotals) -> u64| {
            totals.flows.iter().map(of).sum::<u64>() as f64
        };
        let (sent, dropped, lost) = (sum(|flow| flow.sent), link.dropped as f64, link.lost as f64);
        let received = sum(|flow| flow.arrived_wire.get()) * 8e-3 / seconds;
        let delay_ms = link.waited.as_secs_f64() * 1e3 / link.packets as f64;
        Measured::default()
            .figure("agg_thru_kbps", received, "kbit/s")
            .figure("util_of_Bw_1_minus_pw", received / (1e3 * mbps * kept), "")
            .figure("loss_e2e", (dropped + lost) / sent, "")
            .figure("loss_congestion", dropped / sent, "")
            .figure("rtt_mean_ms", BASE_RTT_MS + delay_ms, "ms")
            .figure("mean_queue_pkts", link.waited.as_secs_f64() / seconds, "packets")
    })
}

pub(super) fn table_v(configuration: &str, seed: u64, recovery: Recovery) -> Job {
    let mut network = Network::new(seed, 5000, 50, Duration::from_secs(100));
    let (left, right) = (network.node(), network.node());
    let mbps = number(configuration, "bw_mbps");
    let bottleneck = network.duplex(left, right, mbps, 230.0, number(configuration, "qlimit_pkts") as u32);
    network.model.links[bottleneck].loss = LossModel::Bernoulli(number(configuration, "p_w"));
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
        let count = |of: fn(&anabranch_sim::report::FlowTotals) -> u64| {
            totals.flows.iter().map(of).sum::<u64>() as f64
        };
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
