//! Three servers behind unequal access links (figure 7): figures 8 and 9.

use anabranch_film::playback::{Parameters, Playback};
use anabranch_film::session::Pace;
use anabranch_sim::model::{
    Algorithm, Flow, FlowId, Kind, LinkId, Media, Model, Node, NodeId, Run, Source, When,
};
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::network::{ASSUMED, NEVER, auto, duplex, media, rome, tcp};
use crate::case::{Case, Measured};
use crate::experiment::{
    Axis, Cell, Curve, Expected, Experiment, Job, Jobs, Plot, Points, Relation, Row, Table,
};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AUTO, FIRST, ROME, ROME_WITHOUT_CONTENT, SECOND, SINGLE, Scheme, THIRD};
use crate::simulate::Recording;

const FILM: Rate = Rate::from_mbps(3);
const DURATION: Duration = Duration::from_secs(100);
const SAMPLING: Duration = Duration::from_millis(100);
/// Access links: kbit/s and delay in ms.
pub(super) const ACCESS: [(u64, u64); 3] = [(1500, 10), (1500, 20), (2500, 30)];
/// When the TCP on each of them begins, in seconds.
pub(super) const CROSS_FROM: [u64; 3] = [10, 40, 70];
const CLIENT: NodeId = 0;
const CORE: NodeId = 1;
const SINK: NodeId = 2;
const STREAM: FlowId = 0;

/// Name, from and to in seconds.
pub(super) const PHASES: [(&str, u64, u64); 4] =
    [("alone", 3, 10), ("one TCP", 15, 40), ("two TCPs", 42, 70), ("three TCPs", 72, 100)];
pub(super) const THROUGHPUT: &str = "throughput";
pub(super) const CROSS: &str = "cross traffic";
pub(super) const STALLS: &str = "stalls";
pub(super) const STALLED: &str = "stall time";
pub(super) const MEAN_CONNECTIONS: &str = "mean connections";
pub(super) const MOST_CONNECTIONS: &str = "most connections";
const LATE: &str = "late";
const ARRIVED: &str = "arrived in order";
pub(super) const CONNECTION: [&str; 3] = ["connection 1", "connection 2", "connection 3"];

pub(super) fn during(quantity: &str, phase: &str) -> String {
    format!("{quantity}, {phase}")
}

fn assumed(more: &[&str]) -> Vec<String> {
    let own = [
        "access links of 1.5, 1.5 and 2.5 Mbps and round trips of 60, 80 and 100 ms; all other links 100 Mbps. The cross TCPs come to the \
         access links from hosts of their own and end behind the core",
        "each connection is asked for 6 segments of 12.5 kB ahead: the paper does not say how far the partition rule reaches",
        "averages from some seconds after a TCP came until the next; 72-100 s at the end",
    ];
    own.iter().chain(&ASSUMED).chain(more).map(|text| (*text).to_owned()).collect()
}

fn model(media: Media, seed: u64) -> Model {
    let mut nodes: Vec<Node> = ["client", "core", "sink"].map(Node::new).into();
    let mut links = Vec::new();
    let fast = Rate::from_mbps(100);
    duplex(&mut links, CORE, CLIENT, fast, Duration::from_millis(19));
    duplex(&mut links, CORE, SINK, fast, Duration::from_millis(19));
    let mut flows = vec![Flow {
        name: "stream".into(),
        start: When::At(Time::ZERO),
        stop: None,
        kind: Kind::Media(Box::new(media)),
    }];
    for (number, ((kbps, delay), from)) in ACCESS.into_iter().zip(CROSS_FROM).enumerate() {
        let server = server(number);
        let (access, other) = (server + 1, server + 2);
        nodes.extend(["server", "access", "other"].map(|name| Node::new(format!("{name} {}", number + 1))));
        duplex(&mut links, server, access, fast, Duration::from_millis(1));
        duplex(&mut links, access, CORE, Rate::from_kbps(kbps), Duration::from_millis(delay));
        duplex(&mut links, other, access, fast, Duration::from_millis(1));
        let begin = Time::ZERO + Duration::from_secs(from);
        flows.push(Flow {
            name: format!("TCP {}", number + 1),
            start: When::Between(begin, begin + Duration::from_millis(500)),
            stop: None,
            kind: Kind::Tcp { from: other, to: SINK, tcp: tcp(), source: Source::Greedy },
        });
    }
    let run = Run { duration: DURATION, seed, sampling: SAMPLING, warm_up: Duration::ZERO };
    Model { nodes, links, flows, run }
}

