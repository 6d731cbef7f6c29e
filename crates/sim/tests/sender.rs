//! The sender's side: flows that count for several, and smooth ones, beside plain TCP.

use congestion::algorithm::Algorithm;
use sim::Simulation;
use sim::model::{Flow, Kind, Link, Model, Node, Run, Source, Tcp, When};
use sim::report::{FlowSample, Observer};
use units::{Bytes, Duration, Rate, Time};

const SECONDS: u64 = 200;

/// Flows of these congestion controls through 15 Mbps and 20 ms with 80 packets, behind access links of 100 Mbps and 1 ms with 0 to
/// 2.6 ms more on the far side: where all flows come out of one node, those that grow bear nearly all drops. Throughput of
/// each in Mbps, and how much it varies from second to second, as a part of its mean.
fn run(controls: &[&str], seed: u64) -> Vec<(f64, f64)> {
    let node = |name: String| Node { name };
    let count = controls.len();
    let (rate, access) = (Rate::from_mbps(15), Rate::from_mbps(100));
    let (left, right) = (2 * count, 2 * count + 1);
    let (one, twenty) = (Duration::from_millis(1), Duration::from_millis(20));
    let mut links = vec![
        Link::drop_tail(left, right, rate, twenty, 80),
        Link::drop_tail(right, left, rate, twenty, 1000),
    ];
    for pair in 0..count {
        let delay = one + Duration::from_micros(2600 * pair as u64 / (count as u64 - 1).max(1));
        for (from, to, delay) in
            [(pair, left, one), (left, pair, one), (right, count + pair, delay), (count + pair, right, delay)]
        {
            links.push(Link::drop_tail(from, to, access, delay, 1000));
        }
    }
    let flow = |(number, control): (usize, &&str)| Flow {
        name: format!("{control} {number}"),
        start: When::Between(Time::ZERO, Time::ZERO + Duration::from_secs(2)),
        stop: None,
        kind: Kind::Tcp {
            from: number,
            to: count + number,
            tcp: Tcp {
                congestion: control.parse::<Algorithm>().expect("a name"),
                delayed_ack: None,
                send_jitter: Duration::from_millis(1),
                segment: Bytes::new(960),
                ..Tcp::DEPLOYED
            },
            source: Source::Greedy,
        },
    };
    let model = Model {
        nodes: (0..2 * count + 2).map(|number| node(format!("node{number}"))).collect(),
        links,
        flows: controls.iter().enumerate().map(flow).collect(),
        run: Run {
            duration: Duration::from_secs(SECONDS),
            seed,
            sampling: Duration::from_secs(1),
            warm_up: Duration::from_secs(20),
        },
    };
    let mut samples = Samples(vec![Vec::new(); controls.len()]);
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut samples);
    let of_flow = |samples: &Vec<f64>| {
        let samples = &samples[20..];
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.sqrt() / mean)
    };
    samples.0.iter().map(of_flow).collect()
}

struct Samples(Vec<Vec<f64>>);

impl Observer for Samples {
    fn flow(&mut self, sample: &FlowSample) {
        self.0[sample.flow].push(sample.delivered.as_f64() * 8e-6);
    }
}

/// Means over three seeds of the flows with this congestion control, and of the others.
fn means(controls: &[&str], control: &str) -> [(f64, f64); 2] {
    let results: Vec<_> = (1..=3).map(|seed| run(controls, seed)).collect();
    [true, false].map(|is_wanted| {
        let chosen: Vec<_> = results
            .iter()
            .flat_map(|flows| flows.iter().zip(controls))
            .filter_map(|(flow, name)| ((*name == control) == is_wanted).then_some(flow))
            .collect();
        let count = chosen.len() as f64;
        let (rate, variation) = chosen.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (rate / count, variation / count)
    })
}

#[test]
fn multcp_gets_more_than_the_share_of_its_flows() {
    // As published: it is bound to no one's share. Four flows beside four plain ones would have half of the link.
    let controls = ["multcp:4", "reno", "reno", "reno", "reno"];
    let [(share, _), _] = means(&controls, "multcp:4");
    assert!((6.0..11.0).contains(&share), "{share}");
}

#[test]
fn tfwc_takes_a_fair_share_and_is_smoother() {
    for control in ["tfwc", "ttfwc:0.4", "ttfwc:0.9", "ttfwc-approximate:0.9"] {
        let controls = [control, "reno", control, "reno", control, "reno", control, "reno"];
        let [smooth, plain] = means(&controls, control);
        assert!((0.75..1.25).contains(&(smooth.0 / plain.0)), "{control}: {smooth:?} {plain:?}");
        assert!(smooth.1 < 0.8 * plain.1, "{control}: {smooth:?} {plain:?}");
    }
}
