//! Figures 5.11 to 5.18: the thesis's measurements over dummynet, simulated.

use congestion::tfwc::Update;
use units::Duration;

use super::network::{Path, Sender, control, model, rates};
use crate::experiment::{Axis, Case, Curve, Expected, Experiment, Job, Measured, Paper, Points, Relation};
use crate::experiments::describe::{Figure, explained, plot_figures, table};
use crate::results::OneSeed;
use crate::scheme::{CUBIC, RENO, Scheme, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};
use crate::simulate::Recording;
use crate::statistics::jain_index;

/// Round trips without a queue, ms. At 250 Mbps every second one.
const TRIPS: [f64; 5] = [16.0, 32.0, 120.0, 240.0, 320.0];
const FAST_TRIPS: [f64; 3] = [16.0, 120.0, 320.0];
const TTFWC: [Scheme; 3] = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9];
const ALL: [Scheme; 5] = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9, RENO, CUBIC];

const SLOW: &str = "10 Mbps";
const FAST: &str = "250 Mbps";
const JAIN: &str = "fairness index";
const RATE: &str = "throughput of TTFWC";
const TCP_RATE: &str = "throughput of TCP";

const ASSUMED: [&str; 7] = [
    "simulated, where the thesis measured Linux 3.0 over dummynet; the same figures over real kernels are the testbed's business",
    "packets of 1448 bytes and 52 of headers, an initial window of ten, one acknowledgement a packet (Linux counts packets, so that delayed acknowledgements would not make it slower); least time-out 200 ms",
    "a queue of 50 packets, dummynet's default, in both networks",
    "200 s, of which the first 20 do not count; at 250 Mbps only round trips of 16, 120 and 320 ms",
    "the receivers are 0 to 2.6 ms further away, as in the thesis's simulations: where all round trips are equal to the microsecond, flows that \
     grow bear nearly all drops, and TFWC gets 4.1 times as much as Reno in place of 0.88 times (3 and 3 flows, 10 Mbps, 46 ms, seeds 1 and 2)",
    "every packet leaves late by chance by up to the time that one takes on the link; flows begin within the first 5 s",
    "weights of the loss intervals as RFC 5348 has them; the mean interval is reckoned accurately (see ttfwc-update)",
];

const NOT_FOUND: &str = "cause not found";

fn path(network: &str) -> Path {
    let slow = Path {
        mbps: 10.0,
        delay_ms: 1.0,
        queue: 50,
        segment: 1448,
        jitter: Duration::from_micros(1200),
        seconds: 200,
        warm_up: 20,
    };
    if network == SLOW { slow } else { Path { mbps: 250.0, jitter: Duration::from_micros(48), ..slow } }
}

fn trips(network: &str) -> &'static [f64] {
    if network == SLOW { &TRIPS } else { &FAST_TRIPS }
}

/// Three flows of one scheme at one round trip, and three of another at another.
fn senders(one: (Scheme, f64), other: (Scheme, f64)) -> Vec<Sender> {
    let sender = |(number, (scheme, rtt)): (usize, (Scheme, f64))| Sender {
        control: control(scheme, Update::Accurate),
        // The rest of the way is 1 ms in the bottleneck and 0.5 ms before it.
        access_ms: (0.5, (rtt / 2.0 - 1.5).max(0.0) + 2.6 * number as f64 / 5.0),
    };
    [one, other, one, other, one, other].into_iter().enumerate().map(sender).collect()
}

fn jain(run: &Recording) -> Measured {
    Measured::default().figure(JAIN, jain_index(&rates(run)).unwrap_or(f64::NAN), "")
}

/// Jain's index of all schemes: the second half of the flows at 120 ms, or at the same round trip as the first.
fn fairness_jobs(is_equal: bool, seed: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for network in [SLOW, FAST] {
        for scheme in ALL {
            for rtt in trips(network) {
                let other = if is_equal { *rtt } else { 120.0 };
                jobs.push(Job {
                    case: Case { setting: network.into(), ..Case::new(scheme, *rtt) },
                    models: vec![model(
                        &path(network),
                        &senders((scheme, *rtt), (scheme, other)),
                        None,
                        seed,
                    )],
                    decisions: &[],
                    measure: Box::new(|runs| runs.first().map_or_else(Measured::default, jain)),
                });
            }
        }
    }
    jobs
}

