//! Marks in place of drops (RFC 3168), seen from outside, and held against what theory says of them.

use anabranch_sim::Simulation;
use anabranch_sim::model::Model;
use anabranch_sim::report::Totals;
use anabranch_sim::scenario::{Beside, parse};

/// A dumbbell: 10 Mbps and a round trip of 40 ms but for the queue.
fn scenario(discipline: &str, tcp: &str, flows: u32) -> Model {
    let text = format!(
        r#"
        run = {{ duration = "120s", warm_up = "20s" }}
        [topology]
        kind = "dumbbell"
        pairs = {flows}
        access = {{ rate = "1Gbps", delay = "1ms" }}
        bottleneck = {{ rate = "10Mbps", delay = "18ms", queue = "1000 packets", discipline = {discipline} }}
        [[flow]]
        name = "flow"
        kind = "tcp"
        count = {flows}
        from = "sender{{i}}"
        to = "receiver{{i}}"
        start = ["0s", "1s"]
        tcp = {tcp}
        "#
    );
    parse("ecn.toml", &text, None, &mut Beside(".".as_ref())).expect("a scenario")
}

fn run(model: Model) -> Totals {
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut ());
    simulation.totals()
}

/// Those of the bottleneck, of which the model has the first two directions.
fn bottleneck(model: &Model) -> usize {
    model.links.iter().position(|link| link.name == "left-right").expect("a bottleneck")
}

const DISCIPLINES: [&str; 4] = [
    r#"{ kind = "red", low = 5, high = 60, most = 0.1, weight = 0.002, ecn = true }"#,
    r#"{ kind = "codel", ecn = true }"#,
    r#"{ kind = "fq-codel", ecn = true }"#,
    r#"{ kind = "pie", ecn = true }"#,
];

/// After slow start, in which PIE and RED drop because marks are not enough.
#[test]
fn who_knows_marks_loses_nothing_and_gets_as_much() {
    for discipline in DISCIPLINES {
        let with = scenario(discipline, r#"{ congestion = "reno", ecn = "classic" }"#, 4);
        let link = bottleneck(&with);
        let with = run(with);
        let without = run(scenario(discipline, r#"{ congestion = "reno" }"#, 4));
        let lost = |totals: &Totals| totals.flows.iter().map(|flow| flow.dropped + flow.lost).sum::<u64>();
        let marked = |totals: &Totals| totals.flows.iter().map(|flow| flow.marked).sum::<u64>();
        let delivered =
            |totals: &Totals| totals.flows.iter().map(|flow| flow.delivered.as_f64()).sum::<f64>();
        assert_eq!(
            (lost(&with), with.flows.iter().map(|flow| flow.retransmitted).sum()),
            (0, 0u64),
            "{discipline}"
        );
        assert!(marked(&with) > 100 && marked(&without) == 0 && lost(&without) > 100, "{discipline}");
        assert!(with.links[link].marked.abs_diff(marked(&with)) < 50, "{discipline}");
        assert!(delivered(&with) > 0.99 * delivered(&without), "{discipline}");
        // A window is reduced once for all marks of a round trip.
        let cuts = with.flows.iter().map(|flow| flow.loss_events).sum::<u64>();
        assert!(cuts > 40 && cuts <= marked(&with), "{discipline}: {cuts} of {}", marked(&with));
    }
}

/// Reno's window is sqrt(3/2) / sqrt(p) segments (Mathis et al. 1997), where p is the rate of reductions; two
/// segments an acknowledgement make it grow half as fast: sqrt(3/4) / sqrt(p).
#[test]
fn the_window_follows_the_square_root_of_the_marks() {
    for (flows, delayed, constant) in [(2, "false", 1.5f64), (8, "false", 1.5), (4, "true", 0.75)] {
        let tcp = format!(r#"{{ congestion = "reno", ecn = "classic", delayed_ack = {delayed} }}"#);
        let totals = run(scenario(DISCIPLINES[0], &tcp, flows));
        for flow in &totals.flows {
            let seconds = totals.counted.as_secs_f64();
            let window = flow.delivered.as_f64() / 1460.0 * flow.rtt_mean.as_secs_f64() / seconds;
            let rate = flow.loss_events as f64 / flow.sent as f64;
            let ratio = window / (constant / rate).sqrt();
            assert!((0.8..1.15).contains(&ratio), "{flows} flows, {delayed}: {ratio}");
        }
    }
}

/// CUBIC where it is Reno's friend (RFC 9438, section 4.3) and TFWC, whose answers to marks are their own.
#[test]
fn every_window_control_answers_marks_without_a_loss() {
    for congestion in ["reno", "cubic", "multcp:2", "tfwc", "ttfwc:0.9"] {
        let tcp = format!(r#"{{ congestion = "{congestion}", ecn = "classic" }}"#);
        let model = scenario(r#"{ kind = "codel", ecn = true }"#, &tcp, 3);
        let link = bottleneck(&model);
        let totals = run(model);
        let seconds = totals.counted.as_secs_f64();
        let lost: u64 = totals.flows.iter().map(|flow| flow.dropped).sum();
        let used = totals.links[link].transmitted.as_f64() * 8.0 / 10e6 / seconds;
        let waiting = totals.links[link].waited.as_secs_f64() / seconds;
        assert!(lost == 0 && used > 0.9, "{congestion}: {lost} lost, {used}");
        assert!(waiting < 30.0, "{congestion}: {waiting} packets wait");
        let shares: Vec<_> = totals.flows.iter().map(|flow| flow.delivered.as_f64()).collect();
        let (least, most) =
            (shares.iter().copied().fold(f64::MAX, f64::min), shares.iter().copied().fold(0.0, f64::max));
        assert!(most < 2.0 * least, "{congestion}: {shares:?}");
    }
}

/// One in three datagrams of a neighbour is dropped where the flow's segments are marked.
#[test]
fn who_knows_no_marks_is_dropped_beside_those_who_do() {
    let mut model = scenario(r#"{ kind = "codel", ecn = true }"#, r#"{ ecn = "classic" }"#, 2);
    if let anabranch_sim::model::Kind::Tcp { tcp, .. } = &mut model.flows[1].kind {
        tcp.ecn = None;
    }
    let totals = run(model);
    assert!(totals.flows[0].marked > 20 && totals.flows[0].dropped == 0);
    assert!(totals.flows[1].marked == 0 && totals.flows[1].dropped > 20);
}

/// The receiver says it until it hears of the reduction, so lost acknowledgements lose no mark.
#[test]
fn marks_are_heard_where_acknowledgements_are_lost() {
    let mut model =
        scenario(r#"{ kind = "codel", ecn = true }"#, r#"{ congestion = "reno", ecn = "classic" }"#, 1);
    let back = model.links.iter().position(|link| link.name == "right-left").expect("the way back");
    model.links[back].loss = anabranch_sim::model::LossModel::Bernoulli(0.3);
    let flow = &run(model).flows[0];
    assert!(flow.dropped == 0 && flow.loss_events > 20, "{flow:?}");
    assert!(flow.loss_events as f64 > 0.9 * flow.marked as f64, "{flow:?}");
}
