//! Figure 6: more flows.

use super::measure::{ACCURACY, FAIRNESS, metrics};
use super::network::{ASSUMED, Setup, WARM_UP};
use crate::case::{Case, Measured};
use crate::experiment::{Axis, Expected, Experiment, Job, Jobs, Relation};
use crate::experiments::describe::{explained, extreme, plot_figures, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{MULTCP, Scheme, VPS};

const SECONDS: u64 = 300;
const COUNTS: [f64; 5] = [3.0, 6.0, 9.0, 12.0, 15.0];

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

/// The largest of a figure over all N, as a multiple of its smallest.
fn span(scheme: Scheme, name: &'static str) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync {
    let (least, most) = (extreme(scheme, &COUNTS, name, f64::min), extreme(scheme, &COUNTS, name, f64::max));
    move |seed| Some(most(seed)? / least(seed)?)
}

/// Accuracy and fairness of both schemes in a table.
fn rows() -> Vec<(String, Scheme, String, f64)> {
    let row =
        |scheme: Scheme, count: f64| (format!("{}, N = {count}", scheme.name), scheme, String::new(), count);
    [VPS, MULTCP].into_iter().flat_map(|scheme| COUNTS.map(|count| row(scheme, count))).collect()
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
                    span(VPS, FAIRNESS),
                    Expected::AtMost(1.25),
                ),
                Relation::new(
                    (
                        "multcp-accuracy",
                        "largest A of MulTCP over all N, as a multiple of the smallest",
                        "consistent",
                        "",
                    ),
                    span(MULTCP, ACCURACY),
                    Expected::AtMost(1.15),
                ),
                Relation::new(
                    (
                        "multcp-fairness",
                        "F of MulTCP with N = 15, as a multiple of that with N = 3",
                        "grows",
                        "",
                    ),
                    |seed| Some(seed.figure(MULTCP, 15.0, FAIRNESS)? / seed.figure(MULTCP, 3.0, FAIRNESS)?),
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
        tables: vec![table("flows", "Accuracy and fairness", &COLUMNS, rows())],
    }
}