fn server(number: usize) -> NodeId {
    3 + 3 * number
}

/// The link over which only the server's connection goes.
fn link_of(number: usize) -> LinkId {
    4 + 6 * number
}

fn stream_over(servers: usize, algorithm: Algorithm) -> Media {
    let servers = (ACCESS.len() - servers..ACCESS.len()).map(server).collect();
    media(CLIENT, servers, algorithm, FILM, Pace::Media(Some(FILM)))
}

/// The schemes of both figures, and whether the player's own model tells of its stalls.
fn stream_of(scheme: Scheme) -> Media {
    if scheme == SINGLE {
        stream_over(1, Algorithm::Fixed { connections: 1, window: None })
    } else if scheme == AUTO {
        stream_over(3, auto())
    } else if scheme == ROME_WITHOUT_CONTENT {
        Media { playback: NEVER, ..stream_over(3, rome(3)) }
    } else {
        stream_over(3, rome(3))
    }
}

fn job(scheme: Scheme, seed: u64) -> Job {
    let mut media = stream_of(scheme);
    if scheme != AUTO {
        media.policy.requests_in_flight = AHEAD;
    }
    let plays = media.playback != NEVER;
    Job {
        case: Case::new(scheme, 0.0),
        models: vec![model(media, seed)],
        decisions: &[],
        measure: Box::new(move |recordings| {
            recordings.first().map_or_else(Measured::default, |run| measure(run, plays))
        }),
    }
}

fn measure(recording: &Recording, plays: bool) -> Measured {
    let mut measured = Measured::default();
    let time = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
    for (phase, from, to) in PHASES {
        let (from, to) = (time(from), time(to));
        let cross: Rate = (1..=ACCESS.len()).map(|flow| recording.rate(flow, from, to)).sum();
        measured = measured
            .figure(&during(THROUGHPUT, phase), recording.rate(STREAM, from, to).as_f64() / 1e6, "Mbps")
            .figure(&during(CROSS, phase), cross.as_f64() / 1e6, "Mbps");
        for (number, name) in CONNECTION.iter().enumerate() {
            let sent = recording.link(link_of(number)).filter(|sample| sample.at > from && sample.at <= to);
            let sent = Rate::of(sent.map(|sample| sample.transmitted).sum(), to.since(from));
            measured = measured.figure(&during(name, phase), sent.as_f64() / 1e6, "Mbps");
        }
    }
    for (number, name) in CONNECTION.iter().enumerate() {
        measured = measured.series(name, sent_course(recording, link_of(number)));
    }
    let arrived = if plays { arrived_while_playing(recording) } else { arrived(recording) };
    let totals = recording.totals.flows[STREAM].media.unwrap_or_default();
    let (startup, stalls, stalled) = if plays {
        (totals.startup, totals.stalls, totals.stalled)
    } else {
        let mut player = Playback::new(Parameters::default(), Some(FILM), Time::ZERO);
        for (at, seconds) in &arrived {
            player.advance(*at, FILM.amount_in(*seconds), false);
        }
        let report = player.report();
        (report.startup, report.stalls, report.stalled)
    };
    let startup = startup.unwrap_or(DURATION);
    let late = |from: u64, to: u64| {
        let within = || arrived.iter().filter(|(at, _)| *at > time(from) && *at <= time(to));
        let late = within().filter(|(at, seconds)| *seconds < at.since(Time::ZERO + startup));
        late.count() as f64 / within().count() as f64
    };
    measured
        .figure(&during(LATE, "10-20 s"), late(10, 20) * 100.0, "%")
        .figure(&during(LATE, "3-100 s"), late(3, 100) * 100.0, "%")
        .figure(STALLS, stalls.into(), "")
        .figure(STALLED, stalled.as_secs_f64(), "s")
        .figure(MEAN_CONNECTIONS, totals.connections_mean, "")
        .figure(MOST_CONNECTIONS, totals.connections_max.into(), "")
        .series(
            THROUGHPUT,
            recording
                .rate_series(STREAM, Duration::from_secs(1))
                .into_iter()
                .map(|(at, kbps)| (at, kbps / 1e3)),
        )
        .series(
            ARRIVED,
            arrived.iter().step_by(5).map(|(at, seconds)| (at.as_secs_f64(), seconds.as_secs_f64())),
        )
}

