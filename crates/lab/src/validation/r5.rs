//! R5: TTFWC's dumbbell of TCP and TFRC, and two TCPs beside a constant rate that comes and goes.

use anabranch_congestion::aggregate::Scheme;
use anabranch_sim::model::{Kind, Pattern, Recovery};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::job::job;
use super::network::{Network, PLENTY, tcp, tfrc};
use super::reference::{number, setting};
use crate::case::Measured;
use crate::experiment::Job;
use crate::statistics::{Estimate, jain_index, mean};

/// In these the rates of the dumbbell's flows vary.
const BIN: Duration = Duration::from_secs(1);

/// The dumbbell, of TCPs alone or every second flow TFRC; `overhead`: TCP with ns-2's random delay of
/// sending.
pub(super) fn dumbbell(configuration: &str, seed: u64, recovery: Recovery, overhead: bool) -> Job {
    let is_mixed = setting(configuration, "mix") == "half";
    let count = number(configuration, "nflows") as usize;
    let mbps = number(configuration, "bw_mbps");
    let mut network = Network::new(seed, 200, 50, BIN);
    let (left, right) = (network.node(), network.node());
    let queue = number(configuration, "qlimit_pkts") as u32;
    let bottleneck = network.duplex(left, right, mbps, number(configuration, "delay_ms"), queue);
    let mut tcp = tcp(recovery);
    if overhead {
        tcp.send_jitter = Duration::from_micros(500);
    }
    let pairs = count / 2;
    let mut flows = [Vec::new(), Vec::new()];
    for flow in 0..count {
        let (sender, receiver) = (network.node(), network.node());
        let delay = if pairs == 1 { 1.3 } else { 2.6 * (flow / 2) as f64 / (pairs - 1) as f64 };
        network.duplex(sender, left, 100.0, 1.0, PLENTY);
        network.duplex(right, receiver, 100.0, delay, PLENTY);
        let is_tfrc = is_mixed && flow % 2 == 1;
        flows[usize::from(is_tfrc)].push(flow);
        let start = (0.0, 2.0);
        if is_tfrc {
            let size = tcp.segment + tcp.header;
            let kind = Kind::Tfrc {
                from: sender,
                to: receiver,
                size,
                parameters: tfrc(recovery),
                scheme: Scheme::TFRC,
            };
            network.flow(kind, start, None);
        } else {
            network.greedy(sender, receiver, &tcp, start);
        }
    }
    let warm_up = Time::ZERO + network.model.run.warm_up;
    job(configuration, recovery, network, &[], move |recording| {
        let totals = &recording.totals;
        let seconds = totals.counted.as_secs_f64();
        let kbps = |bytes: Bytes| bytes.as_f64() * 8e-3 / seconds;
        let wire: Vec<f64> = totals.flows.iter().map(|flow| kbps(flow.arrived_wire)).collect();
        // The variation of a flow's rate in bins.
        let variation = |flow: usize| {
            let bins = recording.flow(flow).filter(|sample| sample.at > warm_up);
            let bins: Vec<f64> = bins.map(|sample| sample.arrived_wire.as_f64()).collect();
            Estimate::of(&bins).map_or(0.0, |bins| bins.deviation.unwrap_or_default() / bins.mean)
        };
        let link = &totals.links[bottleneck];
        let mut measured = Measured::default()
            .figure("util", link.transmitted.as_f64() * 8e-6 / seconds / mbps, "")
            .figure("loss_rate", link.dropped as f64 / link.offered as f64, "")
            .figure("mean_queue_pkts", link.waited.as_secs_f64() / seconds, "packets")
            .figure("jain", jain_index(&wire).unwrap_or_default(), "");
        for (protocol, flows) in ["tcp", "tfrc"].into_iter().zip(&flows) {
            let average =
                |of: &dyn Fn(usize) -> f64| mean(&flows.iter().map(|flow| of(*flow)).collect::<Vec<_>>());
            let fair = mbps * 1e3 / count as f64;
            if let (Some(share), Some(variation)) = (average(&|flow| wire[flow] / fair), average(&variation))
            {
                measured = measured.figure(&format!("{protocol}_norm"), share, "").figure(
                    &format!("{protocol}_cov1s"),
                    variation,
                    "",
                );
            }
        }
        let of_tcps = |of: fn(&anabranch_sim::report::FlowTotals) -> u64| {
            flows[0].iter().map(|flow| of(&totals.flows[*flow])).sum::<u64>()
        };
        let goodput = kbps(Bytes::new(of_tcps(|flow| flow.delivered.get()))) / flows[0].len() as f64;
        measured
            .figure("tcp_goodput_kbps", goodput, "kbit/s")
            .figure("tcp_timeouts", of_tcps(|flow| flow.timeouts) as f64, "")
            .figure("tcp_cuts", of_tcps(|flow| flow.loss_events) as f64, "")
    })
}

