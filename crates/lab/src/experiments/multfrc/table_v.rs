//! Table V: eight streams beside eight TCPs, and sixteen TCPs alone.

use anabranch_congestion::aggregate::Scheme as Connections;
use anabranch_congestion::multfrc::Parameters as Control;
use anabranch_units::Ratio;

use super::describe::{Figure, course, explained, plot_courses, table};
use super::dumbbell::{CONNECTIONS, DUMBBELL, RTT, STREAM_RATE, TCP_RATE, UTILIZATION, measure, model};
use super::sending::{ASSUMED, Sending};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Relation};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AUTO, MULTFRC, SACK, TFRC};
use crate::simulate::Recording;

const STANDING: &str = "the least mean round trip is that of a queue that never drains, so that n grows; with the shortest single round trip in its place n stays one, \
    and TCP gets 332 kbps (1500 s, seed 1), as beside auto";
const LESS_TCP: &str = "TCP itself: 16 of them alone get 123 kbps in the stock ns-2 as well";

/// A row of table V: p_w, gamma in hundredths, rate of MULTFRC, of TCP beside it, utilization, rate of 16
/// TCPs alone.
struct Published {
    loss: f64,
    gamma: u32,
    multfrc: f64,
    tcp: f64,
    utilization: f64,
    alone: f64,
}

const TABLE_V: [Published; 5] = [
    Published { loss: 0.0, gamma: 20, multfrc: 311.84, tcp: 313.16, utilization: 1.0, alone: 312.46 },
    Published { loss: 0.01, gamma: 20, multfrc: 446.73, tcp: 165.67, utilization: 0.99, alone: 200.168 },
    Published { loss: 0.01, gamma: 10, multfrc: 402.73, tcp: 180.37, utilization: 0.942, alone: 200.168 },
    Published { loss: 0.02, gamma: 20, multfrc: 488.53, tcp: 122.08, utilization: 0.997, alone: 139.674 },
    Published { loss: 0.02, gamma: 10, multfrc: 461.74, tcp: 131.10, utilization: 0.968, alone: 139.674 },
];
const ALONE: &str = "16 TCP";

fn gamma(hundredths: u32) -> String {
    format!("gamma = 0.{hundredths}")
}

fn with_gamma(hundredths: u32) -> Sending {
    Sending::multfrc(Control { tolerance: Ratio::new(hundredths, 100), ..Control::PAPER })
}

/// A figure of TCP alone.
fn alone(seed: OneSeed<'_>, loss: f64, name: &'static str) -> Option<f64> {
    Figure { setting: ALONE.into(), ..Figure::new(SACK, loss, name) }.of(seed)
}

fn of_row(row: &Published) -> Vec<Relation> {
    let (loss, hundredths) = (row.loss, row.gamma);
    let of = move |name| {
        let figure = Figure { setting: gamma(hundredths), ..Figure::new(MULTFRC, loss, name) };
        move |seed: OneSeed<'_>| figure.clone().of(seed)
    };
    let words = |what: &str| {
        (format!("{what}-{loss}-{hundredths}"), format!(", p_w = {loss}, gamma = 0.{hundredths}"))
    };
    let one = |what: &str, claim: &str, published: f64, unit, name, expected| {
        let (id, at) = words(what);
        Relation::new((&id, &format!("{claim}{at}"), &published.to_string(), unit), of(name), expected)
    };
    let (id, at) = words("kept");
    let (tcp, rtt) = (of(TCP_RATE), of(RTT));
    vec![
        one(
            "multfrc",
            "rate of a MULTFRC stream (within 10 %)",
            row.multfrc,
            "kbps",
            STREAM_RATE,
            Expected::about(row.multfrc, 0.1),
        ),
        one(
            "tcp",
            "rate of a TCP beside it (within 10 %)",
            row.tcp,
            "kbps",
            TCP_RATE,
            Expected::about(row.tcp, 0.1),
        ),
        one(
            "utilization",
            "utilization (within 3 %)",
            row.utilization,
            "",
            UTILIZATION,
            Expected::about(row.utilization, 0.03),
        ),
        Relation::new(
            (
                &id,
                &format!(
                    "what TCP keeps of its rate alone, times the growth of the round trip{at} (within 10 %)"
                ),
                "the round trip explains the loss: 1",
                "",
            ),
            move |seed| {
                Some(tcp(seed)? / alone(seed, loss, TCP_RATE)? * rtt(seed)? / alone(seed, loss, RTT)?)
            },
            Expected::about(1.0, 0.1),
        ),
    ]
}

/// What TCP keeps beside ours must be what it keeps beside MULTFRC in the table, or more.
fn auto_keeps(loss: f64) -> Relation {
    let rows = TABLE_V.iter().filter(|row| row.loss == loss);
    let kept = rows.map(|row| row.tcp / row.alone).reduce(f64::min).unwrap_or(1.0);
    Relation::new(
        (
            &format!("auto-{loss}"),
            &format!("what TCP keeps of its rate alone beside auto, p_w = {loss}"),
            "ours: no less than table V with gamma = 0.2",
            "",
        ),
        move |seed| Some(Figure::new(AUTO, loss, TCP_RATE).of(seed)? / alone(seed, loss, TCP_RATE)?),
        Expected::AtLeast(kept),
    )
}

