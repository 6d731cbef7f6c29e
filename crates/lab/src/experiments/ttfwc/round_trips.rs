//! Figures 5.11 and 5.12: fairness in the thesis's measurements over dummynet, simulated.

use anabranch_congestion::tfwc::Update;
use anabranch_units::Duration;

use super::network::{Path, Sender, control, model, rates};
use crate::case::{Case, Measured};
use crate::experiment::{Axis, Curve, Expected, Experiment, Job, Jobs, Points, Relation};
use crate::experiments::describe::{explained, plot_figures, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{CUBIC, RENO, Scheme, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};
use crate::simulate::Recording;
use crate::statistics::jain_index;

/// Round trips without a queue, ms. At 250 Mbps every second one.
pub(super) const TRIPS: [f64; 5] = [16.0, 32.0, 120.0, 240.0, 320.0];
const FAST_TRIPS: [f64; 3] = [16.0, 120.0, 320.0];
const TTFWC: [Scheme; 3] = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9];
const ALL: [Scheme; 5] = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9, RENO, CUBIC];

pub(super) const SLOW: &str = "10 Mbps";
pub(super) const FAST: &str = "250 Mbps";
const JAIN: &str = "fairness index";

pub(super) const ASSUMED: [&str; 7] = [
    "simulated, where the thesis measured Linux 3.0 over dummynet; the same figures over real kernels are the testbed's business",
    "packets of 1448 bytes and 52 of headers, an initial window of ten, one acknowledgement a packet (Linux counts packets, so that delayed acknowledgements would not make it slower); least time-out 200 ms",
    "a queue of 50 packets, dummynet's default, in both networks",
    "200 s, of which the first 20 do not count; at 250 Mbps only round trips of 16, 120 and 320 ms",
    "the receivers are 0 to 2.6 ms further away, as in the thesis's simulations: where all round trips are equal to the microsecond, flows that \
     grow bear nearly all drops, and TFWC gets 4.1 times as much as Reno in place of 0.88 times (3 and 3 flows, 10 Mbps, 46 ms, seeds 1 and 2)",
    "every packet leaves late by chance by up to the time that one takes on the link; flows begin within the first 5 s",
    "weights of the loss intervals as RFC 5348 has them; the mean interval is reckoned accurately (see ttfwc-update)",
];

const SPREAD: &str = "the largest of five distances, each with the spread of its runs: between means over 40 seeds it is 0.100 at 0.0. At 16 ms TTFWC is the \
    fairer one (0.84, 0.83 and 0.80; Reno 0.72)";
const SIMULATED: &str = "how fast CUBIC comes back at a short round trip. Below the window of before the loss it grows by 0.53 segments each round trip in its Reno-friendly region (RFC 9438, \
    section 4.3). With a whole one its index is 0.544, and 0.9's 0.012 ± 0.014 above it (seeds 1 to 5). Flows at the same distance, a queue of 500 packets, delayed acknowledgements, \
    packets late by up to 1 ms, CUBIC with 0.8 in place of 0.7 or without fast convergence do not explain it (0.001 to 0.055 below; seeds 1 to 3)";
const UNEQUAL: &str = "receivers that are 0 to 2.6 ms farther away here. Where all round trips are equal to the microsecond, as on the thesis's hosts, 0.9 has 0.88 and 0.81 at 240 and 320 ms, \
    Reno 0.99 and 1.00 and CUBIC 0.97 and 0.96, and at 16 ms all have 0.99 or more (table; seeds 1 to 5)";

/// A further run: the receivers of flows at the same round trip are equally far away.
const SAME: &str = "10 Mbps, equal to the microsecond";
const SAME_TRIPS: &[f64] = &[16.0, 240.0, 320.0];

pub(super) fn path(network: &str) -> Path {
    let slow = Path {
        mbps: 10.0,
        delay_ms: 1.0,
        queue: 50,
        segment: 1448,
        jitter: Duration::from_micros(1200),
        seconds: 200,
        warm_up: 20,
    };
    if network == FAST { Path { mbps: 250.0, jitter: Duration::from_micros(48), ..slow } } else { slow }
}

pub(super) fn trips(network: &str) -> &'static [f64] {
    match network {
        SLOW => &TRIPS,
        SAME => SAME_TRIPS,
        _ => &FAST_TRIPS,
    }
}

/// The networks of figure 5.12, and of the figures with different round trips.
fn networks(is_equal: bool) -> &'static [&'static str] {
    if is_equal { &[SLOW, FAST, SAME] } else { &[SLOW, FAST] }
}

/// How much farther away the farthest receiver is than at its round trip, ms.
pub(super) const SPREAD_MS: f64 = 2.6;

/// Three flows of one scheme at one round trip, and three of another at another.
pub(super) fn senders(one: (Scheme, f64), other: (Scheme, f64), spread_ms: f64) -> Vec<Sender> {
    let sender = |(number, (scheme, rtt)): (usize, (Scheme, f64))| Sender {
        control: control(scheme, Update::Accurate),
        // The rest of the way is 1 ms in the bottleneck and 0.5 ms before it.
        access_ms: (0.5, (rtt / 2.0 - 1.5).max(0.0) + spread_ms * number as f64 / 5.0),
    };
    [one, other, one, other, one, other].into_iter().enumerate().map(sender).collect()
}

fn jain(run: &Recording) -> Measured {
    Measured::default().figure(JAIN, jain_index(&rates(run)).unwrap_or(f64::NAN), "")
}

/// Jain's index of all schemes: the second half of the flows at 120 ms, or at the same round trip as the
/// first.
fn fairness_jobs(is_equal: bool, seed: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for network in networks(is_equal) {
        let spread_ms = if *network == SAME { 0.0 } else { SPREAD_MS };
        for scheme in ALL {
            for rtt in trips(network) {
                let other = if is_equal { *rtt } else { 120.0 };
                jobs.push(Job {
                    case: Case { setting: (*network).into(), ..Case::new(scheme, *rtt) },
                    models: vec![model(
                        &path(network),
                        &senders((scheme, *rtt), (scheme, other), spread_ms),
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
    relations: Vec<Relation>,
) -> Experiment {
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
    let rows = networks(is_equal).iter().flat_map(|network| {
        ALL.into_iter().flat_map(move |scheme| {
            trips(network).iter().map(move |rtt| {
                (format!("{network}, {}, {rtt} ms", scheme.name), scheme, (*network).to_owned(), *rtt)
            })
        })
    });
    Experiment {
        id: id.into(),
        title: title.into(),
        paper: papers::of("ttfwc"),
        place: place.into(),
        claim: claim.into(),
        assumed: ASSUMED.map(Into::into).into(),
        random: true,
        jobs: Jobs::new(move |seed| fairness_jobs(is_equal, seed)),
        relations,
        plots: plots.into(),
        tables: vec![table("fairness", "Jain's fairness index", &[(JAIN, JAIN)], rows)],
    }
}

pub(super) fn tp(scheme: Scheme) -> &'static str {
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
        explained(
            relations,
            &[("slow-0.0", SPREAD), ("slow-0.4", SPREAD), ("slow-0.9", SPREAD), ("fast-cubic", SIMULATED)],
        ),
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
        explained(relations, &[("long-reno", UNEQUAL), ("long-cubic", UNEQUAL)]),
    )
}

pub(super) fn experiments() -> Vec<Experiment> {
    vec![figure_5_11(), figure_5_12()]
}
