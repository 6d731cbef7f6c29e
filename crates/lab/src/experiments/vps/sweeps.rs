//! Figures 6, 7 and 9: more flows, weights further apart, receivers further apart.

use super::measure::{ACCURACY, AGGREGATE, FAIRNESS, PLAIN, metrics};
use super::network::{ASSUMED, Setup, WARM_UP};
use crate::case::{Case, Measured};
use crate::experiment::{Axis, Curve, Expected, Experiment, Job, Jobs, Points, Relation};
use crate::experiments::describe::{explained, extreme, plot_figures, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{MULTCP, RENO, Scheme, VPS, WINDOWS};

const SECONDS: u64 = 300;
const COUNTS: [f64; 5] = [3.0, 6.0, 9.0, 12.0, 15.0];
const DIFFERENCES: [f64; 6] = [0.0, 1.0, 2.0, 4.0, 7.0, 10.0];
const DISTANCES: [f64; 4] = [0.0, 15.0, 30.0, 45.0];

fn job(case: Case, setup: &Setup, seed: u64) -> Job {
    let weights = setup.weights.clone();
    Job {
        case,
        models: vec![setup.model(seed)],
        decisions: &[],
        measure: Box::new(move |runs| {
            runs.first().map_or_else(Measured::default, |run| metrics(run, &weights, WARM_UP as usize))
        }),
    }
}

/// The largest of a figure over points, as a multiple of its smallest.
fn span(
    scheme: Scheme,
    points: &'static [f64],
    name: &'static str,
) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync {
    let (least, most) = (extreme(scheme, points, name, f64::min), extreme(scheme, points, name, f64::max));
    move |seed| Some(most(seed)? / least(seed)?)
}

/// A relation of two points of a figure: the last as a multiple of the first.
fn growth(
    scheme: Scheme,
    (first, last): (f64, f64),
    name: &'static str,
) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync {
    move |seed| Some(seed.figure(scheme, last, name)? / seed.figure(scheme, first, name)?)
}

/// Accuracy and fairness of both schemes in a table.
fn rows(points: &[f64], what: &str) -> Vec<(String, Scheme, String, f64)> {
    let schemes = [VPS, MULTCP];
    let row = |(scheme, point): (Scheme, f64)| {
        (format!("{}, {what} = {point}", scheme.name), scheme, String::new(), point)
    };
    schemes.into_iter().flat_map(|scheme| points.iter().map(move |point| (scheme, *point))).map(row).collect()
}

const COLUMNS: [(&str, &str); 2] = [("allocation accuracy", ACCURACY), ("fairness ratio", FAIRNESS)];

const QUEUE: &str = "the bottleneck's queue, which the paper does not tell: the three weighted flows of N = 3 keep the 201 packets full and take nearly all (F of 19; 12 \
    with 40 packets, 7 with RED, 300 s, seed 1), so that there is nothing left to grow by";

pub(super) fn figure_6() -> Experiment {
    let weights =
        |count: f64| -> Vec<f64> { [1.0, 4.0, 8.0].into_iter().cycle().take(count as usize).collect() };
    let axis = || Axis::new("N", "");
    Experiment {
        id: "vps-fig6".into(),
        title: "More flows".into(),
        paper: papers::of("vps"),
        place: "section 4.4, figure 6".into(),
        claim: "From 3 to 15 flows the accuracy of both stays, and so does the fairness of VPS; MulTCP becomes increasingly more aggressive.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain(["weights beyond the third repeat 1, 4, 8"])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(move |seed| {
            let mut jobs = Vec::new();
            for count in COUNTS {
                for scheme in [VPS, MULTCP] {
                    jobs.push(job(
                        Case::new(scheme, count),
                        &Setup::new(scheme, &weights(count), SECONDS),
                        seed,
                    ));
                }
            }
            jobs
        }),
        relations: explained(
            vec![
                Relation::new(
                    ("vps-accuracy", "least A of VPS over all N", "consistent, 1.0", ""),
                    extreme(VPS, &COUNTS, ACCURACY, f64::min),
                    Expected::AtLeast(0.99),
                ),
                Relation::new(
                    (
                        "vps-fairness",
                        "largest F of VPS over all N, as a multiple of the smallest",
                        "consistent",
                        "",
                    ),
                    span(VPS, &COUNTS, FAIRNESS),
                    Expected::AtMost(1.25),
                ),
                Relation::new(
                    (
                        "multcp-accuracy",
                        "largest A of MulTCP over all N, as a multiple of the smallest",
                        "consistent",
                        "",
                    ),
                    span(MULTCP, &COUNTS, ACCURACY),
                    Expected::AtMost(1.15),
                ),
                Relation::new(
                    (
                        "multcp-fairness",
                        "F of MulTCP with N = 15, as a multiple of that with N = 3",
                        "grows",
                        "",
                    ),
                    growth(MULTCP, (3.0, 15.0), FAIRNESS),
                    Expected::Above(1.0),
                ),
            ],
            &[("multcp-accuracy", QUEUE), ("multcp-fairness", QUEUE)],
        ),
        plots: vec![
            plot_figures(
                ("accuracy", "Allocation accuracy (figure 6)", ACCURACY),
                axis(),
                Axis::new(ACCURACY, ""),
                &[VPS, MULTCP],
                Vec::new(),
            ),
            plot_figures(
                ("fairness", "Fairness ratio (figure 6)", FAIRNESS),
                axis(),
                Axis::new(FAIRNESS, ""),
                &[VPS, MULTCP],
                Vec::new(),
            ),
        ],
        tables: vec![table("flows", "Accuracy and fairness", &COLUMNS, rows(&COUNTS, "N"))],
    }
}

