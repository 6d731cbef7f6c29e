//! Media streams through the simulator: the session of `stream` holds a film's rate over simulated TCP.

use anabranch_film::session::Pace;
use anabranch_sim::Simulation;
use anabranch_sim::model::{
    Flow, Kind, Limit, Link, LossModel, Media, Model, Node, RateControl, Run, Source, Tcp, When,
};
use anabranch_sim::report::{FlowSample, Observer, Totals};
use anabranch_units::{Bytes, Duration, Rate, Time};

fn link(from: usize, to: usize, kbps: u64, loss: LossModel) -> Link {
    Link { loss, ..Link::drop_tail(from, to, Rate::from_kbps(kbps), Duration::from_millis(20), 50) }
}

/// A client (node 0) and servers with a link each of these rates, all with this loss towards the client.
fn model(kbps: &[u64], loss: f64, algorithm: RateControl, pace: Pace) -> Model {
    let rate = Rate::from_kbps(800);
    let names = (0..=kbps.len()).map(|node| Node::new(format!("node{node}")));
    let mut links = Vec::new();
    for (server, kbps) in kbps.iter().enumerate() {
        links.push(link(0, server + 1, *kbps, LossModel::None));
        links.push(link(server + 1, 0, *kbps, LossModel::Bernoulli(loss)));
    }
    let media = Media {
        client: 0,
        servers: (1..=kbps.len()).collect(),
        tcp: Tcp::DEPLOYED,
        rate,
        size: Some(rate.amount_in(Duration::from_secs(60))),
        pace,
        algorithm,
        playback: anabranch_film::playback::Parameters::default(),
        reader: None,
        ladder: None,
        policy: anabranch_film::content::Policy::expected(Bytes::mib(64)),
        largest_window: None,
        connect_timeout: None,
        connections_per_server: 8,
    };
    Model {
        nodes: names.collect(),
        links,
        flows: vec![Flow {
            name: "film".to_owned(),
            start: When::At(Time::ZERO),
            stop: None,
            kind: Kind::Media(Box::new(media)),
        }],
        run: Run {
            duration: Duration::from_secs(80),
            seed: 1,
            sampling: Duration::from_secs(1),
            warm_up: Duration::ZERO,
        },
    }
}

fn run(kbps: &[u64], loss: f64, algorithm: RateControl, pace: Pace) -> Totals {
    let mut simulation = Simulation::new(model(kbps, loss, algorithm, pace)).expect("a possible model");
    simulation.run_until(simulation.end(), &mut ());
    simulation.totals()
}

fn fixed(connections: u32) -> RateControl {
    RateControl::Fixed { connections, window: None }
}

fn auto() -> RateControl {
    RateControl::Auto(anabranch_film::auto::Parameters::default())
}

#[test]
fn one_connection_holds_the_rate_on_an_idle_path() {
    let totals = run(&[2000], 0.0, auto(), Pace::Media(Some(Rate::from_kbps(800))));
    let media = totals.flows[0].media.unwrap();
    assert_eq!((media.stalls, media.connections_max), (0, 1), "{media:?}");
    assert_eq!(totals.flows[0].delivered, Bytes::new(6_000_000));
    assert!(media.startup.unwrap() < Duration::from_secs(2), "{media:?}");
}

#[test]
fn three_servers_carry_what_one_cannot() {
    let one = run(&[400], 0.0, fixed(1), Pace::Max);
    assert!(one.flows[0].media.unwrap().stalls > 0);
    let three = run(&[400, 400, 400], 0.0, auto(), Pace::Media(Some(Rate::from_kbps(800))));
    let media = three.flows[0].media.unwrap();
    assert_eq!(media.stalls, 0, "{media:?}");
    assert_eq!(three.flows[0].delivered, Bytes::new(6_000_000));
}

#[test]
fn several_connections_hold_the_rate_through_losses() {
    let one = run(&[10_000], 0.12, fixed(1), Pace::Max).flows[0].media.unwrap();
    let several =
        run(&[10_000], 0.12, auto(), Pace::Media(Some(Rate::from_kbps(800)))).flows[0].media.unwrap();
    assert!(several.stalled < one.stalled, "one: {one:?}, several: {several:?}");
    assert!(several.connections_max > 1);
}

