//! TFRC through the simulator: it fills a link, keeps to its equation, and shares with TCP.

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::response::{Equation, TcpModel};
use anabranch_congestion::tfrc::Parameters;
use anabranch_sim::Simulation;
use anabranch_sim::model::{
    Discipline, Flow, Kind, Limit, Link, LossModel, Model, Node, Queue, Run, Source, Tcp, When,
};
use anabranch_sim::report::{Decision, FlowSample, Observer, PacketKind, PacketRecord, Totals};
use anabranch_units::{Bytes, Duration, Rate, Time};

const SIZE: Bytes = Bytes::new(1000);
const BOTH: [Parameters; 2] = [Parameters::RFC5348, Parameters::NS2];

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn link(from: usize, to: usize, kbps: u64, queue: u32, loss: LossModel) -> Link {
    Link {
        name: format!("{from}-{to}"),
        from,
        to,
        rate: Rate::from_kbps(kbps),
        delay: Duration::from_millis(25),
        queue: Queue { limit: Limit::Packets(queue), discipline: Discipline::DropTail },
        policer: None,
        shaper: None,
        loss,
        jitter: None,
        duplicate: 0.0,
        changes: Vec::new(),
        opportunities: None,
    }
}

fn tfrc(parameters: Parameters) -> Kind {
    Kind::Tfrc { from: 0, to: 1, size: SIZE, parameters, scheme: Scheme::TFRC }
}

/// Flows from node 0 to node 1 over one link of this rate, both directions 25 ms.
fn model(kbps: u64, queue: u32, loss: LossModel, seconds: u64, kinds: Vec<Kind>) -> Model {
    let flow = |(id, kind)| Flow {
        name: format!("f{id}"),
        start: When::Between(Time::ZERO, at(1)),
        stop: None,
        kind,
    };
    Model {
        nodes: ["sender", "receiver"].map(Node::new).into(),
        links: vec![link(0, 1, kbps, queue, loss), link(1, 0, kbps, queue, LossModel::None)],
        flows: kinds.into_iter().enumerate().map(flow).collect(),
        run: Run {
            duration: Duration::from_secs(seconds),
            seed: 3,
            sampling: Duration::from_secs(1),
            warm_up: Duration::from_secs(10),
        },
    }
}

fn run(model: Model, observer: &mut dyn Observer) -> Totals {
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), observer);
    simulation.totals()
}

#[test]
fn alone_it_fills_a_link() {
    for parameters in BOTH {
        let totals = run(model(1000, 20, LossModel::None, 120, vec![tfrc(parameters)]), &mut ());
        let (flow, link) = (&totals.flows[0], &totals.links[0]);
        let rate = flow.arrived_wire.as_f64() * 8.0 / totals.counted.as_secs_f64();
        assert!(rate >= 0.97e6, "{rate}");
        assert!(link.queue_max <= 20 && flow.delivered == flow.arrived_wire);
        // What fits is not asked for much more than it can carry.
        assert!(flow.dropped * 50 < flow.sent, "{flow:?}");
        // The round trip is the propagation and the queue.
        let longest = Duration::from_millis(50 + 8 * 20 + 1);
        assert!(flow.rtt_mean > Duration::from_millis(58) && flow.rtt_mean < longest, "{}", flow.rtt_mean);
    }
}

#[test]
fn under_losses_the_rate_is_that_of_the_equation() {
    for loss in [0.003, 0.01, 0.03] {
        let model = model(10_000, 100, LossModel::Bernoulli(loss), 1000, vec![tfrc(Parameters::RFC5348)]);
        let totals = run(model, &mut ());
        let flow = &totals.flows[0];
        let events = flow.loss_events as f64 / flow.sent as f64;
        assert!(events < loss * 1.1 && events > loss * 0.8, "{events}");
        let tcp = TcpModel { packets_per_ack: 1, timeout: flow.rtt_mean * 4 };
        let expected = tcp.throughput_by(Equation::Rfc5348, SIZE, flow.rtt_mean, events).as_f64();
        let rate = flow.sent as f64 * 8.0 * SIZE.as_f64() / totals.counted.as_secs_f64();
        assert!((rate / expected - 1.0).abs() < 0.15, "{rate} instead of {expected}");
        assert_eq!((flow.dropped, flow.timeouts), (0, 0));
    }
}

