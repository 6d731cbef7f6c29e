//! Many streams in the random network of figure 10: figures 11, 12 and 13.

use std::collections::BTreeMap;

use anabranch_film::session::Pace;
use anabranch_film::{auto, rome};
use anabranch_sim::model::{Algorithm, Flow, Kind, Limit, Media, Model, Run, Source, When};
use anabranch_units::{Duration, Rate, Time};

use super::network::{ASSUMED, NEVER, media, tcp};
use super::random::{CLIENTS, Client, MOST_SERVERS, Network, behind_one_link, draw};
use crate::case::{Case, Measured};
use crate::experiment::{Axis, Cause, Expected, Experiment, Job, Jobs, Plot, Relation, Table};
use crate::experiments::describe::{plot_figures, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AUTO, ROME, ROME_WITHOUT_RATE, Scheme};
use crate::simulate::Recording;

/// What the streams of figures 12 and 13 are to get.
const WANTED: Rate = Rate::from_kbps(400);
const DURATION: Duration = Duration::from_secs(80);
const WARM_UP: Duration = Duration::from_secs(20);
/// A further run: all that goes to the clients goes over one link.
const ONE_LINK: &str = "over one link";
const ONE_LINK_SERVERS: [usize; 4] = [1, 4, 6, 8];
/// Further runs of `auto`: with as large a buffer as TCP-ROME's, and with no more connections.
const AHEAD: &str = "ten minutes ahead";
const FEW: &str = "a connection to each";
const OF_AUTO: [&str; 2] = [AHEAD, FEW];
/// Further runs of TCP-ROME.
const SHORT_QUEUES: &str = "queues of 10 packets";
const STRICT: &str = "strict fairness";
const OF_ROME: [&str; 2] = [SHORT_QUEUES, STRICT];
/// With so many servers.
const FURTHER_SERVERS: [usize; 3] = [1, 2, 8];
/// The further runs of `auto` have so many.
const AUTO_SERVERS: usize = 4;
/// So many of the clients have one server only, in figures 12 and 13.
const SINGLE_FLOWS: usize = CLIENTS / 2;

const STREAMS: &str = "streaming rate";
const FAST: &str = "streaming rate behind fast access";
const SINGLES: &str = "rate of single flows";
const FAST_SINGLES: &str = "rate of single flows behind fast access";
const STALLED: &str = "stalled part of the time, behind fast access";
const MEAN_CONNECTIONS: &str = "mean connections";
const MOST_CONNECTIONS: &str = "most connections";

fn assumed(more: &[&str]) -> Vec<String> {
    let own = [
        "the core is a random tree of the routers and up to 20 random links more, 10 ms each; access links have 5 ms; clients and servers \
         are at random access nodes, a server never at its client's; every seed has its own network, the same for every n",
        "80 s, of which the first 20 do not count. Files of 10 MB and more last at least 80 s at 1 Mbps: none ends",
    ];
    own.iter().chain(&ASSUMED).chain(more).map(|text| (*text).to_owned()).collect()
}

/// Clients whose access link carries the wanted rate.
fn is_fast(client: &Client) -> bool {
    client.access > WANTED
}

fn model(network: Network, seed: u64, streams: usize, stream: impl Fn(&Client) -> Media) -> Model {
    let flows = network.clients.iter().enumerate().map(|(index, client)| Flow {
        name: format!("client {}", index + 1),
        start: When::Between(Time::ZERO, Time::ZERO + Duration::from_secs(5)),
        stop: None,
        kind: if index < streams {
            Kind::Media(Box::new(stream(client)))
        } else {
            Kind::Tcp { from: client.servers[0], to: client.node, tcp: tcp(), source: Source::Greedy }
        },
    });
    Model {
        flows: flows.collect(),
        nodes: network.nodes,
        links: network.links,
        run: Run { duration: DURATION, seed, sampling: DURATION, warm_up: WARM_UP },
    }
}

/// A stream without a limit over the client's first `servers`.
fn unlimited(client: &Client, servers: usize, algorithm: Algorithm) -> Media {
    let media = media(client.node, client.servers[..servers].to_vec(), algorithm, WANTED, Pace::Max);
    // There is no display rate, and so nothing late.
    Media { playback: NEVER, ..media }
}

