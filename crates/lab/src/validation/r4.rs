//! R4: two groups of TCPs and bursts of datagrams behind one bottleneck (VPS, figure 2, all flows plain).

use anabranch_sim::model::{Kind, Pattern, Recovery};
use anabranch_units::{Bytes, Duration, Rate};

use super::job::job;
use super::network::{Network, PLENTY, tcp};
use super::reference::number;
use crate::case::Measured;
use crate::experiment::Job;

pub(super) fn run(configuration: &str, seed: u64, recovery: Recovery) -> Job {
    let count = number(configuration, "N") as usize;
    let mbps = 4.0 * number(configuration, "N");
    let mut network = Network::new(seed, number(configuration, "dur_s") as u64, 20, Duration::from_secs(10));
    let (left, right) = (network.node(), network.node());
    let queue = number(configuration, "qlimit_pkts") as u32;
    let bottleneck = network.duplex(left, right, mbps, number(configuration, "bottleneck_delay_ms"), queue);
    let tcp = tcp(recovery);
    for _group in 0..2 {
        let server = network.node();
        network.duplex(server, left, 100.0, 10.0, PLENTY);
        for _ in 0..count {
            let receiver = network.node();
            network.duplex(right, receiver, 100.0, 10.0, PLENTY);
            network.greedy(server, receiver, &tcp, (0.0, 5.0));
        }
    }
    let (source, sink) = (network.node(), network.node());
    network.duplex(source, left, 100.0, 10.0, PLENTY);
    network.duplex(right, sink, 100.0, 10.0, PLENTY);
    let half_a_second = Duration::from_millis(500);
    let rate = Rate::from_kbps(160 * count as u64);
    let pattern = Pattern::Exponential { rate, on: half_a_second, off: half_a_second };
    network.flow(Kind::Udp { from: source, to: sink, size: Bytes::new(1000), pattern }, (0.0, 0.0), None);
    job(configuration, recovery, network, &[], move |recording| {
        let totals = &recording.totals;
        let seconds = totals.counted.as_secs_f64();
        let (tcps, udp) = totals.flows.split_at(2 * count);
        let goodput = |flows: &[anabranch_sim::report::FlowTotals]| {
            flows.iter().map(|flow| flow.delivered.as_f64()).sum::<f64>()
        };
        let (a, b) = (goodput(&tcps[..count]), goodput(&tcps[count..]));
        let link = &totals.links[bottleneck];
        let sum = |of: fn(&anabranch_sim::report::FlowTotals) -> u64| tcps.iter().map(of).sum::<u64>() as f64;
        Measured::default()
            .figure("fairness_F", a / b, "")
            .figure("flow_goodput_kbps_mean", (a + b) * 8e-3 / seconds / (2 * count) as f64, "kbit/s")
            .figure("util", link.transmitted.as_f64() * 8e-6 / seconds / mbps, "")
            .figure("drop_rate", link.dropped as f64 / link.offered as f64, "")
            .figure("udp_drop_rate", udp[0].dropped as f64 / udp[0].sent as f64, "")
            .figure("udp_offered_kbps", udp[0].sent as f64 * 8.0 / seconds, "kbit/s")
            .figure("mean_queue_pkts", link.waited.as_secs_f64() / seconds, "packets")
            .figure("timeouts_total", sum(|flow| flow.timeouts), "")
            .figure("cuts_total", sum(|flow| flow.loss_events), "")
    })
}