/// What one server sent over time, in Mbit/s on the wire.
fn sent_course(recording: &Recording, link: LinkId) -> Vec<(f64, f64)> {
    let samples: Vec<_> = recording.link(link).collect();
    let second = |samples: &[&anabranch_sim::report::LinkSample]| {
        let sent: Bytes = samples.iter().map(|sample| sample.transmitted).sum();
        Some((samples.last()?.at.as_secs_f64(), Rate::of(sent, Duration::from_secs(1)).as_f64() / 1e6))
    };
    samples.chunks_exact(10).filter_map(second).collect()
}

/// Play time of what had arrived in order, at each sample of a player that never started.
fn arrived(recording: &Recording) -> Vec<(Time, Duration)> {
    recording.flow(STREAM).map(|sample| (sample.at, sample.buffer.unwrap_or_default())).collect()
}

/// The same of a player that plays: what it has played is added, to the precision of a sample at its starts
/// and stops.
fn arrived_while_playing(recording: &Recording) -> Vec<(Time, Duration)> {
    let mut played = Duration::ZERO;
    let mut is_playing = false;
    let mut course: Vec<(Time, Duration)> = Vec::new();
    for (at, buffer) in arrived(recording) {
        if is_playing {
            played += SAMPLING;
        }
        // It started within this interval, with two seconds, or stopped for want of media: little has come
        // since.
        is_playing = buffer >= if is_playing { SAMPLING } else { Duration::from_millis(1900) };
        let last = course.last().map_or(Duration::ZERO, |(_, seconds)| *seconds);
        course.push((at, last.max(played + buffer)));
    }
    course
}

/// Segments that a connection is asked for ahead: the partition rule reaches this far.
const AHEAD: usize = 6;

const THREE: &str = "the rate coordinator is not why: with strict fairness it is 2.11 Mbps, and 1.8 to 2.0 with queues of 20 packets, phi of five \
    round trips or 12 segments ahead. A connection gets less than half beside a TCP here; 2.65 would be the half";
const MORE_HELD: &str = "auto holds more of the 3 Mbps, 2.56 where TCP-ROME has 2.07, and the TCPs have as much less: 2.66 where they have 3.18 beside TCP-ROME (20 seeds)";
const TOO_LATE: &str = "a segment is asked for again only when its play time is nearer than a round trip, and then comes behind the six that the other \
    connection has to bring first: as much is late in 10-20 s as without. With our rule, by when it is expected, nothing is late there; \
    stalls remain, and with strict fairness as well there is none";

