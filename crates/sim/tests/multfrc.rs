//! Streams of several connections, and of one that stands for several, over a link that loses packets.

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::multfrc::analysis::{optimal_connections, underutilizes};
use anabranch_congestion::response::TcpModel;
use anabranch_congestion::tfrc::Parameters;
use anabranch_sim::model::{Change, Flow, Kind, Link, LossModel, Model, Node, Run, When};
use anabranch_sim::report::{Decision, FlowSample, Observer, Totals};
use anabranch_sim::{ModelError, Simulation};
use anabranch_units::{Bytes, Duration, Rate, Time};

const SIZE: Bytes = Bytes::new(1000);
const BANDWIDTH: Rate = Rate::from_mbps(1);
/// There and back, and a packet's transmission.
const RTT: Duration = Duration::from_millis(168);

/// One flow over 1 Mbps and 160 ms, with a loss rate.
fn model(scheme: Scheme, loss: f64, seconds: u64) -> Model {
    let node = |name: &str| Node::new(name);
    let delay = Duration::from_millis(80);
    let mut there = Link::drop_tail(0, 1, BANDWIDTH, delay, 50);
    there.loss = LossModel::Bernoulli(loss);
    let kind = Kind::Tfrc { from: 0, to: 1, size: SIZE, parameters: Parameters::RFC5348, scheme };
    Model {
        nodes: vec![node("host"), node("mobile")],
        links: vec![there, Link::drop_tail(1, 0, BANDWIDTH, delay, 50)],
        flows: vec![Flow { name: "stream".into(), start: When::At(Time::ZERO), stop: None, kind }],
        run: Run {
            duration: Duration::from_secs(seconds),
            seed: 1,
            sampling: Duration::from_secs(1),
            warm_up: Duration::from_secs(seconds / 4),
        },
    }
}

#[derive(Default)]
struct Heard {
    samples: Vec<FlowSample>,
    decisions: Vec<Decision>,
}

impl Observer for Heard {
    fn flow(&mut self, sample: &FlowSample) {
        self.samples.push(*sample);
    }

    fn decision(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
    }
}

fn run(model: Model) -> (Totals, Heard) {
    let mut heard = Heard::default();
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut heard);
    (simulation.totals(), heard)
}

/// The part of what the link can deliver.
fn utilization(scheme: Scheme, loss: f64) -> f64 {
    let (totals, _) = run(model(scheme, loss, 800));
    let rate = Rate::of(totals.flows[0].arrived_wire, totals.counted);
    rate.as_f64() / (BANDWIDTH.as_f64() * (1.0 - loss))
}

/// What one connection can get at the most (T_b).
fn bound(loss: f64) -> Rate {
    TcpModel { packets_per_ack: 1, timeout: RTT * 4 }.throughput(SIZE, RTT, loss)
}

#[test]
fn theorem_1_says_when_one_connection_is_too_few() {
    for (loss, is_too_few) in [(0.0005, false), (0.001, false), (0.02, true), (0.08, true)] {
        assert_eq!(underutilizes(bound(loss), BANDWIDTH), is_too_few, "{loss}");
        let used = utilization(Scheme::TFRC, loss);
        assert_eq!(used < 0.95, is_too_few, "{loss}: {used}");
    }
}

#[test]
fn equation_5_gives_the_number_of_connections_that_fill_the_link() {
    for loss in [0.02, 0.04, 0.08] {
        let optimal = optimal_connections(bound(loss), BANDWIDTH);
        let whole = |connections: f64| Scheme::Fixed(connections as u32);
        // Half of them use half of it, and a little more, as losses within a round trip are one event; one
        // and a half times as many use it but for what their rates vary.
        let (half, more) = ((optimal / 2.0).floor().max(1.0), (1.5 * optimal).ceil());
        let used = utilization(whole(half), loss);
        let part = half / optimal;
        assert!((part..1.25 * part).contains(&used), "{loss}: {used} with {half} of {optimal}");
        assert!(utilization(whole(more), loss) > 0.97, "{loss}: {more} of {optimal}");
    }
}

#[test]
fn multfrc_opens_and_closes_connections() {
    let mut model = model(Scheme::MULTFRC, 0.08, 1200);
    // The losses end: one connection is enough then.
    let at = Time::ZERO + Duration::from_secs(700);
    model.links[0].changes = vec![Change { at, rate: None, delay: None, loss: Some(LossModel::None) }];
    let (_, heard) = run(model);
    let counts: Vec<u32> = heard.samples.iter().map(|sample| sample.connections).collect();
    let most = counts[400..700].iter().max().unwrap();
    assert!((6..=11).contains(most), "{most}");
    assert!(counts[1150..].iter().all(|count| *count == 1), "{:?}", &counts[1150..]);
    // Each was decided, with its reason.
    let opened = counts.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let decided = heard.decisions.iter().filter(|decision| decision.what == "connections").count();
    assert!(opened > 8 && decided >= opened, "{opened} changes, {decided} decisions");
    assert!(heard.decisions.iter().any(|decision| decision.why.contains("tells of a queue")));
}

#[test]
fn one_connection_stands_for_a_number_that_is_not_whole() {
    for scheme in [Scheme::AIO_TFRC, Scheme::AUTO] {
        let (_, heard) = run(model(scheme, 0.04, 600));
        assert!(heard.samples.iter().all(|sample| sample.connections == 1));
        let flows: f64 = heard.samples[300..].iter().map(|sample| sample.flows).sum::<f64>() / 300.0;
        assert!((3.0..5.0).contains(&flows), "{flows}");
        assert!(heard.samples.iter().any(|sample| sample.flows.fract() > 0.01));
    }
}

#[test]
fn auto_uses_nearly_all_of_the_link_with_a_short_queue() {
    for loss in [0.01, 0.02, 0.05, 0.1] {
        let (totals, _) = run(model(Scheme::AUTO, loss, 2000));
        let used =
            totals.links[0].transmitted.as_f64() * 8.0 / totals.counted.as_secs_f64() / BANDWIDTH.as_f64();
        let rtt = totals.flows[0].rtt_mean;
        assert!(used > 0.94 && rtt < Duration::from_millis(168 * 6 / 5), "{loss}: {used}, {rtt}");
    }
}

#[test]
fn a_flow_that_stops_sends_nothing_more_and_the_same_seed_gives_the_same() {
    let stopping = || {
        let mut model = model(Scheme::Fixed(4), 0.02, 60);
        model.flows[0].stop = Some(Time::ZERO + Duration::from_secs(30));
        run(model)
    };
    let (totals, heard) = stopping();
    assert!(heard.samples[31..].iter().all(|sample| sample.sent == 0 && sample.connections == 0));
    assert!(heard.samples[10].connections == 4 && heard.samples[10].flows == 4.0);
    assert_eq!(totals, stopping().0);
}

#[test]
fn a_flow_without_connections_is_refused() {
    let refused = |scheme| -> ModelError { Simulation::new(model(scheme, 0.0, 10)).unwrap_err() };
    for count in [0, 1001] {
        assert!(refused(Scheme::Fixed(count)).problem.contains("1 to 1000 connections"));
    }
}
