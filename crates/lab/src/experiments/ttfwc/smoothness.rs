//! Figure 5.9: how much throughput varies; and what the approximate mean interval changes.

use anabranch_congestion::tfwc::Update;

use super::friendliness::{PATH, every_second, senders};
use super::network::{ASSUMED, model, rates};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Relation};
use crate::experiments::describe::{course, plot_courses, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{SACK, Scheme, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};
use crate::simulate::Recording;

const FLOWS: usize = 8;
const SCHEMES: [Scheme; 3] = [TTFWC_0_0, TTFWC_0_4, TTFWC_0_9];

const RATE: &str = "throughput of TTFWC";
const TCP_RATE: &str = "throughput of TCP";
const VARIATION: &str = "variation of TTFWC";
const TCP_VARIATION: &str = "variation of TCP";
const APPROXIMATE: &str = "approximate";

/// The coefficient of variation of each flow's throughput over bins of 1 s.
fn variations(run: &Recording) -> Vec<f64> {
    let variation = |flow| {
        let rates: Vec<f64> = run
            .flow(flow)
            .filter(|sample| {
                sample.at.as_secs_f64() > run.totals.counted.as_secs_f64().min(PATH.warm_up as f64)
            })
            .map(|sample| sample.delivered.as_f64())
            .collect();
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let square = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / count;
        square.sqrt() / mean
    };
    (0..2 * FLOWS).map(variation).collect()
}

fn measure(run: &Recording) -> Measured {
    let (rates, variations) = (rates(run), variations(run));
    let mean = |values: &[f64], from| {
        let chosen = every_second(values, from);
        chosen.iter().sum::<f64>() / chosen.len() as f64
    };
    let seconds = |flow| {
        let samples =
            run.flow(flow).map(|sample| (sample.at.as_secs_f64(), sample.delivered.as_f64() * 8e-6));
        samples.collect::<Vec<_>>()
    };
    Measured::default()
        .figure(RATE, mean(&rates, 0), "Mbps")
        .figure(TCP_RATE, mean(&rates, 1), "Mbps")
        .figure(VARIATION, mean(&variations, 0), "")
        .figure(TCP_VARIATION, mean(&variations, 1), "")
        .series(RATE, seconds(0))
        .series(TCP_RATE, seconds(1))
}

fn job(scheme: Scheme, update: Update, seed: u64) -> Job {
    let setting = if update == Update::Approximate { APPROXIMATE } else { "" };
    Job {
        case: Case { setting: setting.into(), ..Case::new(scheme, 0.0) },
        models: vec![model(&PATH, &senders(scheme, update, FLOWS), None, seed)],
        decisions: &[],
        measure: Box::new(|runs| runs.first().map_or_else(Measured::default, measure)),
    }
}

/// A figure of one scheme as a multiple of a figure of another.
fn ratio(
    one: (Scheme, &'static str),
    other: (Scheme, &'static str),
) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync {
    move |seed| Some(seed.figure(one.0, 0.0, one.1)? / seed.figure(other.0, 0.0, other.1)?)
}

fn assumed() -> Vec<String> {
    ASSUMED
        .into_iter()
        .chain([
            "a queue of 80 packets",
            "300 s, of which the first 20 do not count",
            "variation: standard deviation over mean of bins of 1 s",
        ])
        .map(Into::into)
        .collect()
}

const COLUMNS: [(&str, &str); 4] = [
    ("TTFWC (Mbps)", RATE),
    ("TCP beside it (Mbps)", TCP_RATE),
    ("variation of TTFWC", VARIATION),
    ("variation of TCP", TCP_VARIATION),
];

pub(super) fn experiments() -> Vec<Experiment> {
    vec![figure_5_9(), update()]
}

fn figure_5_9() -> Experiment {
    let mut curves: Vec<_> = SCHEMES.map(|scheme| course(scheme.name, scheme, scheme, "", 0.0, RATE)).into();
    curves.push(course("TCP beside 0.9", TTFWC_0_9, SACK, "", 0.0, TCP_RATE));
    Experiment {
        id: "ttfwc-fig5.9".into(),
        title: "Smoothness".into(),
        paper: papers::of("ttfwc"),
        place: "section 5.1.3, figure 5.9".into(),
        claim: "Of eight flows beside eight TCPs, those at 0.0 and 0.4 behave almost alike; those at 0.9 swing more, and are far smoother than TCP.".into(),
        assumed: assumed(),
        random: true,
        jobs: Jobs::new(|seed| SCHEMES.iter().map(|scheme| job(*scheme, Update::Accurate, seed)).collect()),
        relations: vec![
            Relation::new(
                (
                    "alike",
                    "variation at 0.4 as a multiple of that at 0.0 (within 15 %)",
                    "almost the same",
                    "",
                ),
                ratio((TTFWC_0_4, VARIATION), (TTFWC_0_0, VARIATION)),
                Expected::about(1.0, 0.15),
            ),
            Relation::new(
                ("swings", "variation at 0.9 as a multiple of that at 0.0", "larger oscillation", ""),
                ratio((TTFWC_0_9, VARIATION), (TTFWC_0_0, VARIATION)),
                Expected::Above(1.1),
            ),
            Relation::new(
                ("smoother", "variation at 0.9 as a part of that of the TCPs beside it", "much smoother", ""),
                ratio((TTFWC_0_9, VARIATION), (TTFWC_0_9, TCP_VARIATION)),
                Expected::Below(0.75),
            ),
        ],
        plots: vec![plot_courses(
            "throughput",
            "Throughput of a flow in bins of 1 s (figure 5.9)",
            ("throughput", "Mbps"),
            curves,
        )],
        tables: vec![table(
            "smoothness",
            "Means of eight flows",
            &COLUMNS,
            SCHEMES.map(|scheme| (scheme.name.to_owned(), scheme, String::new(), 0.0)),
        )],
    }
}

fn update() -> Experiment {
    let mut relations = Vec::new();
    for scheme in SCHEMES {
        let tp = scheme.name.rsplit(' ').next().unwrap_or_default();
        for (what, name) in [("throughput", RATE), ("variation", VARIATION)] {
            relations.push(Relation::new(
                (
                    &format!("{what}-{tp}"),
                    &format!("{what} with the approximate mean as a multiple of that with the accurate one, at {tp} (within 10 %)"),
                    "a little smoother, a little more aggressive",
                    "",
                ),
                move |seed| {
                    Some(seed.setting(APPROXIMATE).figure(scheme, 0.0, name)? / seed.figure(scheme, 0.0, name)?)
                },
                Expected::about(1.0, 0.1),
            ));
        }
    }
    let rows = ["", APPROXIMATE].into_iter().flat_map(|setting| {
        SCHEMES.map(|scheme| (format!("{} {setting}", scheme.name), scheme, setting.to_owned(), 0.0))
    });
    Experiment {
        id: "ttfwc-update".into(),
        title: "The accurate and the approximate mean interval".into(),
        paper: papers::of("ttfwc"),
        place: "section 4.1".into(),
        claim: "Adding a packet to the mean interval after a fixed number of packets, in place of reckoning it anew at each acknowledgement, changes little.".into(),
        assumed: assumed(),
        random: true,
        jobs: Jobs::new(|seed| {
            let updates = [Update::Accurate, Update::Approximate];
            updates.into_iter().flat_map(|update| SCHEMES.map(|scheme| job(scheme, update, seed))).collect()
        }),
        relations,
        plots: Vec::new(),
        tables: vec![table("update", "Means of eight flows", &COLUMNS, rows)],
    }
}
