//! What a loss costs when the window is spread over several connections (MultiTCP section 6.1).

use anabranch_congestion::response::lost_volume;
use anabranch_sim::model::{
    Congestion, Discipline, Flow, Kind, Limit, Link, Loss, Model, Node, NodeId, Queue, Run, Source, Tcp, When,
};
use anabranch_units::{Bytes, Duration, Packets, Rate, Time};

use crate::case::{Case, Measured};
use crate::experiment::{
    Axis, Cell, Curve, Expected, Experiment, Job, Jobs, Plot, Points, Relation, Row, Table,
};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{self, Scheme};
use crate::simulate::Recording;

/// Payload of a packet (the paper's MTU).
const PACKET: Bytes = Bytes::new(1000);
/// The window of all connections together, in packets: large, so that the triangle is most of what is lost.
const LARGE: u32 = 480;
/// The one with which the thesis streams 800 kbps (section 8.1.1).
const SMALL: u32 = 8;
/// Numbers of connections among which the large window can be divided.
const CONNECTIONS: [u32; 6] = [1, 2, 3, 4, 5, 8];
/// When the loss happens, about.
const LOSS_AT: Duration = Duration::from_secs(10);
const DURATION: Duration = Duration::from_secs(40);
const RTT: Duration = Duration::from_millis(80);

/// One of the connections loses a packet.
const ONE_LOSES: Scheme = scheme::N1;
/// Each loses a packet, at the same time.
const ALL_LOSE: Scheme = scheme::N2;
/// Why more is lost than the triangle; the table has it for every window.
const BEYOND: &str = "the triangle is not all: while the lost packet is missing, the receive window lets nothing new out, which costs a whole \
    window, and that the window grows by whole packets costs three quarters of one; beside the triangle of a small window that is much";
const VOLUME: &str = "lost volume";
const COURSE: &str = "throughput";

/// The experiment.
pub fn experiment() -> Experiment {
    Experiment {
        id: "multitcp-eq6.4".into(),
        title: "What a loss costs when several connections share the window".into(),
        paper: papers::of("multitcp"),
        place: "section 6.1, equations (6.2) to (6.4) and figure 6.2".into(),
        claim: "A loss event on n of N connections, in a path without congestion, costs n W² MTU / (8 N²), where W is the window of all \
                connections together. The printed (6.4) drops the 8 that (6.2) and (6.3) have: a slip.".into(),
        assumed: vec![
            format!("W = {LARGE} packets of {PACKET} payload, RTT {RTT}; every link carries 100 Mbps and is never full"),
            "no delayed acknowledgements, as the section has the window grow by one packet every round trip; Reno with SACK".into(),
            "the lost volume is what the same run without a loss delivers more".into(),
            "10 % are granted for what the triangle leaves out, which grows with W and not with its square".into(),
        ],
        random: false,
        jobs: Jobs::new(|seed| {
            let large = CONNECTIONS.iter().flat_map(|n| [job(LARGE, ONE_LOSES, *n, seed), job(LARGE, ALL_LOSE, *n, seed)]);
            large.chain([job(SMALL, ONE_LOSES, 1, seed)]).collect()
        }),
        relations: relations(),
        plots: vec![volumes(), courses()],
        tables: vec![table()],
    }
}

fn setting(window: u32) -> String {
    format!("W = {window}")
}

fn job(window: u32, scheme: Scheme, connections: u32, seed: u64) -> Job {
    let losing = if scheme == ALL_LOSE { connections } else { 1 };
    let model = |losing| model(window, connections, losing, seed);
    Job {
        case: Case { setting: setting(window), ..Case::new(scheme, connections.into()) },
        models: vec![model(losing), model(0)],
        decisions: &[],
        measure: Box::new(|recordings| {
            let [with, without] = recordings else { return Measured::default() };
            let lost = delivered(without) - delivered(with);
            Measured::default().figure(VOLUME, lost.as_f64() / 1e3, "kB").series(COURSE, course(with))
        }),
    }
}

fn delivered(recording: &Recording) -> Bytes {
    recording.totals.flows.iter().map(|flow| flow.delivered).sum()
}

