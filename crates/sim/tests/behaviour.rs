//! What links and TCP do, seen from outside.

use anabranch_sim::Simulation;
use anabranch_sim::model::{
    Change, CoDel, Congestion, Discipline, Flow, FqCoDel, GilbertElliott, Jitter, Kind, Limit, Link,
    LossModel, Model, Node, Pattern, Pie, Red, Run, Source, Spread, Tcp, TokenBucket, When,
};
use anabranch_sim::report::{FlowSample, Observer, Totals};
use anabranch_units::{Bytes, Duration, Rate, Time};

/// Two nodes, 10 Mbps and 20 ms each way.
fn model(seconds: u64, kinds: Vec<Kind>) -> Model {
    let link = |from, to| Link::drop_tail(from, to, Rate::from_mbps(10), Duration::from_millis(20), 500);
    let flow = |(number, kind)| Flow {
        name: format!("flow{number}"),
        start: When::At(Time::ZERO),
        stop: None,
        kind,
    };
    Model {
        nodes: ["a", "b"].map(Node::new).into(),
        links: vec![link(0, 1), link(1, 0)],
        flows: kinds.into_iter().enumerate().map(flow).collect(),
        run: Run {
            duration: Duration::from_secs(seconds),
            seed: 7,
            sampling: Duration::from_millis(100),
            warm_up: Duration::ZERO,
        },
    }
}

fn tcp(tcp: Tcp, source: Source) -> Kind {
    Kind::Tcp { from: 0, to: 1, tcp, source }
}

fn udp(kbps: u64) -> Kind {
    let pattern = Pattern::Constant { rate: Rate::from_kbps(kbps), jitter: false };
    Kind::Udp { from: 0, to: 1, size: Bytes::new(1000), pattern }
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

#[derive(Default)]
struct Samples(Vec<FlowSample>);

impl Observer for Samples {
    fn flow(&mut self, sample: &FlowSample) {
        self.0.push(*sample);
    }
}

fn run(model: Model) -> (Totals, Vec<FlowSample>) {
    let mut simulation = Simulation::new(model).expect("a possible model");
    let mut samples = Samples::default();
    simulation.run_until(simulation.end(), &mut samples);
    (simulation.totals(), samples.0)
}

/// Mean number of waiting packets and utilisation of the first link.
fn queue_and_use(totals: &Totals) -> (f64, f64) {
    let seconds = totals.counted.as_secs_f64();
    let link = &totals.links[0];
    (link.waited.as_secs_f64() / seconds, link.transmitted.as_f64() * 8e-7 / seconds)
}

#[test]
fn active_queues_stay_short_and_the_link_full() {
    let kinds = || {
        (0..4).map(|_| tcp(Tcp { congestion: Congestion::Reno, ..Tcp::DEPLOYED }, Source::Greedy)).collect()
    };
    let with = |discipline| {
        let mut model = model(60, kinds());
        model.links[0].queue.discipline = discipline;
        run(model).0
    };
    let (tail, _) = queue_and_use(&with(Discipline::DropTail));
    let red = Red { low: 5.0, high: 30.0, most: 0.1, weight: 0.002, ecn: false };
    let (red, red_use) = queue_and_use(&with(Discipline::Red(red)));
    let codel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false };
    let (codel, codel_use) = queue_and_use(&with(Discipline::CoDel(codel)));
    let (pie, pie_use) =
        queue_and_use(&with(Discipline::Pie(Pie { target: Duration::from_millis(15), ecn: false })));
    assert!(tail > 200.0, "{tail}");
    // 15 ms are twelve packets.
    assert!((6.0..18.0).contains(&pie) && pie_use > 0.93, "{pie} {pie_use}");
    assert!((4.0..35.0).contains(&red), "{red}");
    // 5 ms are four packets; four flows keep it a few times that.
    assert!((1.0..25.0).contains(&codel), "{codel}");
    assert!(red_use > 0.93 && codel_use > 0.9, "{red_use} {codel_use}");
}

fn fq_codel() -> Discipline {
    let codel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false };
    Discipline::FqCoDel(FqCoDel { codel, quantum: Bytes::new(1514) })
}