pub(super) fn figure_7() -> Experiment {
    let axis = || Axis::new("d", "");
    Experiment {
        id: "vps-fig7".into(),
        title: "Weights further apart".into(),
        paper: papers::of("vps"),
        place: "section 4.4, figure 7".into(),
        claim: "With weights 1 + d(i - 1), VPS performs consistently for every d; the accuracy of MulTCP falls as they get wider.".into(),
        assumed: ASSUMED.into_iter().chain(["three flows; d from 0 to 10"]).map(Into::into).collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let mut jobs = Vec::new();
            for d in DIFFERENCES {
                for scheme in [VPS, MULTCP] {
                    let setup = Setup::new(scheme, &[1.0, 1.0 + d, 1.0 + 2.0 * d], SECONDS);
                    jobs.push(job(Case::new(scheme, d), &setup, seed));
                }
            }
            jobs
        }),
        relations: vec![
            Relation::new(
                ("vps-accuracy", "least A of VPS over all d", "negligible variation, 1.0", ""),
                extreme(VPS, &DIFFERENCES, ACCURACY, f64::min),
                Expected::AtLeast(0.99),
            ),
            Relation::new(
                (
                    "vps-fairness",
                    "largest F of VPS over all d, as a multiple of the smallest",
                    "negligible variation",
                    "",
                ),
                span(VPS, &DIFFERENCES, FAIRNESS),
                Expected::AtMost(1.25),
            ),
            Relation::new(
                (
                    "multcp-accuracy",
                    "A of MulTCP with d = 10, as a multiple of that with d = 1",
                    "decreases",
                    "",
                ),
                growth(MULTCP, (1.0, 10.0), ACCURACY),
                Expected::Below(1.0),
            ),
        ],
        plots: vec![
            plot_figures(
                ("accuracy", "Allocation accuracy (figure 7)", ACCURACY),
                axis(),
                Axis::new(ACCURACY, ""),
                &[VPS, MULTCP],
                Vec::new(),
            ),
            plot_figures(
                ("fairness", "Fairness ratio (figure 7)", FAIRNESS),
                axis(),
                Axis::new(FAIRNESS, ""),
                &[VPS, MULTCP],
                Vec::new(),
            ),
        ],
        tables: vec![table("weights", "Accuracy and fairness", &COLUMNS, rows(&DIFFERENCES, "d"))],
    }
}

const NEAR: &str = "heaviest nearest";
const FAR: &str = "a virtual flow's acknowledgements come from all receivers in proportion to the weights, so its round trip is the weighted mean of theirs: with the \
    weight of 8 on the farthest receiver it is longer than that of the plain flows, and with the weight of 8 on the nearest (in the table) \
    shorter, and VPS gets more";
const WINDOWS_FAR: &str = "its round trip too is the weighted mean of theirs, and it has less than the plain flows at any distance (0.87 of theirs at x = 0). With the weight of 8 on the nearest receiver \
    these balance: it is 0.09 and 0.11 off at 30 and 45 ms where VPS is 0.17 and 0.16 (table; seeds 1 to 5)";