pub(super) fn table_v() -> Experiment {
    let mut relations: Vec<Relation> = TABLE_V.iter().flat_map(of_row).collect();
    for (loss, published) in [(0.0, 312.46), (0.01, 200.168), (0.02, 139.674)] {
        relations.push(Relation::new(
            (
                &format!("alone-{loss}"),
                &format!("rate of each of 16 TCPs alone, p_w = {loss} (within 10 %)"),
                &published.to_string(),
                "kbps",
            ),
            move |seed| alone(seed, loss, TCP_RATE),
            Expected::about(published, 0.1),
        ));
    }
    relations.push(Relation::new(
        ("plain", "rate of a TCP beside MULTFRC as a multiple of that beside single TFRC connections, p_w = 0 (within 10 %)", "p_w = 0 is plain TFRC", ""),
        |seed| {
            let beside = Figure { setting: gamma(20), ..Figure::new(MULTFRC, 0.0, TCP_RATE) };
            Some(beside.of(seed)? / seed.figure(TFRC, 0.0, TCP_RATE)?)
        },
        Expected::about(1.0, 0.1),
    ));
    relations.extend([0.01, 0.02].map(auto_keeps));
    let columns = [
        ("rate of a stream (kbps)", STREAM_RATE),
        ("rate of a TCP (kbps)", TCP_RATE),
        ("utilization", UTILIZATION),
        ("round trip (ms)", RTT),
        ("connections", CONNECTIONS),
    ];
    let mut rows: Vec<_> = TABLE_V
        .iter()
        .map(|row| (format!("p_w = {}, {}", row.loss, gamma(row.gamma)), MULTFRC, gamma(row.gamma), row.loss))
        .collect();
    rows.push(("p_w = 0, single TFRC".into(), TFRC, String::new(), 0.0));
    rows.extend([0.0, 0.01, 0.02].map(|loss| (format!("p_w = {loss}, auto"), AUTO, String::new(), loss)));
    let tcp_columns = [columns[1], columns[2], columns[3]];
    let tcp_rows = [0.0, 0.01, 0.02].map(|loss| (format!("p_w = {loss}"), SACK, ALONE.to_owned(), loss));
    let courses = [(STREAM_RATE, "throughput", "kbps"), (CONNECTIONS, "connections", "")];
    let plots = courses.map(|(name, id, unit)| {
        let mut curves: Vec<_> = [(20, MULTFRC), (10, TFRC)]
            .map(|(hundredths, look)| {
                course(&gamma(hundredths), MULTFRC, look, &gamma(hundredths), 0.01, name)
            })
            .into();
        curves.push(course("auto", AUTO, AUTO, "", 0.01, name));
        plot_courses(
            id,
            &format!("Mean of the streams at p_w = 0.01 (figures 14 and 15): {name}"),
            (name, unit),
            curves,
        )
    });
    Experiment {
        id: "multfrc-tab5".into(),
        title: "Eight MULTFRC streams beside eight TCPs".into(),
        paper: papers::of("multfrc"),
        place: "section IV.D, table V, figures 14 and 15".into(),
        claim: "Beside MULTFRC the link is in full use, and TCP loses about what the longer round trip explains, less with gamma = 0.1. Without losses \
                MULTFRC is one TFRC connection.".into(),
        assumed: ASSUMED.into_iter().chain(DUMBBELL).map(Into::into).collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let mut jobs = Vec::new();
            let mut add = |case: Case, sending: Sending, counts: (usize, usize)| {
                let loss = case.point;
                jobs.push(Job {
                    models: vec![model(sending, counts, loss, seed)],
                    case,
                    decisions: &[],
                    measure: Box::new(move |runs| {
                        runs.first().map_or_else(Measured::default, |run| with_courses(run, counts.0))
                    }),
                });
            };
            for row in &TABLE_V {
                let case = Case { setting: gamma(row.gamma), ..Case::new(MULTFRC, row.loss) };
                add(case, with_gamma(row.gamma), (8, 8));
            }
            for loss in [0.0, 0.01, 0.02] {
                add(Case::new(AUTO, loss), Sending::auto(), (8, 8));
                add(Case { setting: ALONE.into(), ..Case::new(SACK, loss) }, Sending::auto(), (0, 16));
            }
            add(Case::new(TFRC, 0.0), Sending::new(TFRC, Connections::TFRC), (8, 8));
            jobs
        }),
        relations: explained(
            relations,
            &[
                ("multfrc-0-20", STANDING),
                ("tcp-0-20", STANDING),
                ("kept-0-20", STANDING),
                ("plain", STANDING),
                ("alone-0.02", LESS_TCP),
                ("tcp-0.02-20", LESS_TCP),
                ("tcp-0.02-10", LESS_TCP),
            ],
        ),
        plots: plots.into(),
        tables: vec![
            table("beside", "Eight streams beside eight TCPs", &columns, rows),
            table("alone", "Sixteen TCPs", &tcp_columns, tcp_rows),
        ],
    }
}

/// The means, and the courses of the streams' mean rate and number of connections.
fn with_courses(run: &Recording, streams: usize) -> Measured {
    let measured = measure(run, streams);
    if streams == 0 {
        return measured;
    }
    let count = streams as f64;
    let mut courses: [Vec<(f64, f64)>; 2] = Default::default();
    let samples: Vec<_> = run.flows.iter().filter(|sample| sample.flow < streams).collect();
    let mut before = 0.0;
    for of_moment in samples.chunk_by(|one, other| one.at == other.at) {
        let at = of_moment[0].at.as_secs_f64();
        let bytes: f64 = of_moment.iter().map(|sample| sample.delivered.as_f64()).sum();
        courses[0].push((at, bytes * 8e-3 / (at - before) / count));
        courses[1].push((at, of_moment.iter().map(|sample| sample.flows).sum::<f64>() / count));
        before = at;
    }
    let [rates, counts] = courses;
    measured.series(STREAM_RATE, rates).series(CONNECTIONS, counts)
}
