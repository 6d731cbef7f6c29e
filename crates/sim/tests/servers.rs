//! Servers that do not allow everything, against arithmetic.

use anabranch_film::content::Policy;
use anabranch_film::session::Pace;
use anabranch_sim::Simulation;
use anabranch_sim::model::{
    Above, Flow, Kind, Link, LossModel, Media, Model, MostConnections, Node, RateControl, Run, Server, Tcp,
    When,
};
use anabranch_sim::report::{Decision, FlowSample, Observer, Totals};
use anabranch_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

const SECONDS: u64 = 40;

fn fixed(connections: u32) -> RateControl {
    RateControl::Fixed { connections, window: None }
}

/// Streams from the server (node 0), each of a client of its own, 20 Mbps and 20 ms away, that takes what
/// comes.
fn model(server: Server, algorithms: &[RateControl]) -> Model {
    let rate = Rate::from_mbps(20);
    let link = |from, to| Link::drop_tail(from, to, rate, Duration::from_millis(20), 500);
    let flow = |(client, algorithm): (usize, &RateControl)| {
        let media = Media {
            client: client + 1,
            servers: vec![0],
            tcp: Tcp::DEPLOYED,
            rate: Rate::from_kbps(800),
            size: None,
            pace: Pace::Max,
            algorithm: algorithm.clone(),
            playback: anabranch_film::playback::Parameters::default(),
            reader: None,
            ladder: None,
            policy: Policy::expected(Bytes::mib(512)),
            largest_window: None,
            connect_timeout: Some(Duration::from_secs(10)),
            connections_per_server: 16,
        };
        let (start, kind) = (When::At(Time::ZERO), Kind::Media(Box::new(media)));
        Flow { name: format!("stream{client}"), start, stop: None, kind }
    };
    let clients = 1..=algorithms.len();
    let mut nodes: Vec<_> = (0..=algorithms.len()).map(|number| Node::new(format!("node{number}"))).collect();
    nodes[0].server = server;
    Model {
        nodes,
        links: clients.flat_map(|client| [link(0, client), link(client, 0)]).collect(),
        flows: algorithms.iter().enumerate().map(flow).collect(),
        run: Run {
            duration: Duration::from_secs(SECONDS),
            seed: 3,
            sampling: Duration::from_secs(1),
            warm_up: Duration::ZERO,
        },
    }
}

#[derive(Default)]
struct Seen {
    decisions: Vec<Decision>,
    samples: Vec<FlowSample>,
}

impl Observer for Seen {
    fn decision(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
    }

    fn flow(&mut self, sample: &FlowSample) {
        self.samples.push(*sample);
    }
}

impl Seen {
    /// When something was decided or seen, and why.
    fn of(&self, what: &str) -> Vec<(f64, &str)> {
        let those = self.decisions.iter().filter(|decision| decision.what == what);
        those.map(|decision| (decision.at.as_secs_f64(), decision.why.as_str())).collect()
    }

    fn most_connections(&self, flow: usize) -> u32 {
        let of_flow = self.samples.iter().filter(|sample| sample.flow == flow);
        of_flow.map(|sample| sample.connections).max().unwrap_or(0)
    }
}

fn run(model: Model) -> (Totals, Seen) {
    let mut simulation = Simulation::new(model).expect("a possible model");
    let mut seen = Seen::default();
    simulation.run_until(simulation.end(), &mut seen);
    (simulation.totals(), seen)
}

/// Payload of each stream, in Mbps over the whole run.
fn rates(server: Server, algorithms: &[RateControl]) -> Vec<f64> {
    let totals = run(model(server, algorithms)).0;
    totals.flows.iter().map(|flow| flow.delivered.as_f64() * 8e-6 / SECONDS as f64).collect()
}

fn is_near(measured: f64, expected: f64) -> bool {
    // The set-up and the first request take two of so many round trips, and answers have headers.
    (0.98 * expected..=expected).contains(&measured)
}

fn connection_cap(mbps: u64) -> Server {
    Server { connection_cap: Some(Rate::from_mbps(mbps)), ..Server::default() }
}

fn client_cap(mbps: u64) -> Server {
    Server { client_cap: Some(Rate::from_mbps(mbps)), ..Server::default() }
}

