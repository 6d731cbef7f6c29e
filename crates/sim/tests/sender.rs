//! The sender's side: flows that count for several, and smooth ones, beside plain TCP.

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::vps::Weight;
use anabranch_sim::Simulation;
use anabranch_sim::model::{Flow, Form, Kind, Link, Model, Node, Run, Share, Source, Tcp, When};
use anabranch_sim::report::{FlowSample, Observer};
use anabranch_units::{Bytes, Duration, Rate, Time};

const SECONDS: u64 = 200;

/// Flows of these congestion controls through 15 Mbps and 20 ms with 80 packets, behind access links of 100
/// Mbps and 1 ms with 0 to 2.6 ms more on the far side: where all flows come out of one node, those that grow
/// bear nearly all drops. Throughput of each in Mbps, and how much it varies from second to second, as a part
/// of its mean.
fn run(controls: &[&str], seed: u64) -> Vec<(f64, f64)> {
    let node = |name: String| Node::new(name);
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
    // As published: it is bound to no one's share. Four flows beside four plain ones would have half of the
    // link.
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

/// Members of a group with these weights beside as many Reno flows, all from one server through 4 Mbps for
/// each of the first; what each delivered in every second, Mbps. `change`: the flows that begin late, at 40
/// s, and that stop, at 80 s.
fn shared(form: Form, weights: &[f64], change: (Option<usize>, Option<usize>), seed: u64) -> Vec<Vec<f64>> {
    shared_with(form, weights, &Source::Greedy, change, seed)
}

/// The same where this is what the first member's application writes.
fn shared_with(
    form: Form,
    weights: &[f64],
    first: &Source,
    change: (Option<usize>, Option<usize>),
    seed: u64,
) -> Vec<Vec<f64>> {
    let count = weights.len();
    let node = |number| Node::new(format!("node{number}"));
    let milliseconds = Duration::from_millis;
    let rate = Rate::from_mbps(4 * count as u64);
    let (server, left, right, other) = (0, 1, 2, 3);
    let mut links = Vec::new();
    let mut duplex = |one, two, rate, delay, queue| {
        links.push(Link::drop_tail(one, two, rate, delay, queue));
        links.push(Link::drop_tail(two, one, rate, delay, 1000));
    };
    duplex(left, right, rate, milliseconds(50), 70 * count as u32);
    duplex(server, left, Rate::from_mbps(100), milliseconds(10), 2000);
    duplex(other, left, Rate::from_mbps(100), milliseconds(10), 2000);
    for receiver in 0..2 * count {
        duplex(right, 4 + receiver, Rate::from_mbps(100), milliseconds(10), 2000);
    }
    let flows = (0..2 * count).map(|number| {
        let weight = weights.get(number).map(|weight| Weight::new(*weight).expect("a weight"));
        let share =
            weight.map(|weight| Share { group: "group".into(), weight, by_need: None, watches: None, form });
        let from = if share.is_some() { server } else { other };
        let source = if number == 0 { first.clone() } else { Source::Greedy };
        let begin = if change.0 == Some(number) { 40 } else { 0 };
        let seconds = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let tcp = Tcp {
            congestion: Algorithm::Reno,
            delayed_ack: None,
            send_jitter: milliseconds(1),
            segment: Bytes::new(960),
            share,
            ..Tcp::DEPLOYED
        };
        Flow {
            name: format!("flow{number}"),
            start: When::Between(seconds(begin), seconds(begin + 1)),
            stop: (change.1 == Some(number)).then(|| seconds(80)),
            kind: Kind::Tcp { from, to: 4 + number, tcp, source },
        }
    });
    let model = Model {
        nodes: (0..4 + 2 * count).map(node).collect(),
        flows: flows.collect(),
        links,
        run: Run {
            duration: Duration::from_secs(120),
            seed,
            sampling: Duration::from_secs(1),
            warm_up: Duration::ZERO,
        },
    };
    let mut samples = Samples(vec![Vec::new(); 2 * count]);
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut samples);
    samples.0
}

/// Allocation accuracy A (VPS, equations 1 and 2) of what members delivered.
fn accuracy(delivered: &[f64], weights: &[f64]) -> f64 {
    let (total, sum): (f64, f64) = (delivered.iter().sum(), weights.iter().sum());
    let each: Vec<f64> = delivered.iter().zip(weights).map(|(r, w)| r / total * sum / w).collect();
    each.iter().sum::<f64>().powi(2) / (each.len() as f64 * each.iter().map(|a| a * a).sum::<f64>())
}