pub(super) fn figure_8() -> Experiment {
    let schemes = [ROME, SINGLE, AUTO];
    let about = |id: &str, phase: &'static str, published: f64, tolerance: f64| Relation {
        claim: format!("throughput of TCP-ROME: {phase} (within {:.0} %)", tolerance * 100.0),
        published: format!("{published} Mbps"),
        ..mbps(id, ROME, during(THROUGHPUT, phase), Expected::about(published, tolerance))
    };
    let relations = vec![
        about("one", "one TCP", 3.0, 0.05),
        about("two", "two TCPs", 2.83, 0.05),
        Relation { cause: Some(THREE.into()), ..about("three", "three TCPs", 2.65, 0.05) },
        Relation {
            claim: "what connection 3 sends beside one TCP, more than alone".into(),
            published: "more: it makes up for connection 1".into(),
            value: Box::new(|seed| {
                let of = |phase| seed.figure(ROME, 0.0, &during(CONNECTION[2], phase));
                Some(of("one TCP")? - of("alone")?)
            }),
            ..mbps("compensates", ROME, String::new(), Expected::Above(0.0))
        },
        Relation {
            claim: "throughput of a single flow over path 3 beside three TCPs, against that of TCP-ROME (far less: below 0.6)".into(),
            published: "far less".into(),
            unit: "".into(),
            value: Box::new(|seed| {
                let of = |scheme| seed.figure(scheme, 0.0, &during(THROUGHPUT, "three TCPs"));
                Some(of(SINGLE)? / of(ROME)?)
            }),
            ..mbps("single", ROME, String::new(), Expected::Below(0.6))
        },
    ];
    let series = |label: &str, look: Scheme, scheme: Scheme, name: &str| Curve {
        label: label.into(),
        look,
        points: Points::Series { scheme, setting: String::new(), point: 0.0, name: name.into() },
    };
    let plot = |id: &str, title: &str, y: &str, curves: Vec<Curve>| Plot {
        id: id.into(),
        title: title.into(),
        x: Axis::new("time", "s"),
        y: Axis::new(y, "Mbps"),
        curves,
    };
    Experiment {
        id: "rome-fig8".into(),
        title: "A film of 3 Mbps over three paths, none of which carries it alone".into(),
        paper: papers::of("rome"),
        place: "section IV-A, figure 8".into(),
        claim: "A TCP joins path 1 at 10 s, path 2 at 40 s, path 3 at 70 s: about 3.0, then 2.83, then 2.65 Mbps; connection 3 makes up for \
                what connection 1 loses; a single flow gets far less.".into(),
        assumed: assumed(&[]),
        random: true,
        jobs: Jobs::new(move |seed| schemes.map(|scheme| job(scheme, seed)).into()),
        relations: relations.into_iter().chain(ours()).collect(),
        plots: vec![
            plot(
                "throughput",
                "Throughput of the film",
                "throughput",
                schemes.map(|scheme| series(scheme.name, scheme, scheme, THROUGHPUT)).into(),
            ),
            plot(
                "connections",
                "What the server of each connection of TCP-ROME sends",
                "rate on the wire",
                vec![
                    series(CONNECTION[0], FIRST, ROME, CONNECTION[0]),
                    series(CONNECTION[1], SECOND, ROME, CONNECTION[1]),
                    series(CONNECTION[2], THIRD, ROME, CONNECTION[2]),
                ],
            ),
        ],
        tables: vec![table(&schemes)],
    }
}

pub(super) fn figure_9() -> Experiment {
    let schemes = [ROME_WITHOUT_CONTENT, ROME, AUTO];
    let relation = |id: &str,
                    claim: &str,
                    published: &str,
                    unit: &'static str,
                    scheme: Scheme,
                    name: String,
                    expected| {
        Relation {
            claim: claim.into(),
            published: published.into(),
            unit: unit.into(),
            ..mbps(id, scheme, name, expected)
        }
    };
    let relations = vec![
        relation(
            "without",
            "time in 10-20 s at which what should play has not arrived, without the content coordinator (many: at least 20 %)",
            "many segments",
            "%",
            ROME_WITHOUT_CONTENT,
            during(LATE, "10-20 s"),
            Expected::AtLeast(20.0),
        ),
        Relation {
            cause: Some(TOO_LATE.into()),
            ..relation(
                "with",
                "stalls with it",
                "none: every segment on time",
                "",
                ROME,
                STALLS.into(),
                Expected::AtMost(0.0),
            )
        },
        relation(
            "auto",
            "stalls with auto",
            "ours, not in the paper",
            "",
            AUTO,
            STALLS.into(),
            Expected::AtMost(0.0),
        ),
    ];
    let mut curves: Vec<Curve> = schemes
        .map(|scheme| Curve {
            label: scheme.name.into(),
            look: scheme,
            points: Points::Series { scheme, setting: String::new(), point: 0.0, name: ARRIVED.into() },
        })
        .into();
    curves.push(Curve {
        label: "play from 2 s on".into(),
        look: SINGLE,
        points: Points::Formula(vec![(2.0, 0.0), (100.0, 98.0)]),
    });
    Experiment {
        id: "rome-fig9".into(),
        title: "When segments arrive, without and with the content coordinator".into(),
        paper: papers::of("rome"),
        place: "section IV-A, figure 9".into(),
        claim: "Without the content coordinator many segments come after their play time in 10-20 s; with it every segment is on time.".into(),
        assumed: assumed(&[
            "without the content coordinator nothing is asked for again; segments still go to connections in proportion to what they deliver",
        ]),
        random: true,
        jobs: Jobs::new(move |seed| schemes.map(|scheme| job(scheme, seed)).into()),
        relations,
        plots: vec![Plot {
            id: "arrival".into(),
            title: "Media arrived in order".into(),
            x: Axis::new("time", "s"),
            y: Axis::new("play time of what has arrived", "s"),
            curves,
        }],
        tables: vec![table(&schemes)],
    }
}