fn index(seed: OneSeed<'_>, network: &str, scheme: Scheme, rtt: f64) -> Option<f64> {
    seed.setting(network).figure(scheme, rtt, JAIN)
}

/// The largest distance of a scheme's index from Reno's over round trips.
fn distance(seed: OneSeed<'_>, network: &str, scheme: Scheme, trips: &[f64]) -> Option<f64> {
    let distance =
        |rtt: &f64| Some((index(seed, network, scheme, *rtt)? - index(seed, network, RENO, *rtt)?).abs());
    trips.iter().map(distance).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

fn fairness(
    id: &'static str,
    title: &'static str,
    place: &'static str,
    claim: &'static str,
    is_equal: bool,
    mut relations: Vec<Relation>,
) -> Experiment {
    for relation in &mut relations {
        relation.cause = Some(NOT_FOUND.into());
    }
    let plots = [(SLOW, "slow"), (FAST, "fast")].map(|(network, id)| {
        let curve = |scheme: Scheme| Curve {
            label: scheme.name.into(),
            look: scheme,
            points: Points::Figure { scheme, setting: network.into(), name: JAIN.into() },
        };
        let mut plot = plot_figures(
            (id, &format!("Jain's fairness index, {network}"), JAIN),
            Axis::new("round trip", "ms"),
            Axis::new(JAIN, ""),
            &[],
            Vec::new(),
        );
        plot.curves = ALL.map(curve).into();
        plot
    });
    let rows = [SLOW, FAST].into_iter().flat_map(|network| {
        ALL.into_iter().flat_map(move |scheme| {
            trips(network).iter().map(move |rtt| {
                (format!("{network}, {}, {rtt} ms", scheme.name), scheme, network.to_owned(), *rtt)
            })
        })
    });
    Experiment {
        id,
        title,
        paper: Paper::Ttfwc,
        place,
        claim,
        assumed: ASSUMED.map(Into::into).into(),
        random: true,
        jobs: Box::new(move |seed| fairness_jobs(is_equal, seed)),
        relations,
        plots: plots.into(),
        tables: vec![table("fairness", "Jain's fairness index", &[(JAIN, JAIN)], rows)],
    }
}

fn tp(scheme: Scheme) -> &'static str {
    scheme.name.rsplit(' ').next().unwrap_or_default()
}

fn figure_5_11() -> Experiment {
    let mut relations: Vec<Relation> = TTFWC
        .into_iter()
        .map(|scheme| {
            Relation::new(
                (
                    &format!("slow-{}", tp(scheme)),
                    &format!(
                        "largest distance of the index at {} from Reno's over round trips, 10 Mbps",
                        tp(scheme)
                    ),
                    "little different",
                    "",
                ),
                move |seed| distance(seed, SLOW, scheme, &TRIPS),
                Expected::AtMost(0.1),
            )
        })
        .collect();
    for (other, name) in [(RENO, "reno"), (CUBIC, "cubic")] {
        relations.push(Relation::new(
            (
                &format!("fast-{name}"),
                &format!("index at 0.9 less that of {}, 250 Mbps, 16 ms", other.name),
                "significantly fairer",
                "",
            ),
            move |seed| Some(index(seed, FAST, TTFWC_0_9, 16.0)? - index(seed, FAST, other, 16.0)?),
            Expected::Above(0.0),
        ));
    }
    fairness(
        "ttfwc-fig5.11",
        "Fairness between different round trips",
        "section 5.2.1, figure 5.11",
        "Three flows at 120 ms and three of the same control at 16 to 320 ms: TTFWC is about as fair as Reno and CUBIC at 10 Mbps; at 250 Mbps and short \
         round trips 0.9 is significantly fairer.",
        false,
        relations,
    )
}

