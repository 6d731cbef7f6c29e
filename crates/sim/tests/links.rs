//! Links of every kind, with whatever numbers: what holds of all of them.

use anabranch_sim::Simulation;
use anabranch_sim::model::{
    Change, CoDel, Discipline, DualPi2, Ecn, Flow, FqCoDel, Jitter, Kind, Limit, Link, LossModel, Model,
    Node, Pattern, Pie, Red, Run, Source, Spread, Tcp, TokenBucket, When,
};
use anabranch_sim::report::Totals;
use anabranch_sim::scenario::{Beside, parse};
use anabranch_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

const SECONDS: u64 = 5;

fn disciplines() -> impl Strategy<Value = Discipline> {
    let codel = (1u64..50, 51u64..300, any::<bool>()).prop_map(|(target, interval, ecn)| CoDel {
        target: Duration::from_millis(target),
        interval: Duration::from_millis(interval),
        ecn,
    });
    let quantum = (1u64..5000).prop_map(Bytes::new);
    prop_oneof![
        Just(Discipline::DropTail),
        (0.5..20.0, 1.0..50.0, 0.001..1.0, 0.001..1.0, any::<bool>()).prop_map(
            |(low, more, most, weight, ecn)| {
                Discipline::Red(Red { low, high: low + more, most, weight, ecn })
            }
        ),
        (1u64..200, any::<bool>())
            .prop_map(|(target, ecn)| Discipline::Pie(Pie { target: Duration::from_millis(target), ecn })),
        codel.clone().prop_map(Discipline::CoDel),
        (1u64..100, 0.1..10.0, 0u64..5, 0u64..5).prop_map(|(target, coupling, threshold, range)| {
            let ms = Duration::from_millis;
            let (target, threshold, range) = (ms(target), ms(threshold), ms(range));
            Discipline::DualPi2(DualPi2 { target, coupling, threshold, range })
        }),
        (codel, quantum).prop_map(|(codel, quantum)| Discipline::FqCoDel(FqCoDel { codel, quantum })),
    ]
}

fn buckets() -> impl Strategy<Value = Option<TokenBucket>> {
    let bucket = (100u64..20_000, 1500u64..200_000);
    let bucket = bucket
        .prop_map(|(kbps, burst)| TokenBucket { rate: Rate::from_kbps(kbps), burst: Bytes::new(burst) });
    proptest::option::of(bucket)
}

fn jitters() -> impl Strategy<Value = Option<Jitter>> {
    let ms = |most: u64| (0..most).prop_map(Duration::from_millis);
    let spread = prop_oneof![
        ms(50).prop_map(|most| Spread::Uniform { most }),
        ms(50).prop_map(|mean| Spread::Exponential { mean }),
        (ms(50), ms(20)).prop_map(|(mean, deviation)| Spread::Normal { mean, deviation }),
    ];
    proptest::option::of((spread, any::<bool>()).prop_map(|(spread, reorders)| Jitter { spread, reorders }))
}

prop_compose! {
    fn links()(
        kbps in 100u64..20_000,
        delay in 0u64..100,
        packets in 1u32..200,
        discipline in disciplines(),
        policer in buckets(),
        shaper in buckets(),
        jitter in jitters(),
        duplicate in prop_oneof![Just(0.0), 0.0..1.0],
        loss in prop_oneof![Just(0.0), 0.0..0.3],
    ) -> Link {
        let mut link = Link::drop_tail(0, 1, Rate::from_kbps(kbps), Duration::from_millis(delay), packets);
        link.queue.discipline = discipline;
        Link { policer, shaper, jitter, duplicate, loss: LossModel::Bernoulli(loss), ..link }
    }
}

/// A connection and datagrams over a link like this.
fn run(link: Link, seed: u64) -> Totals {
    let back = Link::drop_tail(1, 0, link.rate, link.delay, 100);
    let pattern = Pattern::Constant { rate: link.rate, jitter: true };
    let kinds = [
        Kind::Tcp {
            from: 0,
            to: 1,
            tcp: Tcp { ecn: Some(Ecn::Classic), ..Tcp::DEPLOYED },
            source: Source::Greedy,
        },
        Kind::Udp { from: 0, to: 1, size: Bytes::new(1200), pattern },
    ];
    let flow = |(number, kind)| Flow {
        name: format!("flow{number}"),
        start: When::At(Time::ZERO),
        stop: None,
        kind,
    };
    let model = Model {
        nodes: ["a", "b"].map(Node::new).into(),
        links: vec![link, back],
        flows: kinds.into_iter().enumerate().map(flow).collect(),
        run: Run {
            duration: Duration::from_secs(SECONDS),
            seed,
            sampling: Duration::from_secs(1),
            warm_up: Duration::ZERO,
        },
    };
    let mut simulation = Simulation::new(model).expect("a possible model");
    simulation.run_until(simulation.end(), &mut ());
    simulation.totals()
}