/// Seconds and Mbit/s of all connections together, from shortly before the loss.
fn course(recording: &Recording) -> Vec<(f64, f64)> {
    let mut course: Vec<(f64, f64)> = Vec::new();
    for sample in recording.flows.iter().filter(|sample| sample.at + RTT * 6 > Time::ZERO + LOSS_AT) {
        let (at, rate) = (sample.at.as_secs_f64(), Rate::of(sample.delivered, RTT).as_f64() / 1e6);
        match course.last_mut().filter(|(last, _)| *last == at) {
            Some((_, sum)) => *sum += rate,
            None => course.push((at, rate)),
        }
    }
    course
}

/// Every connection comes over a link of its own, on which its packet gets lost, and then over one for all.
fn model(window: u32, connections: u32, losing: u32, seed: u64) -> Model {
    const ROUTER: NodeId = 0;
    const RECEIVER: NodeId = 1;
    let window = Packets::new((window / connections).into());
    let in_flight = LOSS_AT.ratio_to(RTT) * window.as_f64();
    let mut nodes = vec![Node { name: "router".into() }, Node { name: "receiver".into() }];
    let mut links = Vec::new();
    let mut join = |from: NodeId, to: NodeId, delay: u64, loss: Loss| {
        for (from, to, loss) in [(from, to, loss), (to, from, Loss::None)] {
            links.push(Link {
                name: format!("{from}-{to}"),
                from,
                to,
                rate: Rate::from_mbps(100),
                delay: Duration::from_millis(delay),
                queue: Queue { limit: Limit::Packets(1000), discipline: Discipline::DropTail },
                loss,
                changes: Vec::new(),
                opportunities: None,
            });
        }
    };
    join(ROUTER, RECEIVER, 30, Loss::None);
    let mut flows = Vec::new();
    for index in 0..connections {
        let sender = nodes.len();
        nodes.push(Node { name: format!("sender {}", index + 1) });
        let lost = Packets::from_f64_ceil(in_flight).get();
        join(sender, ROUTER, 10, if index < losing { Loss::Listed(vec![lost]) } else { Loss::None });
        let tcp = Tcp {
            segment: PACKET,
            congestion: Congestion::Reno,
            receive_window: Some(window * PACKET),
            delayed_ack: None,
            ..Tcp::DEPLOYED
        };
        flows.push(Flow {
            name: format!("connection {}", index + 1),
            start: When::At(Time::ZERO),
            stop: None,
            kind: Kind::Tcp { from: sender, to: RECEIVER, tcp, source: Source::Greedy },
        });
    }
    Model {
        nodes,
        links,
        flows,
        run: Run { duration: DURATION, seed, sampling: RTT, warm_up: Duration::ZERO },
    }
}

fn formula(window: u32, connections: u32, losing: u32) -> f64 {
    lost_volume(Packets::new(window.into()), PACKET, connections, losing).as_f64() / 1e3
}

fn volume(seed: OneSeed<'_>, window: u32, scheme: Scheme, connections: u32) -> Option<f64> {
    seed.setting(&setting(window)).figure(scheme, connections.into(), VOLUME)
}

fn relations() -> Vec<Relation> {
    let one = |id: &str, window: u32, cause: Option<&str>| Relation {
        id: id.into(),
        claim: format!("what one connection with a window of {window} loses"),
        published: format!("W² MTU / 8 = {} kB", formula(window, 1, 1)),
        unit: "kB".into(),
        variant: String::new(),
        value: Box::new(move |seed| volume(seed, window, ONE_LOSES, 1)),
        expected: Expected::about(formula(window, 1, 1), 0.1),
        cause: cause.map(Into::into),
    };
    let ratio = |id: &str, claim: &str, published: f64, of: (Scheme, u32), to: (Scheme, u32)| Relation {
        id: id.into(),
        claim: claim.into(),
        published: published.to_string(),
        unit: "".into(),
        variant: String::new(),
        value: Box::new(move |seed| {
            Some(volume(seed, LARGE, of.0, of.1)? / volume(seed, LARGE, to.0, to.1)?)
        }),
        expected: Expected::about(published, 0.1),
        cause: None,
    };
    vec![
        one("6.2", LARGE, None),
        one("6.2-small", SMALL, Some(BEYOND)),
        ratio("6.3", "one connection's loss against that of one of two", 4.0, (ONE_LOSES, 1), (ONE_LOSES, 2)),
        ratio(
            "6.4-all",
            "one connection's loss against that of both of two",
            2.0,
            (ONE_LOSES, 1),
            (ALL_LOSE, 2),
        ),
        Relation {
            cause: Some(BEYOND.into()),
            ..ratio(
                "6.4-five",
                "one connection's loss against that of one of five",
                25.0,
                (ONE_LOSES, 1),
                (ONE_LOSES, 5),
            )
        },
        ratio(
            "6.4-n",
            "what all of four lose against what one of four loses",
            4.0,
            (ALL_LOSE, 4),
            (ONE_LOSES, 4),
        ),
    ]
}

