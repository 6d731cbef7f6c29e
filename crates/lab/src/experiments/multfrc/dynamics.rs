//! Figures 8 and 9: courses at a steady loss rate and at one that changes.

use anabranch_congestion::multfrc::Parameters as Control;

use super::describe::{Figure, course, plot_courses, table};
use super::sending::{ASSUMED, Sending};
use super::wireless::{CONNECTIONS, LOSS, RTT, THROUGHPUT, Wireless};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Plot, Relation};
use crate::papers;
use crate::scheme::{AUTO, FIRST, MULTFRC, SECOND, Scheme};
use crate::statistics::Estimate;

/// Seconds of a point of a course.
const BIN: usize = 30;

/// Deviation over mean.
fn variation(course: &[(f64, f64)]) -> f64 {
    let values: Vec<f64> = course.iter().map(|(_, value)| *value).collect();
    let estimate = Estimate::of(&values);
    estimate.and_then(|estimate| Some(estimate.deviation? / estimate.mean)).unwrap_or(f64::NAN)
}

fn mean(course: &[(f64, f64)]) -> f64 {
    let values: Vec<f64> = course.iter().map(|(_, value)| *value).collect();
    crate::statistics::mean(&values).unwrap_or(f64::NAN)
}

/// A course between two seconds.
fn part<'a>(measured: &'a Measured, name: &str, from: f64, to: f64) -> &'a [(f64, f64)] {
    let course = measured.series.iter().find(|(have, _)| have == name).map_or(&[][..], |(_, course)| course);
    let start = course.partition_point(|(at, _)| *at <= from);
    &course[start..course.partition_point(|(at, _)| *at <= to).max(start)]
}

const ALL_COURSES: [(&str, &str, &str, &str); 4] = [
    ("throughput", "Throughput", THROUGHPUT, "kbps"),
    ("loss", "Losses from end to end", LOSS, ""),
    ("rtt", "Round trip", RTT, "ms"),
    ("connections", "Number of connections", CONNECTIONS, ""),
];

fn courses(curves: &[(&str, Scheme, Scheme, &str)]) -> Vec<Plot> {
    ALL_COURSES
        .map(|(id, title, name, unit)| {
            let curves = curves
                .iter()
                .map(|(label, scheme, look, setting)| course(label, *scheme, *look, setting, 0.0, name));
            plot_courses(id, title, (name, unit), curves.collect())
        })
        .into()
}

const STEADY: &str = "variation of the throughput";
const STEADY_COUNT: &str = "variation of the number of connections";

