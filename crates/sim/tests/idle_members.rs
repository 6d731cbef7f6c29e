//! Members of a group that send little or nothing: what they do not use is no share that the others may take
//! from strangers.

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::vps::Weight;
use anabranch_sim::Simulation;
use anabranch_sim::model::{Flow, Form, Kind, Link, Model, Node, Run, Share, Source, Tcp, When};
use anabranch_sim::report::{FlowSample, Observer};
use anabranch_units::{Bytes, Duration, Rate, Time};

/// Delivered in every second by each flow, Mbps: the group's members, each with what its application writes,
/// and last a plain Reno that sends all it can. All go through 20 Mbps and 30 ms with 100 packets.
fn run(form: Form, members: &[Source], seconds: u64, seed: u64) -> Vec<Vec<f64>> {
    let (server, other, middle, end) = (0, 1, 2, 3);
    let access = Rate::from_mbps(1000);
    let milliseconds = Duration::from_millis;
    let mut links = Vec::new();
    for (from, to, rate, delay, queue) in [
        (server, middle, access, 1, 10_000),
        (other, middle, access, 1, 10_000),
        (middle, end, Rate::from_mbps(20), 30, 100),
    ] {
        links.push(Link::drop_tail(from, to, rate, milliseconds(delay), queue));
        links.push(Link::drop_tail(to, from, rate, milliseconds(delay), 10_000));
    }
    let tcp =
        |share| Tcp { congestion: Algorithm::Reno, send_jitter: milliseconds(1), share, ..Tcp::DEPLOYED };
    let share =
        || Some(Share { group: "group".into(), weight: Weight::ONE, by_need: None, watches: None, form });
    let flow = |name: String, from, share, source: &Source| Flow {
        name,
        start: When::Between(Time::ZERO, Time::ZERO + Duration::from_secs(1)),
        stop: None,
        kind: Kind::Tcp { from, to: end, tcp: tcp(share), source: source.clone() },
    };
    let mut flows: Vec<_> = members
        .iter()
        .enumerate()
        .map(|(number, source)| flow(format!("member{number}"), server, share(), source))
        .collect();
    flows.push(flow("plain".into(), other, None, &Source::Greedy));
    let mut samples = Samples(vec![Vec::new(); flows.len()]);
    let model = Model {
        nodes: (0..4).map(|number| Node::new(format!("node{number}"))).collect(),
        links,
        flows,
        run: Run {
            duration: Duration::from_secs(seconds),
            seed,
            sampling: Duration::from_secs(1),
            warm_up: Duration::ZERO,
        },
    };
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut samples);
    samples.0
}

struct Samples(Vec<Vec<f64>>);

impl Observer for Samples {
    fn flow(&mut self, sample: &FlowSample) {
        self.0[sample.flow].push(sample.delivered.as_f64() * 8e-6);
    }
}

/// The first member sends all it can from the beginning on, and the others this: what the whole group has in
/// these seconds as a multiple of what the plain flow has, over four seeds.
fn beside_a_plain_flow(form: Form, others: &[Source], seconds: std::ops::Range<usize>) -> f64 {
    let members: Vec<_> = [Source::Greedy].into_iter().chain(others.iter().cloned()).collect();
    let (mut group, mut plain) = (0.0, 0.0);
    for seed in 1..=4 {
        let delivered = run(form, &members, seconds.end as u64, seed);
        let sum = |flow: &Vec<f64>| flow[seconds.clone()].iter().sum::<f64>();
        group += delivered[..members.len()].iter().map(sum).sum::<f64>();
        plain += sum(&delivered[members.len()]);
    }
    group / plain
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Twenty members with 8 kbps each: the group has what its one download has alone.
fn trickles(form: Form) {
    let ratio = beside_a_plain_flow(form, &vec![Source::Constant(Rate::from_kbps(8)); 20], 10..100);
    let alone = beside_a_plain_flow(form, &[], 10..100);
    println!("{form:?}: {ratio} {alone}");
    assert!((0.7..1.3).contains(&(ratio / alone)), "{form:?}: {ratio} {alone}");
}

/// Ten members that have fetched 300 kB each and stay.
fn idle(form: Form) {
    let fetched = Source::Timetable(vec![(at(1), Bytes::new(300_000))]);
    let ratio = beside_a_plain_flow(form, &vec![fetched; 10], 15..40);
    let alone = beside_a_plain_flow(form, &[], 15..40);
    println!("{form:?}: {ratio} {alone}");
    assert!((0.7..1.3).contains(&(ratio / alone)), "{form:?}: {ratio} {alone}");
}

#[test]
fn connections_that_send_next_to_nothing_bring_no_share_of_strangers() {
    trickles(Form::Vps);
}

#[test]
fn connections_that_send_next_to_nothing_bring_no_share_of_strangers_by_windows() {
    trickles(Form::Window);
}

#[test]
fn connections_that_are_idle_bring_no_share_of_strangers() {
    idle(Form::Vps);
}

#[test]
fn connections_that_are_idle_bring_no_share_of_strangers_by_windows() {
    idle(Form::Window);
}

#[test]
fn who_comes_back_after_a_rest_has_its_share_within_seconds() {
    // It asks for 200 kB, rests for twenty seconds, and then for more than it can have.
    for form in [Form::Vps, Form::Window] {
        let back = Source::Timetable(vec![(at(1), Bytes::new(200_000)), (at(20), Bytes::new(1 << 30))]);
        let (mut first, mut second, mut plain) = (0.0, 0.0, 0.0);
        for seed in 1..=4 {
            let delivered = run(form, &[Source::Greedy, back.clone()], 60, seed);
            let sum = |flow: usize| delivered[flow][25..].iter().sum::<f64>();
            first += sum(0);
            second += sum(1);
            plain += sum(2);
        }
        println!("{form:?}: {first} {second} {plain}");
        // The members share evenly. Two greedy members have 1.3 times what the plain flow has here when
        // nobody rests.
        assert!((0.85..1.15).contains(&(second / first)), "{form:?}: {second} {first}");
        assert!((1.1..3.0).contains(&((first + second) / plain)), "{form:?}: {first} {second} {plain}");
    }
}