/// Two TCPs and 10 Mbps that come and go.
pub(super) fn slow_cc(configuration: &str, seed: u64, recovery: Recovery) -> Job {
    let mbps = number(configuration, "bw_mbps");
    let period = number(configuration, "period_x_s");
    let mut network = Network::new(seed, 200, 0, Duration::from_secs(10));
    let (left, right) = (network.node(), network.node());
    network.duplex(left, right, mbps, 3.0, number(configuration, "qlimit_pkts") as u32);
    for delay in [0.2, 0.4] {
        let (sender, receiver) = (network.node(), network.node());
        network.duplex(sender, left, 100.0, 1.0, PLENTY);
        network.duplex(right, receiver, 100.0, delay, PLENTY);
        network.greedy(sender, receiver, &tcp(recovery), (0.0, 0.02));
    }
    let (source, sink) = (network.node(), network.node());
    network.duplex(source, left, 100.0, 1.0, PLENTY);
    network.duplex(right, sink, 100.0, 0.2, PLENTY);
    let cbr_mbps = number(configuration, "cbr_mbps");
    let on = Duration::from_secs_f64(period);
    let pattern = Pattern::OnOff { rate: Rate::from_bps_f64(cbr_mbps * 1e6), on, off: on, off_first: true };
    network.flow(Kind::Udp { from: source, to: sink, size: Bytes::new(1000), pattern }, (0.0, 0.0), None);
    // Whole pairs of off and on, and what is on of the last one.
    let pairs = (200.0 / (2.0 * period)).floor();
    let on_time = pairs * period + (200.0 - pairs * 2.0 * period - period).max(0.0);
    let idle_bits = mbps * 1e6 * 200.0 - cbr_mbps * 1e6 * on_time;
    job(configuration, recovery, network, &[], move |recording| {
        let (tcps, udp) = recording.totals.flows.split_at(2);
        let sum = |of: fn(&anabranch_sim::report::FlowTotals) -> u64| tcps.iter().map(of).sum::<u64>() as f64;
        let (sent, dropped) = (sum(|flow| flow.sent), sum(|flow| flow.dropped));
        let (udp_sent, udp_dropped) = (udp[0].sent as f64, udp[0].dropped as f64);
        Measured::default()
            .figure("util_idle_wire", sum(|flow| flow.arrived_wire.get()) * 8.0 / idle_bits, "")
            .figure("util_idle_goodput", sum(|flow| flow.delivered.get()) * 8.0 / idle_bits, "")
            .figure("tcp_loss", dropped / sent, "")
            .figure("cbr_loss", udp_dropped / udp_sent, "")
            .figure("total_loss", (dropped + udp_dropped) / (sent + udp_sent), "")
            .figure("tcp_timeouts", sum(|flow| flow.timeouts), "")
            .figure("tcp_cuts", sum(|flow| flow.loss_events), "")
    })
}