pub(super) fn figure_8() -> Experiment {
    let of = |id, claim, published, unit, name, expected| {
        Relation::new(
            (id, claim, published, unit),
            move |seed| Figure::new(MULTFRC, 0.0, name).of(seed),
            expected,
        )
    };
    Experiment {
        id: "multfrc-fig8".into(),
        title: "MULTFRC over time".into(),
        paper: papers::of("multfrc"),
        place: "section IV.B, figure 8".into(),
        claim: "At p_w = 0.04 throughput and number of connections are stable, losses about 0.04, the round trip short.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain(["a queue of 50 packets, ns-2's default"])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let path = Wireless::FAST;
            let job = |sending: Sending| Job {
                case: Case::new(sending.look, 0.0),
                models: vec![path.model(sending, 1, &[(0, 0.04)], seed)],
                decisions: &[],
                measure: Box::new(move |runs| {
                    let Some(run) = runs.first() else { return Measured::default() };
                    let measured = path.courses(run, BIN);
                    let of = |name| part(&measured, name, 600.0, f64::MAX);
                    let figures = Measured::default()
                        .figure(THROUGHPUT, mean(part(&measured, THROUGHPUT, 0.0, f64::MAX)), "kbps")
                        .figure(STEADY, variation(of(THROUGHPUT)), "")
                        .figure(STEADY_COUNT, variation(of(CONNECTIONS)), "")
                        .figure(LOSS, mean(of(LOSS)), "")
                        .figure(RTT, mean(of(RTT)), "ms");
                    Measured { figures: figures.figures, ..measured }
                }),
            };
            vec![job(Sending::multfrc(Control::PAPER)), job(Sending::auto())]
        }),
        relations: vec![
            of(
                "throughput",
                "deviation of the throughput in 30 s as a part of its mean",
                "quite stable (at most 15 %)",
                "",
                STEADY,
                Expected::AtMost(0.15),
            ),
            of(
                "connections",
                "deviation of the number of connections as a part of its mean",
                "quite stable (at most 25 %)",
                "",
                STEADY_COUNT,
                Expected::AtMost(0.25),
            ),
            of("loss", "mean loss (within 5 %)", "around 0.04", "", LOSS, Expected::about(0.04, 0.05)),
            of(
                "rtt",
                "mean round trip",
                "low, as in figure 7 (at most 202 ms)",
                "ms",
                RTT,
                Expected::AtMost(202.0),
            ),
            Relation::new(
                (
                    "auto",
                    "deviation of auto's throughput in 30 s as a part of that of MULTFRC's",
                    "ours: less",
                    "",
                ),
                |seed| Some(seed.figure(AUTO, 0.0, STEADY)? / seed.figure(MULTFRC, 0.0, STEADY)?),
                Expected::Below(1.0),
            ),
        ],
        plots: courses(&[("MULTFRC", MULTFRC, MULTFRC, ""), ("auto", AUTO, AUTO, "")]),
        tables: vec![table(
            "figures",
            "Means from the beginning, the rest from 600 s on",
            &[
                ("throughput (kbps)", THROUGHPUT),
                ("variation of throughput", STEADY),
                ("variation of connections", STEADY_COUNT),
                ("loss", LOSS),
                ("round trip (ms)", RTT),
            ],
            [MULTFRC, AUTO].map(|scheme| (scheme.name.to_owned(), scheme, String::new(), 0.0)),
        )],
    }
}

/// When p_w changes in figure 9.
const UP: f64 = 3000.0;
const DOWN: f64 = 6000.0;
/// The numbers of connections that belong to the two loss rates, by the paper.
const FEW: f64 = 3.0;
const MANY: f64 = 7.0;
const SLOW: &str = "(1, 1)";
const FAST: &str = "(6, 2)";
const AT_FIRST: &str = "connections at first";
const BETWEEN: &str = "connections between";
const AT_LAST: &str = "connections at last";
const RISE: &str = "rise";
const FALL: &str = "fall";
const SWING: &str = "swing";

/// How long from `from` until the number is first as `is_there` says.
fn until(course: &[(f64, f64)], from: f64, is_there: impl Fn(f64) -> bool) -> f64 {
    course.iter().find(|(at, value)| *at > from && is_there(*value)).map_or(f64::NAN, |(at, _)| at - from)
}

fn switching(sending: Sending, setting: &str, seed: u64) -> Job {
    let path = Wireless::FAST;
    Job {
        case: Case { setting: setting.into(), ..Case::new(sending.look, 0.0) },
        models: vec![path.model(sending, 1, &[(0, 0.02), (3000, 0.08), (6000, 0.02)], seed)],
        decisions: &[],
        measure: Box::new(move |runs| {
            let Some(run) = runs.first() else { return Measured::default() };
            let fine = path.courses(run, 1);
            let count = part(&fine, CONNECTIONS, 0.0, f64::MAX);
            let of = |from, to| part(&fine, CONNECTIONS, from, to);
            // Half a connection below the goal is rounded up to it.
            let figures = Measured::default()
                .figure(CONNECTIONS, mean(count), "")
                .figure(AT_FIRST, mean(of(1000.0, UP)), "")
                .figure(BETWEEN, mean(of(4000.0, DOWN)), "")
                .figure(AT_LAST, mean(of(7000.0, f64::MAX)), "")
                .figure(RISE, until(count, UP, |count| count >= MANY - 0.5), "s")
                .figure(FALL, until(count, DOWN, |count| count <= FEW + 0.5), "s")
                .figure(SWING, variation(of(4000.0, DOWN)), "");
            Measured { figures: figures.figures, ..path.courses(run, BIN) }
        }),
    }
}