fn figure_5_12() -> Experiment {
    let less = |seed: OneSeed<'_>, other| {
        let distance = |rtt| Some(index(seed, SLOW, TTFWC_0_9, rtt)? - index(seed, SLOW, other, rtt)?);
        Some((distance(240.0)? + distance(320.0)?) / 2.0)
    };
    let mut relations = vec![
        Relation::new(
            ("long-reno", "index at 0.9 less that of Reno, 10 Mbps, mean of 240 and 320 ms", "less fair", ""),
            move |seed| less(seed, RENO),
            Expected::Below(0.0),
        ),
        Relation::new(
            (
                "long-cubic",
                "index at 0.9 less that of CUBIC, 10 Mbps, mean of 240 and 320 ms",
                "less fair",
                "",
            ),
            move |seed| less(seed, CUBIC),
            Expected::Below(0.0),
        ),
    ];
    for network in [SLOW, FAST] {
        relations.push(Relation::new(
            (
                &format!("short-{}", if network == SLOW { "slow" } else { "fast" }),
                &format!("largest distance of the index from Reno's over all parameters at 16 ms, {network}"),
                "the same",
                "",
            ),
            move |seed| {
                let distances = TTFWC.map(|scheme| distance(seed, network, scheme, &[16.0]));
                distances.into_iter().collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
            },
            Expected::AtMost(0.1),
        ));
    }
    fairness(
        "ttfwc-fig5.12",
        "Fairness between equal flows",
        "section 5.2.1, figure 5.12",
        "Six flows of one control: at 10 Mbps TTFWC is less fair than Reno and CUBIC when the delay is long, and as fair when it is short.",
        true,
        relations,
    )
}

/// Mean throughputs of both halves, as parts of the fair share.
fn shares(run: &Recording, mbps: f64) -> Measured {
    let rates = rates(run);
    let fair = mbps * 1448.0 / 1500.0 / 6.0;
    let mean = |from: usize| rates.iter().skip(from).step_by(2).sum::<f64>() / 3.0 / fair;
    Measured::default().figure(RATE, mean(0), "").figure(TCP_RATE, mean(1), "")
}

/// The mean over round trips of a figure.
fn over_trips(seed: OneSeed<'_>, network: &str, scheme: Scheme, name: &'static str) -> Option<f64> {
    let trips = trips(network);
    let values: Option<Vec<f64>> = trips
        .iter()
        .map(|rtt| Figure { setting: network.into(), ..Figure::new(scheme, *rtt, name) }.of(seed))
        .collect();
    Some(values?.iter().sum::<f64>() / trips.len() as f64)
}