/// Mean allocation accuracy in a second at 1:4:8, and what the group gets beside as many plain flows.
fn accuracy_and_share(form: Form) -> (f64, f64) {
    let weights = [1.0, 4.0, 8.0];
    let (mut group, mut plain, mut accuracies) = (0.0, 0.0, Vec::new());
    for seed in 1..=5 {
        let delivered = shared(form, &weights, (None, None), seed);
        for second in 10..120 {
            let now: Vec<f64> = delivered.iter().map(|flow| flow[second]).collect();
            accuracies.push(accuracy(&now[..3], &weights));
            group += now[..3].iter().sum::<f64>();
            plain += now[3..].iter().sum::<f64>();
        }
    }
    (accuracies.iter().sum::<f64>() / accuracies.len() as f64, group / plain)
}

#[test]
fn a_group_keeps_its_weights_and_its_share() {
    let (accuracy, share) = accuracy_and_share(Form::Vps);
    assert!(accuracy > 0.98, "{accuracy}");
    assert!((0.85..1.15).contains(&share), "{share}");
}

#[test]
fn a_group_under_one_window_keeps_its_weights_and_its_share() {
    let (accuracy, share) = accuracy_and_share(Form::Window);
    assert!(accuracy > 0.95, "{accuracy}");
    assert!((0.85..1.15).contains(&share), "{share}");
}

#[test]
fn flows_join_and_leave_a_group() {
    for (form, within) in [(Form::Vps, 0.05), (Form::Window, 0.1)] {
        let weights = [2.0, 1.0, 1.0];
        let delivered = shared(form, &weights, (Some(1), Some(0)), 3);
        let ratio = |one: usize, other: usize, seconds: std::ops::Range<usize>| {
            let sum = |flow: usize| delivered[flow][seconds.clone()].iter().sum::<f64>();
            sum(one) / sum(other)
        };
        let before = ratio(0, 2, 10..40) / 2.0;
        assert!((before - 1.0).abs() < within, "{form:?}: {before}");
        assert!(delivered[1][..40].iter().sum::<f64>() == 0.0);
        let joined = ratio(0, 1, 42..80) / 2.0;
        assert!((joined - 1.0).abs() < within, "{form:?}: {joined}");
        // The one that leaves hands over its share: the others go on as two of five flows.
        let left = ratio(1, 2, 83..120);
        assert!((left - 1.0).abs() < within, "{form:?}: {left}");
        assert!(delivered[0][83..].iter().sum::<f64>() == 0.0);
    }
}

/// One of two members sends this: how much less it gets than where it sends all it can, and how much more the
/// other one does, Mbps. Means over eight seeds.
fn left_and_gained(form: Form, source: &Source) -> (f64, f64) {
    let mean = |flow: &Vec<f64>| flow[10..].iter().sum::<f64>() / (flow.len() - 10) as f64;
    let (mut left, mut gained) = (0.0, 0.0);
    for seed in 1..=8 {
        let free = shared(form, &[1.0, 1.0], (None, None), seed);
        let held = shared_with(form, &[1.0, 1.0], source, (None, None), seed);
        left += (mean(&free[0]) - mean(&held[0])) / 8.0;
        gained += (mean(&held[1]) - mean(&free[1])) / 8.0;
    }
    (left, gained)
}

#[test]
fn what_a_member_leaves_goes_to_the_other() {
    // Windows hand on less than packets do.
    for (form, part) in [(Form::Vps, 0.8), (Form::Window, 0.38)] {
        let (left, gained) = left_and_gained(form, &Source::Constant(Rate::from_mbps(1)));
        assert!(left > 0.5 && gained > part * left, "{form:?}: {gained} of {left}");
    }
}

#[test]
fn a_member_that_sends_in_bursts_costs_the_other_little() {
    // 128 KiB every second, as iperf3 sends at 1 Mbps. Where all that is lost of a burst counts for the whole
    // group it costs the other 0.48.
    let burst = |second| (Time::ZERO + Duration::from_secs(second), Bytes::new(128 << 10));
    let (left, gained) = left_and_gained(Form::Window, &Source::Timetable((0..120).map(burst).collect()));
    assert!(left > 0.5 && gained > -0.35, "{gained} of {left}");
}