pub(super) fn figure_9() -> Experiment {
    let with =
        |setting: &'static str, name| Figure { setting: setting.into(), ..Figure::new(MULTFRC, 0.0, name) };
    let of = |id: &str, claim: &str, published: &str, unit, setting, name, expected| -> Relation {
        Relation::new((id, claim, published, unit), move |seed| with(setting, name).of(seed), expected)
    };
    Experiment {
        id: "multfrc-fig9".into(),
        title: "MULTFRC when the loss rate changes".into(),
        paper: papers::of("multfrc"),
        place: "section IV.B, figure 9".into(),
        claim: "p_w is 0.02, from 3000 s on 0.08, from 6000 s on 0.02. The number of connections goes from about 3 to about 7 and back: with (1, 1) \
                in about 214 s up and 87 s down, with (6, 2) in 30 s and 43 s, with large swings and a long round trip.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain([
                "a queue of 50 packets, ns-2's default",
                "the rise lasts until there are 7 connections for the first time, the fall until there are 3",
            ])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            vec![
                switching(Sending::multfrc(Control::PAPER), SLOW, seed),
                switching(Sending::multfrc(Control::FAST), FAST, seed),
                switching(Sending::auto(), "", seed),
            ]
        }),
        relations: vec![
            of(
                "few",
                "mean connections at p_w = 0.02 with (1, 1)",
                "around 3",
                "",
                SLOW,
                AT_FIRST,
                Expected::Between(2.5, 3.5),
            ),
            of(
                "many",
                "mean connections at p_w = 0.08 with (1, 1)",
                "around 7",
                "",
                SLOW,
                BETWEEN,
                Expected::Between(6.0, 8.0),
            ),
            of(
                "back",
                "mean connections at p_w = 0.02 again with (1, 1)",
                "around 3",
                "",
                SLOW,
                AT_LAST,
                Expected::Between(2.5, 3.5),
            ),
            of(
                "rise-slow",
                "time from 3 to 7 connections with (1, 1) (within 50 %)",
                "214 s",
                "s",
                SLOW,
                RISE,
                Expected::about(214.0, 0.5),
            ),
            of(
                "fall-slow",
                "time from 7 to 3 connections with (1, 1) (within 50 %)",
                "87 s",
                "s",
                SLOW,
                FALL,
                Expected::about(87.0, 0.5),
            ),
            of(
                "rise-fast",
                "time from 3 to 7 connections with (6, 2) (within 50 %)",
                "30 s",
                "s",
                FAST,
                RISE,
                Expected::about(30.0, 0.5),
            ),
            of(
                "fall-fast",
                "time from 7 to 3 connections with (6, 2) (within 50 %)",
                "43 s",
                "s",
                FAST,
                FALL,
                Expected::about(43.0, 0.5),
            ),
            Relation::new(
                (
                    "swings",
                    "variation of the number of connections with (6, 2) as a multiple of that with (1, 1)",
                    "huge fluctuation",
                    "",
                ),
                move |seed| Some(with(FAST, SWING).of(seed)? / with(SLOW, SWING).of(seed)?),
                Expected::Above(1.5),
            ),
            Relation::new(
                ("auto", "the rise with auto as a part of that with (1, 1)", "ours: faster", ""),
                move |seed| Some(Figure::new(AUTO, 0.0, RISE).of(seed)? / with(SLOW, RISE).of(seed)?),
                Expected::Below(1.0),
            ),
        ],
        plots: courses(&[
            ("(1, 1)", MULTFRC, FIRST, SLOW),
            ("(6, 2)", MULTFRC, SECOND, FAST),
            ("auto", AUTO, AUTO, ""),
        ]),
        tables: vec![table(
            "figures",
            "Numbers of connections and times",
            &[
                ("connections", CONNECTIONS),
                ("connections at p_w = 0.02", AT_FIRST),
                ("at 0.08", BETWEEN),
                ("at 0.02 again", AT_LAST),
                ("rise (s)", RISE),
                ("fall (s)", FALL),
                ("variation at 0.08", SWING),
            ],
            [
                ("(1, 1)".to_owned(), MULTFRC, SLOW.to_owned(), 0.0),
                ("(6, 2)".to_owned(), MULTFRC, FAST.to_owned(), 0.0),
                ("auto".to_owned(), AUTO, String::new(), 0.0),
            ],
        )],
    }
}