fn volumes() -> Plot {
    let measured = |label: &str, scheme| Curve {
        label: label.into(),
        look: scheme,
        points: Points::Figure { scheme, setting: setting(LARGE), name: VOLUME.into() },
    };
    let printed = |label: &str, look: Scheme, losing: fn(u32) -> u32| Curve {
        label: label.into(),
        look,
        points: Points::Formula(
            CONNECTIONS.iter().map(|n| (f64::from(*n), formula(LARGE, *n, losing(*n)))).collect(),
        ),
    };
    Plot {
        id: "volume".into(),
        title: "Volume lost by a loss event, against the number of connections".into(),
        variant: String::new(),
        x: Axis::new("connections N", ""),
        y: Axis::new("lost volume", "kB"),
        curves: vec![
            measured("one loses (n = 1)", ONE_LOSES),
            measured("all lose (n = N)", ALL_LOSE),
            printed("(6.4) with its 8, n = 1", ONE_LOSES, |_| 1),
            printed("(6.4) with its 8, n = N", ALL_LOSE, |n| n),
        ],
    }
}

fn courses() -> Plot {
    let course = |label: &str, look: Scheme, scheme: Scheme, point: f64| Curve {
        label: label.into(),
        look,
        points: Points::Series { scheme, setting: setting(LARGE), point, name: COURSE.into() },
    };
    Plot {
        id: "course".into(),
        title: "Throughput after a loss event (figure 6.2)".into(),
        variant: String::new(),
        x: Axis { shows: None, ..Axis::new("time", "s") },
        y: Axis::new("throughput of all connections", "Mbps"),
        curves: vec![
            course("N = 1", scheme::N1, ONE_LOSES, 1.0),
            course("N = 2, one loses", scheme::N2, ONE_LOSES, 2.0),
            course("N = 2, both lose", scheme::N3, ALL_LOSE, 2.0),
            course("N = 5, one loses", scheme::N5, ONE_LOSES, 5.0),
        ],
    }
}

fn table() -> Table {
    let volume_cell = |scheme: Scheme, count: u32, losing: u32| Cell {
        published: Some(formula(LARGE, count, losing)),
        value: Box::new(move |seed| volume(seed, LARGE, scheme, count)),
    };
    // What is lost beyond the triangles, in windows of a connection that loses.
    let beyond = |count: u32| Cell {
        published: Some(0.0),
        value: Box::new(move |seed| {
            let window = f64::from(LARGE / count) * PACKET.as_f64() / 1e3;
            Some((volume(seed, LARGE, ONE_LOSES, count)? - formula(LARGE, count, 1)) / window)
        }),
    };
    let row = |count: u32| Row {
        label: count.to_string(),
        cells: vec![volume_cell(ONE_LOSES, count, 1), volume_cell(ALL_LOSE, count, count), beyond(count)],
    };
    Table {
        id: "volumes".into(),
        title: "Lost volume, and (6.4) with its 8".into(),
        variant: String::new(),
        columns: ["connections", "one loses (kB)", "all lose (kB)", "beyond the triangle (windows)"]
            .map(Into::into)
            .into(),
        rows: CONNECTIONS.map(row).into(),
    }
}
