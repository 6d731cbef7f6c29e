//! Figure 4: the course of the flows.

use super::measure::{ACCURACY, accuracy, seconds};
use super::network::{ASSUMED, Setup};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Relation};
use crate::experiments::describe::{course, plot_courses, table};
use crate::papers;
use crate::scheme::{FIRST, MULTCP, SECOND, Scheme, THIRD, VPS};
use crate::simulate::Recording;
use crate::statistics::mean;

pub(super) const WEIGHTS: [f64; 3] = [1.0, 4.0, 8.0];
const SECONDS: u64 = 600;

const EARLY_ACCURACY: &str = "accuracy of the first ten seconds of all";
const LEAST_SETTLED: &str = "least accuracy of a second after the last one began";
const EARLY_ARRIVED: &str = "accuracy of what arrived in the first ten seconds of all";
const LEAST_ARRIVED: &str = "least accuracy of what arrived in a second";

/// Accuracy in each second in which all three flows send, of what `amounts` says of every flow in every
/// second.
fn accuracies(amounts: &[Vec<f64>]) -> Vec<f64> {
    let begun = amounts.iter().position(|second| second.iter().take(3).all(|rate| *rate > 0.0)).unwrap_or(0);
    // The second in which the last one began is not whole.
    amounts.iter().skip(begun + 1).filter_map(|second| accuracy(&second[..3], &WEIGHTS)).collect()
}

/// The courses of the three flows, and their accuracy from the moment at which all of them send.
fn courses(run: &Recording) -> Measured {
    let delivered = seconds(run);
    let arrived: Vec<Vec<f64>> = run
        .flows
        .chunk_by(|one, other| one.at == other.at)
        .map(|samples| samples.iter().map(|sample| sample.arrived_wire.as_f64()).collect())
        .collect();
    let early = |all: &[f64]| mean(all.get(..all.len().min(10)).unwrap_or_default()).unwrap_or(f64::NAN);
    let least = |all: &[f64]| all.iter().copied().fold(f64::NAN, f64::min);
    let (of_delivered, of_arrived) = (accuracies(&delivered), accuracies(&arrived));
    let mut measured = Measured::default()
        .figure(EARLY_ACCURACY, early(&of_delivered), "")
        .figure(ACCURACY, mean(&of_delivered).unwrap_or(f64::NAN), "")
        .figure(LEAST_SETTLED, least(&of_delivered), "")
        .figure(EARLY_ARRIVED, early(&of_arrived), "")
        .figure(LEAST_ARRIVED, least(&of_arrived), "");
    for (number, name) in FLOWS.into_iter().enumerate() {
        let course = delivered.iter().enumerate().map(|(second, rates)| (second as f64 + 1.0, rates[number]));
        measured = measured.series(name, course.take(100));
    }
    measured
}

const FLOWS: [&str; 3] = ["weight 1", "weight 4", "weight 8"];

pub(super) fn figure_4() -> Experiment {
    let looks = [FIRST, SECOND, THIRD];
    let curves = |scheme: Scheme| {
        let curve = |(name, look): (&'static str, Scheme)| course(name, scheme, look, "", 0.0, name);
        FLOWS.into_iter().zip(looks).map(curve).collect::<Vec<_>>()
    };
    let columns = [
        ("delivered, first ten seconds", EARLY_ACCURACY),
        ("delivered, all seconds", ACCURACY),
        ("delivered, worst second", LEAST_SETTLED),
        ("arrived, first ten seconds", EARLY_ARRIVED),
        ("arrived, worst second", LEAST_ARRIVED),
    ];
    Experiment {
        id: "vps-fig4".into(),
        title: "Throughput of the flows over time".into(),
        paper: papers::of("vps"),
        place: "section 4.3, figure 4".into(),
        claim: "The three flows keep 1:4:8 at all times, in slow start and in congestion avoidance.".into(),
        assumed: ASSUMED.map(Into::into).into(),
        random: true,
        jobs: Jobs::new(|seed| {
            let job = |scheme: Scheme| Job {
                case: Case::new(scheme, 0.0),
                models: vec![Setup::new(scheme, &WEIGHTS, SECONDS).model(seed)],
                decisions: &[],
                measure: Box::new(|runs| runs.first().map_or_else(Measured::default, courses)),
            };
            vec![job(VPS), job(MULTCP)]
        }),
        relations: vec![
            Relation::new(
                ("mean", "A of VPS, mean over all seconds", "1.0", ""),
                |seed| seed.figure(VPS, 0.0, ACCURACY),
                Expected::AtLeast(0.99),
            ),
            Relation::new(
                (
                    "slow-start",
                    "A of VPS, mean over the first ten seconds in which all three send",
                    "the ratio is kept in slow start too",
                    "",
                ),
                |seed| seed.figure(VPS, 0.0, EARLY_ACCURACY),
                Expected::AtLeast(0.98),
            ),
            Relation::new(
                ("always", "A of VPS in the worst second", "at all times", ""),
                |seed| seed.figure(VPS, 0.0, LEAST_SETTLED),
                Expected::AtLeast(0.9),
            ),
        ],
        plots: [(VPS, "vps", "VPS"), (MULTCP, "multcp", "MulTCP")]
            .map(|(scheme, id, name)| {
                let title = format!("Throughput in bins of 1 s: {name} (figure 4)");
                plot_courses(id, &title, ("throughput", "Mbps"), curves(scheme))
            })
            .into(),
        tables: vec![table(
            "accuracy",
            "Allocation accuracy over bins of 1 s",
            &columns,
            [VPS, MULTCP].map(|scheme| (scheme.name.to_owned(), scheme, String::new(), 0.0)),
        )],
    }
}