#[test]
fn a_limit_is_held_by_reading_no_faster() {
    let totals = run(&[10_000], 0.0, fixed(1), Pace::Limit(Rate::from_kbps(800)));
    let sixty_seconds_of_it = 6_000_000;
    assert_eq!(totals.flows[0].delivered, Bytes::new(sixty_seconds_of_it));
    let media = totals.flows[0].media.unwrap();
    assert_eq!(media.stalls, 0, "{media:?}");
    // It took as long as the limit says: the last byte was not there much before a minute.
    assert!(totals.links[1].packets > 4000);
}

/// Windows at the end of each second, and what arrived in it.
#[derive(Default)]
struct Seconds(Vec<(Bytes, Bytes)>);

impl Observer for Seconds {
    fn flow(&mut self, sample: &FlowSample) {
        self.0.push((sample.receive_window, sample.delivered));
    }
}

#[test]
fn a_window_set_on_an_open_connection_holds_it() {
    // 8 packets of 1460 bytes a round trip of 40 ms and their transmission at 10 Mbps: less than 2.3 Mbps,
    // where the path has 10.
    let window = Bytes::new(8 * 1460);
    let algorithm = RateControl::Fixed { connections: 1, window: Some(window) };
    let mut simulation =
        Simulation::new(model(&[10_000], 0.0, algorithm, Pace::Max)).expect("a possible model");
    let mut seconds = Seconds::default();
    simulation.run_until(Time::ZERO + Duration::from_secs(10), &mut seconds);
    for (set, delivered) in &seconds.0[1..] {
        assert_eq!(*set, window);
        let rate = Rate::of(*delivered, Duration::from_secs(1));
        assert!(rate > Rate::from_kbps(1900) && rate < Rate::from_kbps(2300), "{rate}");
    }
}

#[test]
fn mul_opens_connections_where_one_leaves_the_link_unused() {
    let mut many =
        model(&[4000], 0.02, RateControl::Mul(anabranch_congestion::multfrc::Parameters::FAST), Pace::Max);
    let mut one = model(&[4000], 0.02, fixed(1), Pace::Max);
    let delivered = [&mut many, &mut one].map(|model| {
        let Kind::Media(media) = &mut model.flows[0].kind else { panic!("no stream") };
        media.size = None;
        model.run.duration = Duration::from_secs(200);
        let mut simulation = Simulation::new(model.clone()).expect("a possible model");
        simulation.run_until(simulation.end(), &mut ());
        let totals = simulation.totals();
        let connections = totals.flows[0].media.expect("a stream").connections_max;
        (totals.flows[0].delivered.as_f64(), connections)
    });
    let [(many, connections), (one, _)] = delivered;
    assert!(connections > 2 && many > 1.3 * one, "{connections} connections: {many} against {one}");
}

/// Round trips are of a second there, and a connection takes many of them to find its window: who closes those that
/// have not found it begins again and again.
#[test]
fn auto_keeps_connections_that_have_not_found_their_window_behind_a_long_queue() {
    let stalled = |start: u64| {
        let mut model = model(&[10_000], 0.0, auto(), Pace::Media(Some(Rate::from_kbps(4000))));
        for link in &mut model.links {
            link.queue.limit = Limit::Packets(1000);
        }
        let Kind::Media(media) = &mut model.flows[0].kind else { panic!("no stream") };
        media.rate = Rate::from_kbps(4000);
        media.size = None;
        for number in 0..4 {
            model.flows.push(Flow {
                name: format!("bulk{number}"),
                start: When::At(Time::ZERO + Duration::from_secs(start)),
                stop: None,
                kind: Kind::Tcp { from: 1, to: 0, tcp: Tcp::DEPLOYED, source: Source::Greedy },
            });
        }
        model.run.duration = Duration::from_secs(240);
        let mut simulation = Simulation::new(model).expect("a possible model");
        simulation.run_until(simulation.end(), &mut ());
        simulation.totals().flows[0].media.expect("a stream").stalled.as_secs_f64()
    };
    let stalled: Vec<f64> = (12..32).map(stalled).collect();
    // With everything closed that has not found its window after six seconds it is 29.6 s.
    let mean = stalled.iter().sum::<f64>() / 20.0;
    assert!(mean < 15.0, "stalled {stalled:?} s of 240");
}