#[test]
fn queues_of_flows_protect_tcp_from_a_flood() {
    let reno = || tcp(Tcp { congestion: Congestion::Reno, ..Tcp::DEPLOYED }, Source::Greedy);
    let share = |discipline| {
        let mut model = model(60, vec![reno(), udp(20_000)]);
        model.links[0].queue.discipline = discipline;
        run(model).0.flows[0].delivered.as_f64() * 8e-6 / 60.0
    };
    let (beside_droptail, own_queue) = (share(Discipline::DropTail), share(fq_codel()));
    assert!(beside_droptail < 0.5, "{beside_droptail}");
    // Half of 10 Mbps, less headers and what Reno leaves of it.
    assert!((3.8..5.0).contains(&own_queue), "{own_queue}");
}

#[test]
fn a_flow_that_sends_little_does_not_wait_for_those_that_send_much() {
    let greedy = || tcp(Tcp { congestion: Congestion::Reno, ..Tcp::DEPLOYED }, Source::Greedy);
    let rtt = |discipline| {
        let little = tcp(Tcp { delayed_ack: None, ..Tcp::DEPLOYED }, Source::Constant(Rate::from_kbps(234)));
        let mut model = model(60, vec![greedy(), greedy(), greedy(), little]);
        model.links[0].queue.discipline = discipline;
        run(model).0.flows[3].rtt_mean.as_secs_f64() * 1e3
    };
    // 40 ms, its own transmission, and that of the packet that it finds and of other flows' turns.
    assert!(rtt(Discipline::DropTail) > 200.0);
    assert!(rtt(fq_codel()) < 46.0, "{}", rtt(fq_codel()));
}

#[test]
fn a_full_queue_of_flows_counts_what_it_drops() {
    let mut model = model(20, vec![udp(15_000), udp(1000)]);
    model.links[0].queue.discipline = fq_codel();
    model.links[0].queue.limit = Limit::Bytes(Bytes::new(30_000));
    for flow in &mut model.flows {
        flow.stop = Some(at(15.0));
    }
    let totals = run(model).0;
    let link = &totals.links[0];
    assert_eq!(link.offered, link.transmitted.get() / 1000 + link.dropped);
    assert_eq!(totals.flows[0].dropped + totals.flows[1].dropped, link.dropped);
    assert_eq!(totals.flows[1].dropped, 0, "the longest queue loses");
    assert!(link.queue_max <= 30);
}

#[test]
fn a_queue_in_bytes_holds_so_many() {
    let mut model = model(20, vec![udp(12_500)]);
    model.links[0].queue.limit = Limit::Bytes(Bytes::new(15_000));
    let (totals, _) = run(model);
    let link = &totals.links[0];
    assert_eq!(link.queue_max, 15);
    let dropped = link.dropped as f64 / link.offered as f64;
    assert!((dropped - 0.2).abs() < 0.002, "{dropped}");
}

#[test]
fn losses_come_in_bursts_of_the_model_s_length() {
    let mut model = model(200, vec![udp(8000)]);
    let bursts = GilbertElliott { to_bad: 0.01, to_good: 0.24, loss_good: 0.0, loss_bad: 1.0 };
    model.links[0].loss = LossModel::GilbertElliott(bursts);
    let (totals, _) = run(model);
    let flow = &totals.flows[0];
    let lost = flow.lost as f64 / flow.sent as f64;
    // The share of the bad state: 0.01 / (0.01 + 0.24).
    assert!((lost - 0.04).abs() < 0.003, "{lost}");
}

fn jittery(seconds: u64, kind: Kind, reorders: bool) -> Model {
    let mut model = model(seconds, vec![kind]);
    let spread = Spread::Exponential { mean: Duration::from_millis(10) };
    model.links[0].jitter = Some(Jitter { spread, reorders });
    model
}

#[test]
fn jitter_adds_its_mean_to_the_round_trip() {
    // Twenty packets a second, so that few have to wait for the one before.
    let tcp = tcp(Tcp { delayed_ack: None, ..Tcp::DEPLOYED }, Source::Constant(Rate::from_kbps(234)));
    let without = run(model(400, vec![tcp.clone()])).0.flows[0].rtt_mean.as_secs_f64();
    for reorders in [false, true] {
        let with = run(jittery(400, tcp.clone(), reorders)).0.flows[0].rtt_mean.as_secs_f64();
        assert!((with - without - 0.010).abs() < 0.001, "{with} in place of {without} s, {reorders}");
    }
}