fn most_connections(most: u32, above: Above) -> Server {
    Server { connections: Some(MostConnections { most, above }), ..Server::default() }
}

#[test]
fn each_connection_gets_its_cap() {
    for connections in [1, 2, 4] {
        let rate = rates(connection_cap(1), &[fixed(connections)])[0];
        assert!(is_near(rate, f64::from(connections)), "{connections} connections: {rate}");
    }
    // The path has less than what 16 of 2 Mbps would be.
    let rate = rates(connection_cap(2), &[fixed(16)])[0];
    assert!((18.0..20.0).contains(&rate), "{rate}");
}

#[test]
fn a_client_gets_its_cap_whatever_the_number_of_connections() {
    for connections in [1, 3, 8] {
        let rate = rates(client_cap(2), &[fixed(connections)])[0];
        assert!(is_near(rate, 2.0), "{connections} connections: {rate}");
    }
    let both = Server { connection_cap: Some(Rate::from_mbps(1)), ..client_cap(3) };
    let rate = rates(both, &[fixed(2)])[0];
    assert!(is_near(rate, 2.0), "{rate}");
    let rate = rates(both, &[fixed(5)])[0];
    assert!(is_near(rate, 3.0), "{rate}");
}

#[test]
fn each_client_has_a_cap_of_its_own_and_its_streams_share_it() {
    let each = rates(client_cap(2), &[fixed(1), fixed(4)]);
    assert!(each.iter().all(|rate| is_near(*rate, 2.0)), "{each:?}");
    // Both at one client: connections take turns.
    let mut together = model(client_cap(4), &[fixed(1), fixed(3)]);
    let Kind::Media(second) = &mut together.flows[1].kind else { panic!("no stream") };
    second.client = 1;
    let flows = run(together).0.flows;
    let ratio = flows[1].delivered.as_f64() / flows[0].delivered.as_f64();
    let sum = (flows[0].delivered + flows[1].delivered).as_f64() * 8e-6 / SECONDS as f64;
    assert!((2.9..3.1).contains(&ratio) && is_near(sum, 4.0), "{ratio} {sum}");
}

#[test]
fn what_a_cap_holds_back_waits_in_no_queue() {
    let mut model = model(connection_cap(1), &[fixed(4)]);
    let Kind::Media(media) = &mut model.flows[0].kind else { panic!("no stream") };
    media.tcp.delayed_ack = None;
    let (totals, _) = run(model);
    let flow = &totals.flows[0];
    assert!(flow.rtt_mean < Duration::from_millis(42), "{:?}", flow.rtt_mean);
    assert!(totals.links[0].queue_max <= 12, "{}", totals.links[0].queue_max);
}

#[test]
fn a_refused_connection_fails_in_a_round_trip_and_is_tried_again() {
    let (totals, seen) = run(model(most_connections(2, Above::Refuse), &[fixed(4)]));
    assert_eq!(seen.most_connections(0), 2);
    assert!(totals.flows[0].delivered > Bytes::mib(80), "{}", totals.flows[0].delivered);
    let (opened, lost) = (seen.of("open"), seen.of("connection_failed"));
    // Two stay; at the end two more may be on their way.
    assert!((2..=4).contains(&(opened.len() - lost.len())), "{} of {}", lost.len(), opened.len());
    assert!((0.04..0.042).contains(&lost[0].0), "{lost:?}");
    assert!(lost.iter().all(|(_, why)| *why == "the server refuses the connection"), "{lost:?}");
    // The session waits before it tries again.
    assert!(lost[2].0 - lost[0].0 >= 0.5, "{lost:?}");
}

#[test]
fn a_connection_that_nobody_answers_is_given_up_after_ten_seconds() {
    let (_, seen) = run(model(most_connections(1, Above::Drop), &[fixed(2)]));
    assert_eq!(seen.most_connections(0), 1);
    let lost = seen.of("connection_failed");
    assert!((10.0..10.2).contains(&lost[0].0) && lost[0].1.starts_with("no answer within"), "{lost:?}");
    assert!((2..=4).contains(&lost.len()), "{lost:?}");
}

