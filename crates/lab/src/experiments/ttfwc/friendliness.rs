//! Figures 5.6 to 5.8: as many flows of TTFWC as of TCP.

use anabranch_units::Duration;

use super::network::{ASSUMED, Path, Sender, control, loss, model, rates};
use crate::case::{Case, Measured};
use crate::experiment::{Axis, Curve, Expected, Experiment, Job, Jobs, Points, Relation, Scale};
use crate::experiments::describe::{explained, plot_figures, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{SACK, Scheme, TTFWC_0_0, TTFWC_0_4, TTFWC_0_9};
use crate::simulate::Recording;

const COUNTS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

const RATE: &str = "throughput of TTFWC";
const TCP_RATE: &str = "throughput of TCP";
const LOSS: &str = "loss rate";

const ALONE: &str = "who is dropped at a full queue: TCP's receiver is 2.6 ms farther away than TTFWC's. The other way round TTFWC gets 0.82, 0.90 and 1.00 \
    times as much as TCP at 0.0, 0.4 and 0.9 (table; seeds 1 to 5), and where the link loses 0.2 % of the packets by itself and the queue of 400 packets never fills, 1.04 times at 0.0";
const WEIGHTS: &str = "in part the weights of the intervals, which the thesis does not print: with some whose sums are the 5.3 and 2.8 of section 4.1 (0.82^i and 0.65^i) 0.9 gains \
    3.7 % and 0.4 1.9 % (seeds 1 to 5), with ns-2's recovery from losses too 3.7 % and 1.3 %. It is not the queue: behind 10 and 20 packets 0.9 gains 1.7 % and 3.2 % (seeds 1 to 3, \
    200 s). The rest is not found";

/// The dumbbell of figure 5.5.
pub(super) const PATH: Path = Path {
    mbps: 15.0,
    delay_ms: 20.0,
    queue: 80,
    segment: 1000,
    jitter: Duration::from_millis(1),
    seconds: 300,
    warm_up: 20,
};

/// A further run of one flow of each: its receiver is 2.6 ms away, and TCP's is not.
const FARTHER: &str = "farther";

/// So many of a scheme and as many TCPs, one by one; the receivers are 0 to 2.6 ms away.
fn senders(scheme: Scheme, count: usize) -> Vec<Sender> {
    let last = (2 * count - 1) as f64;
    let sender = |number: usize| {
        let scheme = if number.is_multiple_of(2) { scheme } else { SACK };
        Sender { control: control(scheme), access_ms: (1.0, 2.6 * number as f64 / last) }
    };
    (0..2 * count).map(sender).collect()
}

/// Every second value, from the first or from the second on.
fn every_second(values: &[f64], from: usize) -> Vec<f64> {
    values.iter().copied().skip(from).step_by(2).collect()
}

/// Mean throughputs as parts of a fair share of the link.
fn measure(run: &Recording, count: usize) -> Measured {
    let rates = rates(run);
    let fair = PATH.mbps * 1000.0 / 1040.0 / (2 * count) as f64;
    let mean = |from| every_second(&rates, from).iter().sum::<f64>() / count as f64 / fair;
    Measured::default().figure(RATE, mean(0), "").figure(TCP_RATE, mean(1), "").figure(
        LOSS,
        loss(run, 0, 2 * count),
        "",
    )
}

/// What a scheme gets more than TTFWC 0.0 beside TCP, as a mean over n.
fn gain(scheme: Scheme) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync {
    move |seed| {
        let part = |n: &f64| Some(seed.figure(scheme, *n, RATE)? / seed.figure(TTFWC_0_0, *n, RATE)? - 1.0);
        let parts: Option<Vec<f64>> = COUNTS.iter().map(part).collect();
        Some(parts?.iter().sum::<f64>() / COUNTS.len() as f64)
    }
}

fn one(
    id: &'static str,
    place: &'static str,
    scheme: Scheme,
    claim: &'static str,
    more: Option<Relation>,
) -> Experiment {
    let schemes = if scheme == TTFWC_0_0 { vec![scheme] } else { vec![scheme, TTFWC_0_0] };
    let mut relations: Vec<Relation> = COUNTS
        .into_iter()
        .map(|n| {
            Relation::new(
                (
                    &format!("friendly-{n}"),
                    &format!("throughput of TTFWC as a multiple of TCP's, n = {n} (0.75 to 1.15)"),
                    "friendly, a little lower",
                    "",
                ),
                move |seed| Some(seed.figure(scheme, n, RATE)? / seed.figure(scheme, n, TCP_RATE)?),
                Expected::Between(0.75, 1.15),
            )
        })
        .collect();
    relations.extend(more);
    let columns = [(RATE, RATE), (TCP_RATE, TCP_RATE), (LOSS, LOSS)];
    let rows = COUNTS.map(|n| (format!("n = {n}"), scheme, String::new(), n)).into_iter().chain([(
        "n = 1, TTFWC farther".to_owned(),
        scheme,
        FARTHER.to_owned(),
        1.0,
    )]);
    let axis = || Axis { scale: Scale::Logarithmic, shows: None, ..Axis::new("n", "") };
    let tcp = Curve {
        label: "TCP beside it".into(),
        look: SACK,
        points: Points::Figure { scheme, setting: String::new(), name: TCP_RATE.into() },
    };
    Experiment {
        id: id.into(),
        title: "Throughput beside as many TCPs".into(),
        paper: papers::of("ttfwc"),
        place: place.into(),
        claim: claim.into(),
        assumed: ASSUMED
            .into_iter()
            .chain([
                "a queue of 80 packets, a bandwidth-delay product",
                "300 s, of which the first 20 do not count",
                "a throughput is normalized by the fair share of the link",
            ])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(move |seed| {
            let mut jobs = Vec::new();
            let job = |case: Case, senders: &[Sender]| {
                let count = senders.len() / 2;
                Job {
                    case,
                    models: vec![model(&PATH, senders, seed)],
                    decisions: &[],
                    measure: Box::new(move |runs| {
                        runs.first().map_or_else(Measured::default, |run| measure(run, count))
                    }),
                }
            };
            for scheme in &schemes {
                for n in COUNTS {
                    let senders = senders(*scheme, n as usize);
                    jobs.push(job(Case::new(*scheme, n), &senders));
                }
            }
            let mut two = senders(scheme, 1);
            let [one, other] = [two[0].access_ms, two[1].access_ms];
            (two[0].access_ms, two[1].access_ms) = (other, one);
            jobs.push(job(Case { setting: FARTHER.into(), ..Case::new(scheme, 1.0) }, &two));
            jobs
        }),
        relations: explained(relations, &[("friendly-1", ALONE), ("gain", WEIGHTS)]),
        plots: vec![
            plot_figures(
                ("throughput", "Normalized throughput", RATE),
                axis(),
                Axis::new("normalized throughput", ""),
                &[scheme],
                vec![tcp],
            ),
            plot_figures(("loss", "Loss rate", LOSS), axis(), Axis::new(LOSS, ""), &[scheme], Vec::new()),
        ],
        tables: vec![table("counts", "Normalized throughputs", &columns, rows)],
    }
}

pub(super) fn experiments() -> Vec<Experiment> {
    let more = |scheme, published: &str, low, high| {
        Relation::new(
            ("gain", &format!("throughput above that at 0.0, mean over n ({low} to {high})"), published, ""),
            gain(scheme),
            Expected::Between(low, high),
        )
    };
    vec![
        one(
            "ttfwc-fig5.6",
            "section 5.1.2, figure 5.6",
            TTFWC_0_0,
            "With the parameter at 0.0 TTFWC is friendly to TCP, with a little lower throughput.",
            None,
        ),
        one(
            "ttfwc-fig5.7",
            "section 5.1.2, figure 5.7",
            TTFWC_0_4,
            "With the parameter at 0.4 TTFWC is friendly to TCP, with about 2 % more throughput than at 0.0.",
            Some(more(TTFWC_0_4, "about 2 %", 0.0, 0.05)),
        ),
        one(
            "ttfwc-fig5.8",
            "section 5.1.2, figure 5.8",
            TTFWC_0_9,
            "With the parameter at 0.9 TTFWC is friendly to TCP, with about 10 % more throughput than at 0.0.",
            Some(more(TTFWC_0_9, "about 10 %", 0.05, 0.15)),
        ),
    ]
}