fn algorithm((scheme, setting): (Scheme, &str), servers: usize) -> Algorithm {
    if scheme != AUTO {
        let model = if setting == STRICT { rome::Model::StrictFairness } else { rome::Model::default() };
        return Algorithm::Rome(rome::Parameters {
            connections: servers as u32,
            model,
            ..rome::Parameters::default()
        });
    }
    let mut parameters = auto::Parameters::default();
    if setting == AHEAD {
        parameters.buffer.1 = Duration::from_secs(600);
    }
    if setting == FEW {
        parameters.most = servers;
    }
    Algorithm::Auto(parameters)
}

/// A stream of the wanted rate, or one without the rate coordinator.
fn wanted(client: &Client, of: (Scheme, &str), servers: usize) -> Media {
    if of.0 == ROME_WITHOUT_RATE {
        return unlimited(client, servers, algorithm(of, servers));
    }
    let servers_of_client = client.servers[..servers].to_vec();
    media(client.node, servers_of_client, algorithm(of, servers), WANTED, Pace::Media(Some(WANTED)))
}

fn job((scheme, setting): (Scheme, &str), servers: usize, streams: usize, seed: u64) -> Job {
    let mut network = if setting == ONE_LINK { behind_one_link(seed) } else { draw(seed) };
    if setting == SHORT_QUEUES {
        for link in &mut network.links {
            link.queue.limit = Limit::Packets(10);
        }
    }
    let fast: Vec<bool> = network.clients.iter().map(is_fast).collect();
    let model = model(network, seed, streams, |client| {
        if streams == CLIENTS {
            unlimited(client, servers, algorithm((scheme, setting), servers))
        } else {
            wanted(client, (scheme, setting), servers)
        }
    });
    Job {
        case: Case { setting: setting.into(), ..Case::new(scheme, servers as f64) },
        models: vec![model],
        decisions: &[],
        measure: Box::new(move |recordings| {
            recordings.first().map_or_else(Measured::default, |run| measure(run, streams, &fast))
        }),
    }
}