fn mbps(id: &str, scheme: Scheme, name: String, expected: Expected) -> Relation {
    Relation {
        id: id.into(),
        claim: String::new(),
        published: String::new(),
        unit: "Mbps".into(),
        value: Box::new(move |seed| seed.figure(scheme, 0.0, &name)),
        is_of_all_seeds: false,
        expected,
        cause: None,
    }
}

/// `auto` against TCP-ROME.
fn ours() -> Vec<Relation> {
    let more = |id: &str, claim: &str, unit: &'static str, name: String, expected: Expected| Relation {
        claim: format!("{claim} with auto, more than with TCP-ROME"),
        published: "ours, not in the paper".into(),
        unit: unit.into(),
        value: Box::new(move |seed: OneSeed<'_>| {
            Some(seed.figure(AUTO, 0.0, &name)? - seed.figure(ROME, 0.0, &name)?)
        }),
        ..mbps(id, AUTO, String::new(), expected)
    };
    vec![
        more("auto-stalls", "stall time", "s", STALLED.into(), Expected::AtMost(0.0)),
        more("auto-connections", "mean connections", "", MEAN_CONNECTIONS.into(), Expected::AtMost(0.0)),
        Relation {
            cause: Some(MORE_HELD.into()),
            ..more(
                "auto-cross",
                "throughput of the three TCPs at the end",
                "Mbps",
                during(CROSS, "three TCPs"),
                Expected::AtLeast(0.0),
            )
        },
    ]
}

fn table(schemes: &[Scheme]) -> Table {
    let mut columns: Vec<(String, String)> = Vec::new();
    for quantity in [THROUGHPUT, CROSS] {
        columns.extend(PHASES.map(|(phase, ..)| {
            let name = during(quantity, phase);
            (format!("{name} (Mbps)"), name)
        }));
    }
    columns.extend(
        [
            ("stalls", STALLS.to_owned()),
            ("stall time (s)", STALLED.to_owned()),
            ("late in 10-20 s (%)", during(LATE, "10-20 s")),
            ("late in 3-100 s (%)", during(LATE, "3-100 s")),
            ("mean connections", MEAN_CONNECTIONS.to_owned()),
            ("most connections", MOST_CONNECTIONS.to_owned()),
        ]
        .map(|(head, name)| (head.to_owned(), name)),
    );
    let row = |scheme: &Scheme| {
        let scheme = *scheme;
        let cell = |(_, name): &(String, String)| {
            let name = name.clone();
            Cell {
                published: None,
                value: Box::new(move |seed: OneSeed<'_>| seed.figure(scheme, 0.0, &name)),
            }
        };
        Row { label: scheme.name.into(), cells: columns.iter().map(cell).collect() }
    };
    Table {
        id: "figures".into(),
        title: "Throughput in each phase, the player, and what is left to the TCPs".into(),
        rows: schemes.iter().map(row).collect(),
        columns: ["scheme".to_owned()]
            .into_iter()
            .chain(columns.iter().map(|(head, _)| head.clone()))
            .collect(),
    }
}