#[test]
fn a_busy_server_lowers_what_the_session_asks_of_it() {
    let (totals, seen) = run(model(most_connections(2, Above::Busy), &[fixed(8)]));
    let lost = seen.of("connection_failed");
    // A round trip for the set-up, and one for the request.
    assert!((0.08..0.1).contains(&lost[0].0) && lost[0].1.contains("503"), "{lost:?}");
    // Each 503 halves how many connections the path gets: after six there is no asking for a minute.
    assert_eq!(lost.len(), 6, "{lost:?}");
    assert!(totals.flows[0].delivered > Bytes::mib(80), "{}", totals.flows[0].delivered);
}

#[test]
fn a_place_that_becomes_free_is_taken_by_the_next() {
    let mut two = model(most_connections(1, Above::Refuse), &[fixed(1), fixed(1)]);
    two.flows[0].stop = Some(Time::ZERO + Duration::from_secs(10));
    // The first client's farewell is lost, and all that it says later.
    let down = |at| anabranch_sim::model::Change {
        at: Time::ZERO + Duration::from_secs_f64(at),
        rate: None,
        delay: None,
        loss: Some(LossModel::Bernoulli(1.0)),
    };
    two.links[1].changes = vec![down(9.9999)];
    let (totals, seen) = run(two);
    assert_eq!((seen.most_connections(0), seen.most_connections(1)), (1, 1));
    let second: Vec<_> = seen.samples.iter().filter(|sample| sample.flow == 1).collect();
    let first_byte = second.iter().find(|sample| !sample.delivered.is_zero()).unwrap().at.as_secs_f64();
    // It tries again at least every 15 s.
    assert!((10.0..=26.0).contains(&first_byte), "{first_byte}");
    assert!(totals.flows[1].delivered > Bytes::mib(20), "{}", totals.flows[1].delivered);
}

#[test]
fn auto_opens_as_many_connections_as_a_cap_makes_necessary() {
    let parameters = anabranch_film::auto::Parameters::default();
    let cap = Server { connection_cap: Some(Rate::from_kbps(300)), ..Server::default() };
    let mut model = model(cap, &[RateControl::Auto(parameters)]);
    let Kind::Media(media) = &mut model.flows[0].kind else { panic!("no stream") };
    media.pace = Pace::Media(Some(media.rate));
    media.size = Some(media.rate.amount_in(Duration::from_secs(30)));
    let (totals, seen) = run(model);
    assert!((3..=6).contains(&seen.most_connections(0)), "{}", seen.most_connections(0));
    assert_eq!(totals.flows[0].delivered, Bytes::new(3_000_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No more comes than the caps let pass, no more connections are there than are allowed, and the same
    /// seed gives the same run.
    #[test]
    fn bounds_are_kept(
        own in proptest::option::of(50u64..5000),
        client in proptest::option::of(50u64..5000),
        most in proptest::option::of((1u32..5, 0usize..3)),
        connections in (1u32..6, 1u32..6),
        loss in 0.0..0.05,
        seed: u64,
    ) {
        let above = [Above::Refuse, Above::Busy, Above::Drop];
        let server = Server {
            connection_cap: own.map(Rate::from_kbps),
            client_cap: client.map(Rate::from_kbps),
            connections: most.map(|(most, number)| MostConnections { most, above: above[number] }),
        };
        let mut model = model(server, &[fixed(connections.0), fixed(connections.1)]);
        model.run.duration = Duration::from_secs(8);
        model.run.seed = seed;
        model.links[0].loss = LossModel::Bernoulli(loss);
        let (totals, seen) = run(model.clone());
        let (again, _) = run(model);
        prop_assert_eq!(format!("{totals:?}"), format!("{again:?}"));
        for (flow, totals) in totals.flows.iter().enumerate() {
            let own = own.map(|kbps| kbps * u64::from([connections.0, connections.1][flow]));
            if let Some(kbps) = own.into_iter().chain(client).min() {
                // The first piece goes at once, of each connection.
                let most = kbps as f64 * 1000.0 / 8.0 * 8.0 + 6.0 * 8000.0;
                prop_assert!(totals.delivered.as_f64() <= most, "{} of {most}", totals.delivered);
            }
        }
        if let Some((most, number)) = most && number != 1 {
            prop_assert!(seen.most_connections(0).min(seen.most_connections(1)) <= most);
        }
    }
}
