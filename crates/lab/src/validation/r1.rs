//! R1: fixed windows on MultiTCP's dumbbell, beside datagrams and TCPs.

use anabranch_sim::model::{Kind, Pattern, Recovery};
use anabranch_units::{Bytes, Duration, Rate};

use super::job::{job, phase_sum};
use super::network::{Network, tcp};
use super::reference::{number, setting};
use crate::case::Measured;
use crate::experiment::Job;

const PHASES: [(&str, f64, f64); 6] = [
    ("quiet_10_200", 10.0, 200.0),
    ("udp_200_220", 200.0, 220.0),
    ("udp_300_340", 300.0, 340.0),
    ("quiet_350_500", 350.0, 500.0),
    ("tcp15_510_750", 510.0, 750.0),
    ("tcp20_760_1000", 760.0, 1000.0),
];

/// The run of a configuration; its metrics have the phase's name before theirs.
pub(super) fn run(configuration: &str, seed: u64, recovery: Recovery) -> Job {
    let label = setting(configuration, "label");
    let variant = label.split_once('_').map_or("", |(_, variant)| variant);
    let windows: Vec<u64> =
        setting(configuration, "windows").split('+').filter_map(|w| w.parse().ok()).collect();
    let streams = windows.len();
    let mut network = Network::new(seed, 1000, 0, Duration::from_secs(1));
    let [sender, router, receiver, generator] = [(); 4].map(|()| network.node());
    let access = if variant == "fastjit" { 100.0 } else { 6.0 };
    let from_sender = network.duplex(sender, router, access, 20.0, 50);
    let bottleneck = network.duplex(router, receiver, 6.0, 20.0, 50);
    network.duplex(generator, router, access, number(configuration, "gen_delay_ms"), 50);
    let mut stream = tcp(recovery);
    stream.send_jitter = match variant {
        "overhead2ms" => Duration::from_millis(2),
        "fastjit" => Duration::from_micros(1400),
        _ => Duration::ZERO,
    };
    let mut cross = stream.clone();
    if variant == "xwin20" {
        cross.receive_window = Some(Bytes::new(20_000));
    }
    for window in &windows {
        stream.receive_window = Some(Bytes::new(window * 1000));
        network.greedy(sender, receiver, &stream, (0.0, 0.1));
    }
    let pattern = Pattern::Constant { rate: Rate::from_kbps(5500), jitter: variant == "cbrrand" };
    for (start, stop) in [(200.0, 220.0), (300.0, 340.0)] {
        let kind = Kind::Udp { from: generator, to: receiver, size: Bytes::new(1000), pattern };
        network.flow(kind, (start, start), Some(stop));
    }
    for (count, start) in [(15, 500.0), (5, 750.0)] {
        for _ in 0..count {
            network.greedy(generator, receiver, &cross, (start, start + 1.0));
        }
    }
    job(configuration, recovery, network, &["loss_event", "timeout"], move |recording| {
        let mut measured = Measured::default();
        for (phase, from, to) in PHASES {
            let flows = |wanted: fn(usize, usize) -> bool| {
                let samples = recording.flows.iter().filter(move |sample| wanted(sample.flow, streams));
                samples.filter(move |sample| within(sample.at, from, to))
            };
            let kbps = |bytes: u64| bytes as f64 * 8.0 / 1e3 / (to - from);
            let stream = |flow, streams| flow < streams;
            let goodput = phase_sum(flows(stream), |sample| sample.delivered.get());
            let cross =
                phase_sum(flows(|flow, streams| flow >= streams + 2), |sample| sample.delivered.get());
            let link = |link| recording.link(link).filter(move |sample| within(sample.at, from, to));
            let dropped = phase_sum(link(bottleneck), |sample| sample.dropped);
            let transmitted = phase_sum(link(bottleneck), |sample| sample.packets);
            // Only the stream's packets use the sender's link.
            let dropped_before = phase_sum(link(from_sender), |sample| sample.dropped);
            let lost = phase_sum(flows(stream), |sample| sample.lost);
            let sent = phase_sum(flows(stream), |sample| sample.sent);
            let decisions = recording
                .decisions
                .iter()
                .filter(|decision| decision.flow < streams && within(decision.at, from, to));
            let timeouts = decisions.clone().filter(|decision| decision.what == "timeout").count();
            let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
            for (name, value, unit) in [
                ("stream_goodput_kbps_mean", kbps(goodput), "kbit/s"),
                ("cross_tcp_goodput_kbps_mean", kbps(cross), "kbit/s"),
                ("bottleneck_loss", ratio(dropped, dropped + transmitted), ""),
                (
                    "stream_loss",
                    ratio(lost.saturating_sub(dropped_before), sent.saturating_sub(dropped_before)),
                    "",
                ),
                ("stream_timeouts", timeouts as f64, ""),
                ("stream_cuts", decisions.count() as f64, ""),
            ] {
                measured = measured.figure(&format!("{phase}/{name}"), value, unit);
            }
        }
        measured
    })
}

fn within(at: anabranch_units::Time, from: f64, to: f64) -> bool {
    let seconds = at.as_secs_f64();
    from < seconds && seconds <= to
}
