//! Equation (10): what the control law leaves unused.

use anabranch_congestion::multfrc::analysis::utilization;
use anabranch_congestion::multfrc::{Law, Parameters as Control};
use anabranch_units::Ratio;

use super::describe::{Figure, explained, plot_figures, table};
use super::sending::{ASSUMED, Sending};
use super::wireless::{CONNECTIONS, RTT_RATIO, UTILIZATION, Wireless};
use crate::case::Case;
use crate::experiment::{Axis, Expected, Experiment, Job, Jobs, Relation};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AIO_TFRC, MULTFRC};

const LOSSES: [f64; 4] = [0.02, 0.04, 0.06, 0.08];
const PATH: Wireless = Wireless { seconds: 5000, ..Wireless::FAST };
const FIFTH: Ratio = Ratio::new(1, 5);
/// beta, m, gamma, and how they are told apart; the last one is a further run, which bears a quarter of the
/// queue.
const RUNS: [(f64, u32, Ratio, &str); 5] = [
    (1.0, 50, FIFTH, ""),
    (2.0, 50, FIFTH, "beta = 2"),
    (1.0, 25, FIFTH, "m = 25"),
    (1.0, 100, FIFTH, "m = 100"),
    (2.0, 50, Ratio::new(1, 20), "beta = 2, gamma = 0.05"),
];

const BORNE: &str = "the law waits for a queue of gamma before n falls, so that the link is full while n is beyond n*, and the formula knows no queue: with gamma = 0.05 in place of 0.2 the distance is \
    at most 0.061 (table; seeds 1 to 5)";

fn measured(seed: OneSeed<'_>, setting: &str, loss: f64, name: &'static str) -> Option<f64> {
    Figure { setting: setting.into(), ..Figure::new(AIO_TFRC, loss, name) }.of(seed)
}

/// The largest over the loss rates.
fn largest(of: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = LOSSES.into_iter().map(of).collect();
    values?.into_iter().reduce(f64::max)
}

pub(super) fn equation_10() -> Experiment {
    let mut relations: Vec<Relation> = Vec::new();
    for (decrease, _, _, setting) in [RUNS[0], RUNS[1]] {
        relations.push(Relation::new(
            (
                &format!("beta-{decrease}"),
                &format!("largest distance of the utilization from equation (10), as a part of it, beta = {decrease} (at most 15 %)"),
                "reasonably close",
                "",
            ),
            move |seed| {
                largest(|loss| {
                    let expected = utilization(measured(seed, setting, loss, CONNECTIONS)?, decrease);
                    Some((measured(seed, setting, loss, UTILIZATION)? / expected - 1.0).abs())
                })
            },
            Expected::AtMost(0.15),
        ));
        relations.push(Relation::new(
            (
                &format!("least-{decrease}"),
                &format!("least utilization, beta = {decrease}"),
                "at least 2/3",
                "",
            ),
            move |seed| {
                largest(|loss| Some(-measured(seed, setting, loss, UTILIZATION)?))
                    .map(|utilization| -utilization)
            },
            Expected::AtLeast(2.0 / 3.0),
        ));
    }
    relations.push(Relation::new(
        ("beta", "mean utilization with beta = 2 as a multiple of that with beta = 1", "less", ""),
        |seed| {
            let sum = |setting| {
                LOSSES.iter().map(|loss| measured(seed, setting, *loss, UTILIZATION)).sum::<Option<f64>>()
            };
            Some(sum("beta = 2")? / sum("")?)
        },
        Expected::Below(1.0),
    ));
    for setting in ["m = 25", "m = 100"] {
        relations.push(Relation::new(
            (
                &setting.replace(" = ", "-"),
                &format!("largest change of the utilization with {setting} in place of m = 50 (at most 5 %)"),
                "independent of m",
                "",
            ),
            move |seed| {
                largest(|loss| {
                    let ratio =
                        measured(seed, setting, loss, UTILIZATION)? / measured(seed, "", loss, UTILIZATION)?;
                    Some((ratio - 1.0).abs())
                })
            },
            Expected::AtMost(0.05),
        ));
    }
    Experiment {
        id: "multfrc-eq10".into(),
        title: "What the control law leaves unused".into(),
        paper: papers::of("multfrc"),
        place: "section III.C, equation (10)".into(),
        claim: "The utilization depends on beta and the optimal number of connections only, not on p_w, m or the round trip, and is at least 2/3.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain([
                "AIO-TFRC, so that the law alone counts and not the rounding of n; n* is the mean number of connections, as in figure 7",
                "a queue of 50 packets, ns-2's default; 5000 s",
            ])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let all = RUNS.iter().flat_map(|run| LOSSES.map(|loss| (run, loss)));
            all.map(|((decrease, round_trips, tolerance, setting), loss)| -> Job {
                let law = Law::InverseIncrease { increase: 1.0, decrease: *decrease };
                let (round_trips, tolerance) = (*round_trips, *tolerance);
                let sending = Sending::aio_tfrc(Control { law, round_trips, tolerance, ..Control::PAPER });
                let case = Case { setting: (*setting).into(), ..Case::new(sending.look, loss) };
                PATH.job(case, sending, 1, loss, seed)
            })
            .collect()
        }),
        relations: explained(relations, &[("beta-2", BORNE)]),
        plots: vec![plot_figures(
            ("utilization", "Utilization under the control law, beta = 1", UTILIZATION),
            Axis::new("wireless channel error rate p_w", ""),
            Axis::new("utilization", ""),
            &[AIO_TFRC],
            vec![crate::experiment::Curve {
                label: "equation (10)".into(),
                look: MULTFRC,
                points: crate::experiment::Points::Figure {
                    scheme: AIO_TFRC,
                    setting: String::new(),
                    name: super::wireless::PREDICTED.into(),
                },
            }],
        )],
        tables: vec![table(
            "figures",
            "Means",
            &[("utilization", UTILIZATION), ("connections", CONNECTIONS), ("round trip / least", RTT_RATIO)],
            RUNS.iter().flat_map(|(decrease, round_trips, tolerance, setting)| {
                LOSSES.map(|loss| {
                    let gamma = tolerance.as_f64();
                    (format!("beta = {decrease}, m = {round_trips}, gamma = {gamma}, p_w = {loss}"), AIO_TFRC, (*setting).to_owned(), loss)
                })
            }),
        )],
    }
}