fn measure(recording: &Recording, streams: usize, fast: &[bool]) -> Measured {
    let totals = &recording.totals;
    let kbps = |flow: usize| Rate::of(totals.flows[flow].delivered, totals.counted).as_f64() / 1e3;
    let mean = |flows: &mut dyn Iterator<Item = f64>| {
        let values: Vec<f64> = flows.collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let is_fast = |flow: &usize| fast.get(*flow).copied().unwrap_or(false);
    let fast_streams = || (0..streams).filter(is_fast);
    let singles = streams..totals.flows.len();
    let of_media = |flow: usize| totals.flows[flow].media.unwrap_or_default();
    let mut measured = Measured::default();
    // A player that never starts cannot stall.
    if fast_streams().any(|flow| of_media(flow).startup.is_some()) {
        let stalled = mean(&mut fast_streams().map(|flow| of_media(flow).stalled.ratio_to(DURATION) * 100.0));
        measured = measured.figure(STALLED, stalled, "%");
    }
    measured
        .figure(STREAMS, mean(&mut (0..streams).map(kbps)), "kbps")
        .figure(FAST, mean(&mut fast_streams().map(kbps)), "kbps")
        .figure(SINGLES, mean(&mut singles.clone().map(kbps)), "kbps")
        .figure(FAST_SINGLES, mean(&mut singles.filter(is_fast).map(kbps)), "kbps")
        .figure(MEAN_CONNECTIONS, mean(&mut (0..streams).map(|flow| of_media(flow).connections_mean)), "")
        .figure(
            MOST_CONNECTIONS,
            mean(&mut (0..streams).map(|flow| of_media(flow).connections_max.into())),
            "",
        )
}

fn jobs(schemes: &'static [Scheme], streams: usize, seed: u64) -> Vec<Job> {
    let cases = schemes.iter().flat_map(|scheme| (1..=MOST_SERVERS).map(move |servers| (*scheme, servers)));
    cases.map(|(scheme, servers)| job((scheme, ""), servers, streams, seed)).collect()
}

/// Figures 12 and 13, and the further runs.
fn coordinated_jobs(seed: u64) -> Vec<Job> {
    let streams = CLIENTS - SINGLE_FLOWS;
    let mut all = jobs(COORDINATED, streams, seed);
    for servers in ONE_LINK_SERVERS {
        all.extend([ROME, ROME_WITHOUT_RATE].map(|scheme| job((scheme, ONE_LINK), servers, streams, seed)));
    }
    all.extend(OF_AUTO.map(|setting| job((AUTO, setting), AUTO_SERVERS, streams, seed)));
    all
}

fn relation(
    id: &str,
    claim: &str,
    published: &str,
    unit: &'static str,
    expected: Expected,
    value: impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync + 'static,
) -> Relation {
    Relation::new((id, claim, published, unit), value, expected)
}

fn plot(id: &str, title: &str, name: &'static str, schemes: &[Scheme]) -> Plot {
    plot_figures((id, title, name), Axis::new("servers n", ""), Axis::new(name, "kbps"), schemes, Vec::new())
}

/// Schemes with every number of servers.
fn every(schemes: &[Scheme]) -> impl Iterator<Item = (Scheme, &'static str, usize)> {
    schemes.iter().flat_map(|scheme| (1..=MOST_SERVERS).map(|servers| (*scheme, "", servers)))
}

fn coordinated_table() -> Table {
    let further = [ROME, ROME_WITHOUT_RATE].into_iter();
    let further = further.flat_map(|scheme| ONE_LINK_SERVERS.map(|servers| (scheme, ONE_LINK, servers)));
    let further = further.chain(OF_AUTO.map(|setting| (AUTO, setting, AUTO_SERVERS)));
    figures(every(COORDINATED).chain(further), COORDINATED_COLUMNS)
}

/// Of schemes in settings with so many servers.
fn figures(
    cases: impl IntoIterator<Item = (Scheme, &'static str, usize)>,
    columns: &[(&str, &'static str)],
) -> Table {
    let row = |(scheme, setting, servers): (Scheme, &str, usize)| {
        (format!("{}, n = {servers} {setting}", scheme.name), scheme, setting.to_owned(), servers as f64)
    };
    let title = "Rates and connections against the number of servers";
    table("figures", title, columns, cases.into_iter().map(row))
}

/// A cause and the settings that show it.
type Because = (&'static str, &'static [&'static str]);

const OWN_ACCESS: Because =
    ("not found; it is neither the queues nor the rate coordinator's model", &[SHORT_QUEUES, STRICT]);
const HELD: Because = (
    "above R+ a connection keeps its size (section III-C): nothing takes back what is too much, and with more connections more was there when \
     R+ was reached. A link that is common to all takes it back",
    &[ONE_LINK],
);
const LOAD: Because = (
    "no link is common to all connections here, and more of a stream's connections take little from the others; where one is common to all, \
     they take much",
    &[ONE_LINK],
);

/// Tells the causes of relations that differ, by their names.
fn because(causes: &[(&'static str, Because)], relations: Vec<Relation>) -> Vec<Relation> {
    let causes = causes.iter().map(|(name, because)| (*name, cause(*because))).chain(worse());
    let mut causes: BTreeMap<&str, Cause> = causes.collect();
    let mut explained = |relation: Relation| {
        let cause = causes.remove(relation.id.as_str());
        Relation { cause, ..relation }
    };
    relations.into_iter().map(&mut explained).collect()
}

fn cause((says, settings): Because) -> Cause {
    let shown_by = settings.iter().map(|setting| (*setting).to_owned()).collect();
    Cause { says: says.into(), shown_by }
}

/// Why `auto` does not come off better, by the relations' names.
fn worse() -> [(&'static str, Cause); 3] {
    let not_found = || {
        let says =
            "not found; it is neither how far auto reads ahead nor how many connections it has to a server";
        cause((says, &OF_AUTO))
    };
    [
        ("auto-stalls", not_found()),
        ("auto-connections", cause(("auto may have more than one connection to a server", &[FEW]))),
        ("auto-cross", not_found()),
    ]
}

pub(super) fn figure_11() -> Experiment {
    const SCHEMES: &[Scheme] = &[ROME, AUTO];
    let gain = |more: f64, less: f64| {
        move |seed: OneSeed<'_>| Some(seed.figure(ROME, more, STREAMS)? / seed.figure(ROME, less, STREAMS)?)
    };
    Experiment {
        id: "rome-fig11".into(),
        title: "Streaming rate of 50 clients with n servers each".into(),
        paper: papers::of("rome"),
        place: "section IV-B, figures 10 and 11".into(),
        claim: "The rate with n = 2 is twice that with n = 1; there is little more beyond.".into(),
        assumed: assumed(&["no rate is wanted here: the rate coordinator holds nothing back"]),
        random: true,
        jobs: Jobs::new(|seed| {
            let mut all = jobs(SCHEMES, CLIENTS, seed);
            for setting in OF_ROME {
                all.extend(FURTHER_SERVERS.map(|servers| job((ROME, setting), servers, CLIENTS, seed)));
            }
            all
        }),
        relations: because(
            &[("doubles", OWN_ACCESS), ("little-more", OWN_ACCESS)],
            vec![
                relation(
                    "doubles",
                    "streaming rate with n = 2 against that with n = 1 (within 15 %)",
                    "2",
                    "",
                    Expected::about(2.0, 0.15),
                    gain(2.0, 1.0),
                ),
                relation(
                    "little-more",
                    "streaming rate with n = 8 against that with n = 2 (little more: at most 1.3)",
                    "little more than 1",
                    "",
                    Expected::Between(1.0, 1.3),
                    gain(8.0, 2.0),
                ),
                relation(
                    "auto",
                    "streaming rate of auto with n = 2 against that of TCP-ROME",
                    "ours, not in the paper",
                    "",
                    Expected::AtLeast(1.0),
                    |seed| Some(seed.figure(AUTO, 2.0, STREAMS)? / seed.figure(ROME, 2.0, STREAMS)?),
                ),
            ],
        ),
        plots: vec![plot("rate", "Mean streaming rate", STREAMS, SCHEMES)],
        tables: vec![figures(
            every(SCHEMES).chain(
                OF_ROME
                    .into_iter()
                    .flat_map(|setting| FURTHER_SERVERS.map(|servers| (ROME, setting, servers))),
            ),
            &[
                ("streaming rate (kbps)", STREAMS),
                ("mean connections", MEAN_CONNECTIONS),
                ("most connections, mean over streams", MOST_CONNECTIONS),
            ],
        )],
    }
}

const COORDINATED: &[Scheme] = &[ROME, ROME_WITHOUT_RATE, AUTO];
const COORDINATED_COLUMNS: &[(&str, &str)] = &[
    ("streaming rate behind fast access (kbps)", FAST),
    ("rate of single flows (kbps)", SINGLES),
    ("the same behind fast access (kbps)", FAST_SINGLES),
    ("stalled part of the time, behind fast access (%)", STALLED),
    ("mean connections", MEAN_CONNECTIONS),
    ("most connections, mean over streams", MOST_CONNECTIONS),
];

/// `auto` against TCP-ROME at n = 4, where the paper's rate is there.
fn ours() -> Vec<Relation> {
    let more = |id: &str, claim: &str, unit: &'static str, name: &'static str, expected: Expected| {
        let claim = format!("{claim} with auto, more than with TCP-ROME, n = 4");
        relation(id, &claim, "ours, not in the paper", unit, expected, move |seed| {
            // TCP-ROME is as published in the settings of auto as well.
            Some(seed.figure(AUTO, 4.0, name)? - seed.setting("").figure(ROME, 4.0, name)?)
        })
    };
    vec![
        more("auto-stalls", STALLED, "%", STALLED, Expected::AtMost(0.0)),
        more("auto-connections", MEAN_CONNECTIONS, "", MEAN_CONNECTIONS, Expected::AtMost(0.0)),
        more("auto-cross", SINGLES, "kbps", SINGLES, Expected::AtLeast(0.0)),
    ]
}

pub(super) fn figure_12() -> Experiment {
    let rate = |id: &str, servers: f64, expected: Expected| {
        let claim = format!("streaming rate behind fast access, n = {servers} (within 10 %)");
        relation(id, &claim, "close to 400 kbps", "kbps", expected, move |seed| {
            seed.figure(ROME, servers, FAST)
        })
    };
    let mut relations = vec![
        rate("four", 4.0, Expected::about(400.0, 0.1)),
        rate("six", 6.0, Expected::about(400.0, 0.1)),
        rate("eight", 8.0, Expected::about(400.0, 0.1)),
        relation(
            "stable",
            "streaming rate behind fast access with n = 8 against that with n = 4 (within 10 %)",
            "stable",
            "",
            Expected::about(1.0, 0.1),
            |seed| Some(seed.figure(ROME, 8.0, FAST)? / seed.figure(ROME, 4.0, FAST)?),
        ),
        relation(
            "one",
            "streaming rate behind fast access with n = 1 against that with n = 4",
            "less",
            "",
            Expected::Below(1.0),
            |seed| Some(seed.figure(ROME, 1.0, FAST)? / seed.figure(ROME, 4.0, FAST)?),
        ),
    ];
    relations.extend(ours());
    Experiment {
        id: "rome-fig12".into(),
        title: "Half of the clients want 400 kbps from n servers each".into(),
        paper: papers::of("rome"),
        place: "section IV-C, figure 12".into(),
        claim: "Clients whose access link has more than 400 kbps get close to 400 kbps from n > 3, and stably beyond.".into(),
        assumed: assumed(&["the single flows are TCPs that always have data"]),
        random: true,
        jobs: Jobs::new(coordinated_jobs),
        relations: because(
            &[
                ("four", HELD),
                ("six", HELD),
                ("eight", HELD),
            ],
            relations,
        ),
        plots: vec![plot("rate", "Mean streaming rate behind fast access", FAST, COORDINATED)],
        tables: vec![coordinated_table()],
    }
}

pub(super) fn figure_13() -> Experiment {
    let single =
        |scheme: Scheme, servers: f64| move |seed: OneSeed<'_>| seed.figure(scheme, servers, SINGLES);
    let mut relations = vec![
        relation(
            "without-1",
            "single flows without the rate coordinator, n = 1 (within 20 %)",
            "235 kbps",
            "kbps",
            Expected::about(235.0, 0.2),
            single(ROME_WITHOUT_RATE, 1.0),
        ),
        relation(
            "without-8",
            "single flows without the rate coordinator, n = 8 (within 20 %)",
            "50 kbps",
            "kbps",
            Expected::about(50.0, 0.2),
            single(ROME_WITHOUT_RATE, 8.0),
        ),
        relation(
            "with-8",
            "single flows with the rate coordinator, n = 8 (within 20 %)",
            "about 125 kbps",
            "kbps",
            Expected::about(125.0, 0.2),
            single(ROME, 8.0),
        ),
        relation(
            "level",
            "single flows with the rate coordinator, n = 8 against n = 4 (level: within 10 %)",
            "level",
            "",
            Expected::about(1.0, 0.1),
            |seed| Some(seed.figure(ROME, 8.0, SINGLES)? / seed.figure(ROME, 4.0, SINGLES)?),
        ),
        relation(
            "higher",
            "single flows with the rate coordinator against those without it, n = 8",
            "2.5",
            "",
            Expected::Above(1.0),
            |seed| Some(seed.figure(ROME, 8.0, SINGLES)? / seed.figure(ROME_WITHOUT_RATE, 8.0, SINGLES)?),
        ),
    ];
    relations.extend(ours());
    Experiment {
        id: "rome-fig13".into(),
        title: "What is left to single flows beside streams from n servers each".into(),
        paper: papers::of("rome"),
        place: "section IV-C, figure 13".into(),
        claim: "Without the rate coordinator single flows fall from 235 to 50 kbps at n = 8; with it they level at about 125 kbps.".into(),
        assumed: assumed(&["the single flows are TCPs that always have data"]),
        random: true,
        jobs: Jobs::new(coordinated_jobs),
        relations: because(
            &[
                ("without-1", LOAD),
                ("without-8", LOAD),
                ("with-8", LOAD),
            ],
            relations,
        ),
        plots: vec![plot("rate", "Mean rate of the single flows", SINGLES, COORDINATED)],
        tables: vec![coordinated_table()],
    }
}