#[test]
fn with_tcp_it_shares_a_bottleneck() {
    for parameters in BOTH {
        // 1040 bytes on the wire for both, the link's delay in packets as queue.
        let tcp = Tcp { segment: SIZE, ..Tcp::DEPLOYED };
        let tcp = Kind::Tcp { from: 0, to: 1, tcp, source: Source::Greedy };
        let tfrc = Kind::Tfrc { from: 0, to: 1, size: Bytes::new(1040), parameters, scheme: Scheme::TFRC };
        let kinds = [tcp, tfrc].iter().cycle().take(8).cloned().collect();
        let totals = run(model(5000, 40, LossModel::None, 300, kinds), &mut ());
        let share = |first: usize| {
            let flows = totals.flows.iter().skip(first).step_by(2);
            flows.map(|flow| flow.arrived_wire.as_f64()).sum::<f64>()
        };
        let ratio = share(0) / share(1);
        assert!((0.5..=2.0).contains(&ratio), "{ratio}");
    }
}

/// What a run tells.
#[derive(Debug, Default, PartialEq)]
struct Told {
    samples: Vec<FlowSample>,
    decisions: Vec<Decision>,
    packets: Vec<PacketRecord>,
}

impl Observer for Told {
    fn flow(&mut self, sample: &FlowSample) {
        self.samples.push(*sample);
    }
    fn decision(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
    }
    fn packet(&mut self, packet: &PacketRecord) {
        self.packets.push(*packet);
    }
    fn wants_loss_events(&self) -> bool {
        true
    }
    fn wants_packets(&self) -> bool {
        true
    }
}

#[test]
fn runs_are_the_same_and_tell_what_happens() {
    let run = || {
        let flows = vec![tfrc(Parameters::RFC5348), tfrc(Parameters::NS2)];
        let mut model = model(1000, 10, LossModel::Bernoulli(0.01), 60, flows);
        model.flows[1].stop = Some(at(30));
        let mut told = Told::default();
        let totals = run(model, &mut told);
        (totals, told)
    };
    let (totals, told) = run();
    assert!((&totals, &told) == (&run().0, &run().1), "two runs differ");

    // After its end a flow sends nothing, and the other has the link alone.
    let late = |flow| told.samples.iter().filter(move |s| s.flow == flow && s.at > at(32));
    assert_eq!(late(1).map(|sample| sample.sent).sum::<u64>(), 0);
    assert!(late(0).map(|sample| sample.sent).sum::<u64>() > 2000);
    assert!(late(0).all(|sample| sample.srtt > Duration::from_millis(50) && sample.cwnd.is_zero()));

    let events = told.decisions.iter().filter(|decision| decision.what == "loss_event").count() as u64;
    assert!(events >= totals.flows.iter().map(|flow| flow.loss_events).sum() && events > 10, "{events}");

    // Packets are datagrams with numbers in order, reports go the other way.
    let of = |from_opener| {
        let packets = told.packets.iter().filter(move |p| p.flow == 0 && p.from_opener == from_opener);
        packets.collect::<Vec<_>>()
    };
    for (packets, link, size) in [(of(true), 0, SIZE), (of(false), 1, Bytes::new(40))] {
        assert!(packets.len() > 100);
        assert!(packets.iter().all(|p| p.link == link && p.source == link && p.size == size));
        let number = |packet: &&PacketRecord| match packet.what {
            PacketKind::Datagram(number) => number,
            other => panic!("{other:?}"),
        };
        assert!(packets.iter().map(number).is_sorted_by(|one, two| one < two));
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for size in [0, 65_536] {
        let kind = Kind::Tfrc {
            from: 0,
            to: 1,
            size: Bytes::new(size),
            parameters: Parameters::default(),
            scheme: Scheme::TFRC,
        };
        let error =
            Simulation::new(model(1000, 10, LossModel::None, 20, vec![kind])).expect_err("impossible");
        assert!(error.to_string().contains("1 to 65535 bytes"), "{error}");
    }
}
