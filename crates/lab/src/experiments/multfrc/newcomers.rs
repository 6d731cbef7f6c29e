//! Figures 12 and 13: eight streams, and eight more that come later.

use anabranch_congestion::multfrc::{Least, Parameters as Control};
use anabranch_units::Duration;

use super::describe::{Figure, course, explained, plot_courses, table};
use super::dumbbell::{DUMBBELL, model};
use super::sending::{ASSUMED, Sending};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Relation};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AUTO, FIFTH, FIRST, FOURTH, MULTFRC, SECOND, Scheme, THIRD};
use crate::simulate::Recording;

const LOSS: f64 = 0.01;
/// When the second eight come.
const COME: f64 = 2000.0;
const RUN: Duration = Duration::from_secs(4000);
const BIN: Duration = Duration::from_secs(5);
/// So many bins make a mean rate for the time of convergence: 30 s.
const SMOOTH: usize = 6;
const EACH: usize = 8;

const STANDING: &str = "newcomers take the queue that they find for a part of the path, and overshoot; with the shortest single round trip in the place of the least mean they get 0.96 of what the \
    others get from 3000 s on, and have their share after 119 s (table; seeds 1 to 5)";
const COMING: &str = "the time looked at: it holds the moment at which the newcomers come, when the number falls. From 500 s until they come the variation is 1.99 times that with \
    (1, 1) (table; seeds 1 to 5)";
const DRAINED: &str = "the price of fair shares: without the rule that drains long queues the newcomers have their share after 65 to 83 s, and go on to three \
    times the others' (seeds 1 and 2)";

const SLOW: &str = "(1, 1)";
const BRISK: &str = "(2, 2)";
/// A further run: (1, 1), and the least round trip is the shortest single one.
const SHORTEST: &str = "(1, 1), shortest round trip";
const OLD: &str = "the first eight";
const NEW: &str = "the second eight";
const SHARE: &str = "rate of the newcomers / rate of the others";
const CONVERGENCE: &str = "convergence";
const VARIATION: &str = "variation of the number of connections";
const VARIATION_BEFORE: &str = "variation of the number of connections before the newcomers";

/// The mean rate of some streams over time, kbps.
fn rates(run: &Recording, streams: std::ops::Range<usize>) -> Vec<(f64, f64)> {
    let count = streams.len() as f64;
    let samples: Vec<_> = run.flows.iter().filter(|sample| streams.contains(&sample.flow)).collect();
    let rate = |samples: &[&anabranch_sim::report::FlowSample]| {
        let bytes: f64 = samples.iter().map(|sample| sample.delivered.as_f64()).sum();
        (samples[0].at.as_secs_f64(), bytes * 8e-3 / BIN.as_secs_f64() / count)
    };
    samples.chunk_by(|one, other| one.at == other.at).map(rate).collect()
}

fn measure(run: &Recording) -> Measured {
    let (old, new) = (rates(run, 0..EACH), rates(run, EACH..2 * EACH));
    let pairs: Vec<(f64, f64, f64)> = old
        .iter()
        .zip(&new)
        .filter(|((at, _), _)| *at > COME)
        .map(|((at, old), (_, new))| (*at, *old, *new))
        .collect();
    let ratio = |pairs: &[(f64, f64, f64)]| {
        let (old, new) = pairs.iter().fold((0.0, 0.0), |(old, new), pair| (old + pair.1, new + pair.2));
        new / old
    };
    let late = pairs.partition_point(|(at, ..)| *at <= COME + 1000.0);
    let reached = pairs.windows(SMOOTH).find(|window| ratio(window) >= 0.9);
    let convergence = reached.and_then(|window| window.last()).map_or(f64::NAN, |(at, ..)| at - COME);
    let variation = |until: f64| {
        let within = |at: f64| at > 500.0 && at <= until;
        let counts = run.flow(0).filter(|sample| within(sample.at.as_secs_f64()));
        let counts: Vec<f64> = counts.map(|sample| sample.flows).collect();
        let estimate = crate::statistics::Estimate::of(&counts);
        estimate.and_then(|estimate| Some(estimate.deviation? / estimate.mean)).unwrap_or(f64::NAN)
    };
    let delivered: f64 = run.totals.flows[..EACH].iter().map(|flow| flow.delivered.as_f64()).sum();
    Measured::default()
        .figure(OLD, delivered * 8e-3 / run.totals.counted.as_secs_f64() / EACH as f64, "kbps")
        .figure(SHARE, ratio(&pairs[late..]), "")
        .figure(CONVERGENCE, convergence, "s")
        .figure(VARIATION, variation(f64::MAX), "")
        .figure(VARIATION_BEFORE, variation(COME), "")
        .series(OLD, old)
        .series(NEW, new)
}

