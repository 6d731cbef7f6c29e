//! Tables I to III: a cellular network, emulated.

use congestion::aggregate::Scheme as Connections;
use congestion::multfrc::Parameters as Control;
use units::Bytes;

use super::describe::{Figure, table};
use super::wireless::{CONNECTIONS, LOSS, RTT, THROUGHPUT, Wireless};
use super::{ASSUMED, Sending};
use crate::experiment::{Case, Expected, Experiment, Job, Measured, Paper, Relation};
use crate::results::OneSeed;
use crate::scheme::{AUTO, MULTFRC, N1, N2, N3, Scheme, TFRC};
use crate::simulate::Recording;

/// The most that was found to be there, half an hour, and the delay and loss of the row of one connection, which leaves the link
/// partly unused: without a queue 1357 ms. The queue is what makes them 2951 ms when the link is full.
const PATH: Wireless =
    Wireless { kbps: 97.0, size: Bytes::new(1460), delay_ms: 606.5, queue: 16, seconds: 1800, warm_up: 30 };
const LOSS_RATE: f64 = 0.018;

const CELLULAR: [&str; 2] = [
    "a link of 97 kbps, the most that the paper found, which loses 1.8 % of the packets independently of each other; 1357 ms without a queue, as one connection has it",
    "a queue of 16 packets: full, it makes the round trip about as long as the paper's two connections have it",
];

fn assumed() -> Vec<String> {
    ASSUMED
        .into_iter()
        .skip(1)
        .chain(CELLULAR)
        .chain(["TFRC as RFC 5348 has it, packets of 1460 bytes on the wire"])
        .map(Into::into)
        .collect()
}