pub(super) fn figure_9() -> Experiment {
    let mut relations = Vec::new();
    for x in DISTANCES {
        relations.push(Relation::new(
            (
                &format!("equal-{x}"),
                &format!(
                    "aggregate of VPS as a multiple of that of the plain flows, x = {x} ms (within 10 %)"
                ),
                "similar",
                "",
            ),
            move |seed| Some(seed.figure(VPS, x, AGGREGATE)? / seed.figure(VPS, x, PLAIN)?),
            Expected::about(1.0, 0.1),
        ));
    }
    relations.push(Relation::new(
        ("accuracy", "least A of VPS over all x", "not told", ""),
        extreme(VPS, &DISTANCES, ACCURACY, f64::min),
        Expected::AtLeast(0.99),
    ));
    relations.extend([30.0, 45.0].map(|x| {
        let further = move |seed: OneSeed<'_>| {
            let ratio = |scheme| Some(seed.figure(scheme, x, AGGREGATE)? / seed.figure(scheme, x, PLAIN)?);
            Some((ratio(WINDOWS)? - 1.0).abs() - (ratio(VPS)? - 1.0).abs())
        };
        let claim =
            format!("distance of the aggregate from that of the plain flows, as a part of it, x = {x} ms, a group by windows less VPS");
        Relation::new((&format!("windows-{x}"), &claim, "ours, not in the paper", ""), further, Expected::AtMost(0.0))
    }));
    let columns = [
        ("weighted flows (Mbps)", AGGREGATE),
        ("plain flows (Mbps)", PLAIN),
        ("allocation accuracy", ACCURACY),
    ];
    let rows = [(VPS, ""), (VPS, NEAR), (RENO, ""), (WINDOWS, ""), (WINDOWS, NEAR)].into_iter().flat_map(
        |(scheme, setting)| {
            DISTANCES
                .map(|x| (format!("{} {setting}, x = {x} ms", scheme.name), scheme, setting.to_owned(), x))
        },
    );
    let beside = |label: &str, look, name: &str| Curve {
        label: label.into(),
        look,
        points: Points::Figure { scheme: VPS, setting: String::new(), name: name.into() },
    };
    let mut plot = plot_figures(
        ("aggregate", "Aggregate throughput (figure 9)", AGGREGATE),
        Axis::new("x", "ms"),
        Axis::new("throughput", "Mbps"),
        &[],
        Vec::new(),
    );
    plot.curves = vec![beside("VPS", VPS, AGGREGATE), beside("TCP beside it", RENO, PLAIN)];
    plot.curves.push(Curve {
        label: WINDOWS.name.into(),
        look: WINDOWS,
        points: Points::Figure { scheme: WINDOWS, setting: String::new(), name: AGGREGATE.into() },
    });
    Experiment {
        id: "vps-fig9".into(),
        title: "Receivers at different distances".into(),
        paper: papers::of("vps"),
        place: "section 4.5, figure 9".into(),
        claim: "Whatever the difference of the receivers' round trips (140, 140 + 2x and 140 + 4x ms), the aggregate of VPS is similar to that of TCP.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain([
                "the receivers of the plain flows are as far away as those of the weighted ones",
                "the weight of 8 has the farthest receiver; the other way round is in the table",
            ])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let mut jobs = Vec::new();
            for x in DISTANCES {
                for scheme in [VPS, RENO, WINDOWS] {
                    let setup = Setup { spread_ms: x, ..Setup::new(scheme, &[1.0, 4.0, 8.0], SECONDS) };
                    jobs.push(job(Case::new(scheme, x), &setup, seed));
                }
                for scheme in [VPS, WINDOWS] {
                    let setup = Setup { spread_ms: x, ..Setup::new(scheme, &[8.0, 4.0, 1.0], SECONDS) };
                    let case = Case { setting: NEAR.into(), ..Case::new(scheme, x) };
                    jobs.push(job(case, &setup, seed));
                }
            }
            jobs
        }),
        relations: explained(
            relations,
            &[("equal-45", FAR), ("equal-30", FAR), ("windows-45", WINDOWS_FAR), ("windows-30", WINDOWS_FAR)],
        ),
        plots: vec![plot],
        tables: vec![table("distances", "Aggregates", &columns, rows)],
    }
}