#[test]
fn packets_that_overtake_each_other_look_lost_to_tcp_and_those_in_order_do_not() {
    let greedy = || tcp(Tcp::DEPLOYED, Source::Greedy);
    // A window that the queue holds: nothing is dropped.
    let retransmitted = |reorders| {
        let mut model = jittery(60, greedy(), reorders);
        model.links[0].queue.limit = Limit::Packets(100_000);
        let flow = run(model).0.flows[0].clone();
        assert_eq!((flow.lost, flow.dropped), (0, 0));
        flow.retransmitted
    };
    assert_eq!(retransmitted(false), 0);
    assert!(retransmitted(true) > 100);
}

#[test]
fn every_packet_arrives_over_links_behind_one_that_reorders() {
    let mut model = jittery(20, udp(2000), true);
    model.nodes.push(Node::new("c"));
    model.links.push(Link::drop_tail(1, 2, Rate::from_mbps(10), Duration::from_millis(5), 500));
    model.flows[0].stop = Some(at(15.0));
    let Kind::Udp { to, .. } = &mut model.flows[0].kind else { unreachable!() };
    *to = 2;
    let flow = run(model).0.flows[0].clone();
    assert_eq!(flow.delivered, Bytes::new(flow.sent * 1000), "{flow:?}");
}

#[test]
fn what_comes_twice_is_taken_once_by_tcp_and_twice_by_datagrams() {
    let file = Source::File(Bytes::new(5_000_000));
    let mut model = model(60, vec![tcp(Tcp::DEPLOYED, file), udp(1000)]);
    for link in &mut model.links {
        link.duplicate = 0.2;
    }
    let totals = run(model).0;
    let (tcp, udp) = (&totals.flows[0], &totals.flows[1]);
    assert_eq!(tcp.delivered, Bytes::new(5_000_000));
    assert!(tcp.completed.is_some() && tcp.retransmitted == tcp.dropped, "{tcp:?}");
    let ratio = udp.delivered.as_f64() / 1000.0 / udp.sent as f64;
    assert!((1.19..1.21).contains(&ratio), "{ratio}");
}

#[test]
fn a_policer_passes_its_rate_and_one_burst() {
    let mut model = model(100, vec![udp(8000)]);
    model.links[0].policer = Some(TokenBucket { rate: Rate::from_mbps(2), burst: Bytes::kib(64) });
    let (totals, _) = run(model);
    let passed = totals.flows[0].delivered.as_f64();
    let expected = 2e6 / 8.0 * 100.0 + 65_536.0;
    assert!((passed / expected - 1.0).abs() < 0.001, "{passed} in place of {expected}");
    assert_eq!(totals.links[0].queue_max, 1, "nothing waits behind it");
}

#[test]
fn a_shaper_holds_back_what_a_policer_drops() {
    let mut model = model(100, vec![udp(2500)]);
    model.links[0].shaper = Some(TokenBucket { rate: Rate::from_mbps(2), burst: Bytes::new(10_000) });
    let (totals, _) = run(model);
    let (flow, link) = (&totals.flows[0], &totals.links[0]);
    let expected = 2e6 / 8.0 * 100.0 + 10_000.0;
    let passed = flow.delivered.as_f64();
    assert!((passed / expected - 1.0).abs() < 0.001, "{passed} in place of {expected}");
    // The queue of 500 is full, a fifth of what comes is dropped.
    assert_eq!(link.queue_max, 500);
    let dropped = flow.dropped as f64 / flow.sent as f64;
    assert!((dropped - (0.2 - 500.0 / 31_250.0)).abs() < 0.005, "{dropped}");
}

#[test]
fn a_shaper_lets_a_burst_pass_at_the_rate_of_the_wire() {
    let took = |bytes, shaper| {
        let mut model = model(20, vec![tcp(Tcp::DEPLOYED, Source::File(Bytes::new(bytes)))]);
        model.links[0].shaper = shaper;
        let totals = run(model).0;
        assert_eq!(totals.flows[0].dropped, 0);
        totals.flows[0].completed.unwrap().as_secs_f64()
    };
    let shaper = Some(TokenBucket { rate: Rate::from_mbps(1), burst: Bytes::kib(100) });
    assert_eq!(took(50_000, shaper), took(50_000, None));
    // What is beyond the burst takes its time at 1 Mbps, with headers.
    let (free, held) = (took(200_000, None), took(200_000, shaper));
    let least = (200_000.0 * 1500.0 / 1460.0 - 102_400.0) * 8e-6;
    assert!(held > least && held < free + least, "{held} {free} {least}");
}