/// What a rate and a burst let pass in the time of a run.
fn most(rate: Rate, burst: Bytes) -> f64 {
    (rate.amount_in(Duration::from_secs(SECONDS)) + burst).as_f64()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No packet appears or vanishes, nobody is faster than a bucket or the wire, and the same seed gives the
    /// same run.
    #[test]
    fn what_comes_is_accounted_for(link in links(), seed: u64) {
        let totals = run(link.clone(), seed);
        let there = totals.links[0];
        let queued = u64::from(there.queue_max);
        let (gone, offered) = (there.packets + there.dropped, there.offered);
        prop_assert!(gone <= offered && offered <= gone + queued, "{there:?}");
        prop_assert!(there.queue_max <= 200 && there.lost <= there.packets + queued, "{there:?}");
        // A packet in transmission at the end counts when it has left.
        let transmitted = there.transmitted.as_f64();
        prop_assert!(transmitted <= most(link.rate, Bytes::ZERO) + 1500.0, "{there:?}");
        for bucket in [link.policer, link.shaper].into_iter().flatten() {
            prop_assert!(transmitted <= most(bucket.rate, bucket.burst) + 1500.0, "{there:?} {bucket:?}");
        }
        let [tcp, udp] = &totals.flows[..] else { panic!("two flows") };
        prop_assert!(tcp.delivered.as_f64() <= transmitted, "{tcp:?}");
        let arrived = udp.delivered.as_f64() / 1200.0;
        prop_assert!(arrived <= 2.0 * udp.sent as f64 && (link.duplicate > 0.0 || arrived <= udp.sent as f64));
        prop_assert_eq!(format!("{totals:?}"), format!("{:?}", run(link, seed)));
    }

    /// Most links have a rate, a delay and a full queue's drops and nothing else, and are computed in a shorter
    /// way: it is the way of all links, as where a delay changes when the run is over.
    #[test]
    fn a_link_with_nothing_special_is_as_one_whose_changes_never_come(
        kbps in 100u64..20_000,
        delay in 0u64..100,
        packets in 1u32..200,
        counts_bytes: bool,
        seed: u64,
    ) {
        let mut plain = Link::drop_tail(0, 1, Rate::from_kbps(kbps), Duration::from_millis(delay), packets);
        if counts_bytes {
            plain.queue.limit = Limit::Bytes(Bytes::new(1500 * u64::from(packets)));
        }
        let late = Change {
            at: Time::ZERO + Duration::from_secs(1000),
            rate: None,
            delay: Some(Duration::from_millis(1)),
            loss: None,
        };
        let changing = Link { changes: vec![late], ..plain.clone() };
        prop_assert_eq!(format!("{:?}", run(plain, seed)), format!("{:?}", run(changing, seed)));
    }
}

/// A link that only delays comes behind one whose queue is asked when a packet leaves: some packets are told
/// of as they come there, others as they leave.
#[test]
fn packets_keep_their_order_behind_a_queue_that_is_asked_again() {
    for discipline in ["codel", "fq-codel"] {
        let text = format!(
            r#"
            run = {{ duration = "20s" }}
            [topology]
            kind = "dumbbell"
            pairs = 1
            access = {{ rate = "1Gbps", delay = "1ms" }}
            [topology.bottleneck]
            rate = "10Mbps"
            delay = "18ms"
            queue = "1000 packets"
            discipline = "{discipline}"
            [[flow]]
            name = "flow"
            kind = "tcp"
            from = "sender1"
            to = "receiver1"
            tcp = {{ congestion = "reno" }}
            "#
        );
        let model = parse("order.toml", &text, None, &mut Beside(".".as_ref())).expect("a scenario");
        let mut simulation = Simulation::new(model).expect("a possible model");
        simulation.run_until(simulation.end(), &mut ());
        let flow = &simulation.totals().flows[0];
        assert!(flow.dropped > 5 && flow.retransmitted == flow.dropped, "{discipline}: {flow:?}");
    }
}