fn of(scheme: Scheme, name: &'static str) -> impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync + 'static {
    move |seed| Figure::new(scheme, 0.0, name).of(seed)
}

fn about(
    id: &str,
    claim: &str,
    published: f64,
    unit: &'static str,
    figure: (Scheme, &'static str),
    tolerance: f64,
) -> Relation {
    let claim = format!("{claim} (within {} %)", 100.0 * tolerance);
    Relation::new(
        (id, &claim, &published.to_string(), unit),
        of(figure.0, figure.1),
        Expected::about(published, tolerance),
    )
}

pub(super) fn table_i() -> Experiment {
    const ROWS: [(Scheme, u32, f64, f64, f64); 3] =
        [(N1, 1, 57.0, 1357.0, 0.018), (N2, 2, 94.0, 2951.0, 0.032), (N3, 3, 93.0, 2863.0, 0.046)];
    let mut relations = Vec::new();
    for (scheme, count, throughput, rtt, loss) in ROWS {
        let claim = |what: &str| format!("{what} of {count}");
        relations.push(about(
            &format!("throughput-{count}"),
            &claim("throughput"),
            throughput,
            "kbps",
            (scheme, THROUGHPUT),
            0.1,
        ));
        relations.push(about(&format!("rtt-{count}"), &claim("round trip"), rtt, "ms", (scheme, RTT), 0.2));
        relations.push(about(&format!("loss-{count}"), &claim("loss"), loss, "", (scheme, LOSS), 0.25));
    }
    Experiment {
        id: "multfrc-tab1",
        title: "One to three TFRC connections over a cellular link, emulated",
        paper: Paper::Multfrc,
        place: "section II.C, table I",
        claim: "One connection gets 57 kbps with 1357 ms and a loss of 0.018, two get 94 kbps with 2951 ms and 0.032, three 93 kbps with 2863 ms and 0.046.",
        assumed: assumed(),
        random: true,
        jobs: Box::new(|seed| {
            ROWS.map(|(scheme, count, ..)| {
                PATH.job(
                    Case::new(scheme, 0.0),
                    Sending::new(scheme, Connections::TFRC),
                    count,
                    LOSS_RATE,
                    seed,
                )
            })
            .into()
        }),
        relations,
        plots: Vec::new(),
        tables: vec![table(
            "figures",
            "Means",
            &[("throughput (kbps)", THROUGHPUT), ("round trip (ms)", RTT), ("loss", LOSS)],
            ROWS.map(|(scheme, count, ..)| (format!("{count} connections"), scheme, String::new(), 0.0)),
        )],
    }
}

/// Losses and times with so many connections open.
const BY_COUNT: [(&str, &str); 3] = [
    ("loss with one", "time with one"),
    ("loss with two", "time with two"),
    ("loss with three", "time with three"),
];

fn by_count(run: &Recording) -> Measured {
    let samples: Vec<_> = run.flow(0).filter(|sample| sample.at.as_secs_f64() > 30.0).collect();
    let mut measured = Measured::default();
    for (count, (loss, time)) in (1..).zip(BY_COUNT) {
        let with = samples.iter().filter(|sample| sample.connections == count);
        let (sent, lost, seconds) = with.fold((0, 0, 0.0), |(sent, lost, seconds), sample| {
            (sent + sample.sent, lost + sample.lost, seconds + 1.0)
        });
        measured = measured.figure(loss, lost as f64 / sent as f64, "").figure(
            time,
            seconds / samples.len() as f64,
            "",
        );
    }
    measured
}

pub(super) fn table_ii() -> Experiment {
    let growth = |more: &'static str, less: &'static str| {
        move |seed: OneSeed<'_>| Some(seed.figure(MULTFRC, 0.0, more)? / seed.figure(MULTFRC, 0.0, less)?)
    };
    let relations = vec![
        about("one", "throughput of one TFRC connection", 54.0, "kbps", (TFRC, THROUGHPUT), 0.1),
        about("multfrc", "throughput of MULTFRC", 86.0, "kbps", (MULTFRC, THROUGHPUT), 0.1),
        Relation::new(
            (
                "gain",
                "throughput of MULTFRC as a multiple of that of one connection (within 20 %)",
                "1.6",
                "",
            ),
            |seed| Some(seed.figure(MULTFRC, 0.0, THROUGHPUT)? / seed.figure(TFRC, 0.0, THROUGHPUT)?),
            Expected::about(1.6, 0.2),
        ),
        about("connections", "mean connections", 1.8, "", (MULTFRC, CONNECTIONS), 0.2),
        about("rtt", "round trip of MULTFRC", 2512.0, "ms", (MULTFRC, RTT), 0.25),
        about("loss", "loss of MULTFRC", 0.045, "", (MULTFRC, LOSS), 0.25),
        Relation::new(
            ("loss-two", "loss with two connections as a multiple of that with one", "3.1: grows with n", ""),
            growth(BY_COUNT[1].0, BY_COUNT[0].0),
            Expected::Above(1.0),
        ),
        Relation::new(
            (
                "loss-three",
                "loss with three connections as a multiple of that with two",
                "1.8: grows with n",
                "",
            ),
            growth(BY_COUNT[2].0, BY_COUNT[1].0),
            Expected::Above(1.0),
        ),
    ];
    let mut columns = vec![
        ("throughput (kbps)", THROUGHPUT),
        ("round trip (ms)", RTT),
        ("loss", LOSS),
        ("connections", CONNECTIONS),
    ];
    columns.extend(BY_COUNT.into_iter().flat_map(|(loss, time)| [(loss, loss), (time, time)]));
    Experiment {
        id: "multfrc-tab2",
        title: "MULTFRC over a cellular link, emulated",
        paper: Paper::Multfrc,
        place: "section IV.B, tables II and III",
        claim: "MULTFRC gets 86 kbps with 1.8 connections on the mean, 2512 ms and a loss of 0.045, where one connection gets 54 kbps; the losses grow with the \
                number of connections: 0.015, 0.047 and 0.083 with one, two and three. The lengths of table III's bursts are not measured here: losses are \
                independent in this emulation, but for those at the queue.",
        assumed: assumed(),
        random: true,
        jobs: Box::new(|seed| {
            let sendings =
                [Sending::new(TFRC, Connections::TFRC), Sending::multfrc(Control::PAPER), Sending::auto()];
            sendings
                .map(|sending| Job {
                    case: Case::new(sending.look, 0.0),
                    models: vec![PATH.model(sending, 1, &[(0, LOSS_RATE)], seed)],
                    decisions: &[],
                    measure: Box::new(|runs| {
                        let Some(run) = runs.first() else { return Measured::default() };
                        let mut measured = PATH.measure(run, LOSS_RATE);
                        measured.figures.extend(by_count(run).figures);
                        measured
                    }),
                })
                .into()
        }),
        relations,
        plots: Vec::new(),
        tables: vec![table(
            "figures",
            "Means",
            &columns,
            [TFRC, MULTFRC, AUTO].map(|scheme| (scheme.name.to_owned(), scheme, String::new(), 0.0)),
        )],
    }
}