#[test]
fn a_shaped_queue_under_pie_stays_short() {
    let reno = || tcp(Tcp { congestion: Congestion::Reno, ..Tcp::DEPLOYED }, Source::Greedy);
    let mut model = model(60, (0..4).map(|_| reno()).collect());
    let link = &mut model.links[0];
    link.rate = Rate::from_mbps(100);
    link.shaper = Some(TokenBucket { rate: Rate::from_mbps(10), burst: Bytes::new(5000) });
    link.queue.discipline = Discipline::Pie(Pie { target: Duration::from_millis(15), ecn: false });
    let (waiting, utilisation) = queue_and_use(&run(model).0);
    assert!((6.0..18.0).contains(&waiting) && utilisation > 0.93, "{waiting} {utilisation}");
}

#[test]
fn a_lost_set_up_is_tried_again_after_the_initial_time_out() {
    let mut model = model(5, vec![tcp(Tcp::DEPLOYED, Source::File(Bytes::new(1000)))]);
    model.links[0].loss = LossModel::Listed(vec![0]);
    let completed = run(model).0.flows[0].completed.unwrap().as_secs_f64();
    // A second, then two round trips but for the last half.
    assert!((1.06..1.07).contains(&completed), "{completed}");
}

#[test]
fn time_outs_back_off_while_a_link_is_down_and_the_flow_goes_on_after_it() {
    let mut model = model(40, vec![tcp(Tcp::DEPLOYED, Source::Greedy)]);
    let change = |seconds, mbps| Change {
        at: at(seconds),
        rate: Some(Rate::from_mbps(mbps)),
        delay: None,
        loss: None,
    };
    model.links[0].changes = vec![change(5.0, 0), change(20.0, 10)];
    let (totals, samples) = run(model);
    // Doubling from somewhere between 0.2 and 0.6 s: five to seven of them go into 15 s.
    let timeouts = totals.flows[0].timeouts;
    assert!((4..=8).contains(&timeouts), "{timeouts}");
    let delivered = |from: f64, to: f64| -> u64 {
        let within = samples.iter().filter(|sample| sample.at > at(from) && sample.at <= at(to));
        within.map(|sample| sample.delivered.get()).sum()
    };
    assert_eq!(delivered(6.0, 20.0), 0);
    assert!(delivered(35.0, 40.0) > 5_000_000, "{}", delivered(35.0, 40.0));
}

#[test]
fn the_window_shrinks_after_an_idle_time_unless_it_is_told_not_to() {
    let sent_at_once = |idle_restart| {
        let files = vec![(at(0.0), Bytes::new(2_000_000)), (at(10.0), Bytes::new(500_000))];
        let tcp_settings = Tcp { idle_restart, congestion: Congestion::Reno, ..Tcp::DEPLOYED };
        let mut model = model(12, vec![tcp(tcp_settings, Source::Timetable(files))]);
        model.run.sampling = Duration::from_millis(10);
        let (totals, samples) = run(model);
        assert_eq!(totals.flows[0].delivered, Bytes::new(2_500_000));
        let begins = |sample: &&FlowSample| sample.at > at(10.0) && sample.at <= at(10.03);
        samples.iter().filter(begins).map(|sample| sample.sent).sum::<u64>()
    };
    assert_eq!(sent_at_once(true), 10);
    assert!(sent_at_once(false) > 40);
}

#[test]
fn a_flow_that_stops_sends_nothing_more() {
    let mut model = model(10, vec![tcp(Tcp::DEPLOYED, Source::Greedy), udp(1000)]);
    for flow in &mut model.flows {
        flow.stop = Some(at(5.0));
    }
    let (_, samples) = run(model);
    let late: u64 = samples.iter().filter(|sample| sample.at > at(6.0)).map(|sample| sample.sent).sum();
    assert_eq!(late, 0);
}

#[test]
fn cubic_and_reno_fill_a_link_together() {
    let reno = Tcp { congestion: Congestion::Reno, ..Tcp::DEPLOYED };
    let kinds = vec![tcp(Tcp::DEPLOYED, Source::Greedy), tcp(reno, Source::Greedy)];
    let mut model = model(120, kinds);
    model.links[0].queue.limit = Limit::Packets(60);
    let (totals, _) = run(model);
    let [cubic, reno] = [0, 1].map(|flow: usize| totals.flows[flow].delivered.as_f64() * 8.0 / 120e6);
    assert!(cubic + reno > 9.0, "{cubic} {reno}");
    assert!((0.3..3.0).contains(&(cubic / reno)), "{cubic} {reno}");
}