fn beside_tcp(id: &'static str, place: &'static str, network: &'static str, scheme: Scheme) -> Experiment {
    let schemes = if scheme == TTFWC_0_0 { vec![scheme] } else { vec![scheme, TTFWC_0_0] };
    let mut relations = vec![Relation::new(
        (
            "friendly",
            "throughput of TTFWC as a multiple of TCP's, mean over round trips (0.75 to 1.35)",
            if network == SLOW { "little difference" } else { "acceptable" },
            "",
        ),
        move |seed| {
            Some(over_trips(seed, network, scheme, RATE)? / over_trips(seed, network, scheme, TCP_RATE)?)
        },
        Expected::Between(0.75, 1.35),
    )];
    if scheme != TTFWC_0_0 {
        let expected =
            if scheme == TTFWC_0_9 { Expected::Between(0.02, 0.15) } else { Expected::AtLeast(0.0) };
        relations.push(Relation::new(
            (
                "gain",
                "throughput above that at 0.0, mean over round trips",
                if scheme == TTFWC_0_9 {
                    "4 % or 10 % (the chapters disagree)"
                } else {
                    "proportional to the parameter"
                },
                "",
            ),
            move |seed| {
                Some(
                    over_trips(seed, network, scheme, RATE)? / over_trips(seed, network, TTFWC_0_0, RATE)?
                        - 1.0,
                )
            },
            expected,
        ));
    }
    if network == FAST && scheme == TTFWC_0_9 {
        let ratio = |seed: OneSeed<'_>, rtt| {
            let of = |name| seed.setting(FAST).figure(TTFWC_0_9, rtt, name);
            Some(of(RATE)? / of(TCP_RATE)?)
        };
        relations.push(Relation::new(
            ("short", "throughput of TTFWC as a multiple of TCP's at 16 ms", "more than TCP", ""),
            move |seed| ratio(seed, 16.0),
            Expected::Above(1.0),
        ));
        relations.push(Relation::new(
            (
                "long",
                "throughput of TTFWC as a multiple of TCP's at 320 ms (0.75 to 1.25)",
                "no difference",
                "",
            ),
            move |seed| ratio(seed, 320.0),
            Expected::Between(0.75, 1.25),
        ));
    }
    let curve = |label: &str, look, name: &str| Curve {
        label: label.into(),
        look,
        points: Points::Figure { scheme, setting: network.into(), name: name.into() },
    };
    let mut plot = plot_figures(
        ("throughput", &format!("Normalized throughput, {network}"), RATE),
        Axis::new("round trip", "ms"),
        Axis::new("normalized throughput", ""),
        &[],
        Vec::new(),
    );
    plot.curves = vec![curve(scheme.name, scheme, RATE), curve("TCP beside it", RENO, TCP_RATE)];
    let rows = trips(network).iter().map(|rtt| (format!("{rtt} ms"), scheme, network.to_owned(), *rtt));
    Experiment {
        id,
        title: "Throughput beside TCP at several round trips",
        paper: Paper::Ttfwc,
        place,
        claim: if network == SLOW {
            "Three flows of TTFWC beside three of Reno at 10 Mbps: the throughputs differ little, and rise with the parameter."
        } else {
            "Three flows of TTFWC beside three of Reno at 250 Mbps: the throughput rises with the parameter; 0.9 gets more than TCP when the delay is short, \
             and no more when it is long."
        },
        assumed: ASSUMED.map(Into::into).into(),
        random: true,
        jobs: Box::new(move |seed| {
            let mut jobs = Vec::new();
            for scheme in &schemes {
                for rtt in trips(network) {
                    let path = path(network);
                    jobs.push(Job {
                        case: Case { setting: network.into(), ..Case::new(*scheme, *rtt) },
                        models: vec![model(&path, &senders((*scheme, *rtt), (RENO, *rtt)), None, seed)],
                        decisions: &[],
                        measure: Box::new(move |runs| {
                            runs.first().map_or_else(Measured::default, |run| shares(run, path.mbps))
                        }),
                    });
                }
            }
            jobs
        }),
        relations: explained(relations, &[("gain", NOT_FOUND)]),
        plots: vec![plot],
        tables: vec![table(
            "round-trips",
            "Normalized throughputs",
            &[(RATE, RATE), (TCP_RATE, TCP_RATE)],
            rows,
        )],
    }
}

pub(super) fn experiments() -> Vec<Experiment> {
    vec![
        figure_5_11(),
        figure_5_12(),
        beside_tcp("ttfwc-fig5.13", "section 5.2.2, figure 5.13", FAST, TTFWC_0_0),
        beside_tcp("ttfwc-fig5.14", "section 5.2.2, figure 5.14", FAST, TTFWC_0_4),
        beside_tcp("ttfwc-fig5.15", "section 5.2.2, figure 5.15", FAST, TTFWC_0_9),
        beside_tcp("ttfwc-fig5.16", "section 5.2.2, figure 5.16", SLOW, TTFWC_0_0),
        beside_tcp("ttfwc-fig5.17", "section 5.2.2, figure 5.17", SLOW, TTFWC_0_4),
        beside_tcp("ttfwc-fig5.18", "section 5.2.2, figure 5.18", SLOW, TTFWC_0_9),
    ]
}