fn experiment(id: &'static str, title: &'static str, place: &'static str) -> Experiment {
    let curves = |old_look: [Scheme; 2], scheme: Scheme, setting: &str, label: &str| {
        [OLD, NEW]
            .into_iter()
            .zip(old_look)
            .map(|(name, look)| course(&format!("{name}, {label}"), scheme, look, setting, 0.0, name))
            .collect::<Vec<_>>()
    };
    let plot = |id: &str, label: &str, scheme: Scheme, setting: &str, looks: [Scheme; 2]| {
        plot_courses(
            id,
            &format!("Mean rate of the streams, {label}"),
            ("rate of a stream", "kbps"),
            curves(looks, scheme, setting, label),
        )
    };
    Experiment {
        id: id.into(),
        title: title.into(),
        paper: papers::of("multfrc"),
        place: place.into(),
        claim: "p_w is 0.01. Eight streams, and eight more from 2000 s on: these get as much as the first, after about 180 s with (1, 1) and 90 s with \
                (2, 2), whose number of connections varies a little more.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain(DUMBBELL)
            .chain(["converged: the mean rate of the second eight in 30 s is 0.9 of that of the first"])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let shortest = Control { least: Least::Sample, ..Control::PAPER };
            let runs = [
                (Sending::multfrc(Control::PAPER), SLOW),
                (Sending::multfrc(shortest), SHORTEST),
                (Sending::multfrc(Control::BRISK), BRISK),
                (Sending::auto(), ""),
            ];
            runs.map(|(sending, setting)| Job {
                case: Case { setting: setting.into(), ..Case::new(sending.look, 0.0) },
                models: vec![model(sending, (2 * EACH, 0), LOSS, (EACH, COME), (RUN, BIN), seed)],
                decisions: &[],
                measure: Box::new(|runs| runs.first().map_or_else(Measured::default, measure)),
            })
            .into()
        }),
        relations: Vec::new(),
        plots: vec![
            plot("slow", SLOW, MULTFRC, SLOW, [FIRST, SECOND]),
            plot("brisk", BRISK, MULTFRC, BRISK, [THIRD, FOURTH]),
            plot("auto", "auto", AUTO, "", [AUTO, FIFTH]),
        ],
        tables: vec![table(
            "figures",
            "Shares and times",
            &[
                ("mean rate of the first eight (kbps)", OLD),
                ("share of the newcomers from 3000 s on", SHARE),
                ("convergence (s)", CONVERGENCE),
                ("variation of connections", VARIATION),
                ("the same before they come", VARIATION_BEFORE),
            ],
            [
                (SLOW.to_owned(), MULTFRC, SLOW.to_owned(), 0.0),
                (SHORTEST.to_owned(), MULTFRC, SHORTEST.to_owned(), 0.0),
                (BRISK.to_owned(), MULTFRC, BRISK.to_owned(), 0.0),
                ("auto".to_owned(), AUTO, String::new(), 0.0),
            ],
        )],
    }
}

fn of(
    scheme: Scheme,
    setting: &'static str,
    name: &'static str,
) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync + 'static {
    let figure = Figure { setting: setting.into(), ..Figure::new(scheme, 0.0, name) };
    move |seed| figure.clone().of(seed)
}

pub(super) fn figure_12() -> Experiment {
    let fair = |id: &str, label: &str, scheme, setting| {
        Relation::new(
            (
                id,
                &format!(
                    "rate of the newcomers as a multiple of that of the others from 3000 s on, {label} (within 10 %)"
                ),
                "1",
                "",
            ),
            of(scheme, setting, SHARE),
            Expected::about(1.0, 0.1),
        )
    };
    let relations = vec![
        fair("slow", SLOW, MULTFRC, SLOW),
        fair("brisk", BRISK, MULTFRC, BRISK),
        fair("auto", "auto", AUTO, ""),
        Relation::new(
            (
                "variation",
                "variation of the number of connections with (2, 2) as a multiple of that with (1, 1)",
                "slightly higher",
                "",
            ),
            |seed| Some(of(MULTFRC, BRISK, VARIATION)(seed)? / of(MULTFRC, SLOW, VARIATION)(seed)?),
            Expected::Above(1.0),
        ),
    ];
    Experiment {
        relations: explained(relations, &[("slow", STANDING), ("variation", COMING)]),
        ..experiment("multfrc-fig12", "Newcomers among MULTFRC streams", "section IV.D, figure 12")
    }
}

pub(super) fn figure_13() -> Experiment {
    let time = |id: &str, label: &str, published: f64, setting| {
        Relation::new(
            (
                id,
                &format!("time until the newcomers have their share, {label} (within 50 %)"),
                &format!("about {published} s"),
                "s",
            ),
            of(MULTFRC, setting, CONVERGENCE),
            Expected::about(published, 0.5),
        )
    };
    let relations = vec![
        time("slow", SLOW, 180.0, SLOW),
        time("brisk", BRISK, 90.0, BRISK),
        Relation::new(
            ("faster", "the time with (2, 2) as a part of that with (1, 1)", "a half", ""),
            |seed| Some(of(MULTFRC, BRISK, CONVERGENCE)(seed)? / of(MULTFRC, SLOW, CONVERGENCE)(seed)?),
            Expected::Below(1.0),
        ),
        Relation::new(
            (
                "auto",
                "time until the newcomers have their share, auto",
                "ours: no longer than (1, 1) in the paper",
                "s",
            ),
            of(AUTO, "", CONVERGENCE),
            Expected::AtMost(180.0),
        ),
    ];
    Experiment {
        relations: explained(relations, &[("slow", STANDING), ("auto", DRAINED)]),
        ..experiment("multfrc-fig13", "How soon newcomers have their share", "section IV.D, figure 13")
    }
}
