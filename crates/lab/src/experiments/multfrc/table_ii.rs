//! Tables II and III: MULTFRC over a cellular link.

use anabranch_congestion::aggregate::Scheme as Connections;
use anabranch_congestion::multfrc::Parameters as Control;
use anabranch_sim::model::Model;

use super::cellular::{FADES, FADING, PATH, about, assumed, fading, packet_by_packet};
use super::describe::{explained, table};
use super::packets::{bursts, packets};
use super::sending::Sending;
use super::wireless::{CONNECTIONS, LOSS, RTT, THROUGHPUT, Wireless};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Relation};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AUTO, MULTFRC, TFRC};
use crate::simulate::Recording;
use crate::statistics::Estimate;

/// A further run: the delay of table II's row of one connection, 1624 ms without a queue.
const LONGER: &str = "1624 ms";
const LONGER_PATH: Wireless = Wireless { delay_ms: 740.0, ..PATH };

const DELAY: &str = "table I's delay: one connection of table II has 1624 ms. On a path of 1624 ms MULTFRC's round trip is 1960 ms (table; seeds 1 to 5), and in fades 2.0 s as well. With gamma = 0.5 \
    it is 2.3 s";
/// Of further runs, five seeds each, on a Gilbert-Elliott link: bursts of 2.86 packets on the mean, table III's with
/// one connection.
const BURSTY: &str = "the link loses packets independently here; with the same loss rate in bursts of 2.86 packets the mean bursts are 2.3 packets with one connection and 2.2 with two and three";
/// Of the same runs.
const BURSTY_COUNT: &str = "the link loses packets independently here; with the same loss rate in bursts of 2.86 packets there are 1.72 connections, and the loss with two is 1.18 times that with one";

/// Losses and times with so many connections open.
const BY_COUNT: [(&str, &str); 3] = [
    ("loss with one", "time with one"),
    ("loss with two", "time with two"),
    ("loss with three", "time with three"),
];

/// Mean, deviation and longest of the bursts of losses with so many connections open.
const BURSTS_BY_COUNT: [(&str, &str, &str); 3] = [
    ("burst with one", "deviation with one", "longest with one"),
    ("burst with two", "deviation with two", "longest with two"),
    ("burst with three", "deviation with three", "longest with three"),
];

fn bursts_by_count(run: &Recording) -> Measured {
    let bursts = bursts(&packets(run, PATH.size));
    let mut measured = Measured::default();
    for (count, (mean, deviation, longest)) in (1..).zip(BURSTS_BY_COUNT) {
        let lengths: Vec<f64> =
            bursts.iter().filter(|(with, _)| *with == count).map(|(_, length)| f64::from(*length)).collect();
        let Some(estimate) = Estimate::of(&lengths) else { continue };
        measured = measured
            .figure(mean, estimate.mean, "packets")
            .figure(deviation, estimate.deviation.unwrap_or_default(), "packets")
            .figure(longest, lengths.iter().copied().fold(0.0, f64::max), "packets");
    }
    measured
}

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
    let mut relations = vec![
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
    relations.extend([("one", 2.86), ("two", 2.41), ("three", 3.25)].into_iter().zip(BURSTS_BY_COUNT).map(
        |((count, published), (mean, ..))| {
            about(
                &format!("burst-{count}"),
                &format!("mean burst of losses with {count}, in packets"),
                published,
                "",
                (MULTFRC, mean),
                0.25,
            )
        },
    ));
    relations.push(Relation::new(
        (
            "longest",
            "longest burst with three connections as a multiple of that with one",
            "1.6: grows with n",
            "",
        ),
        growth(BURSTS_BY_COUNT[2].2, BURSTS_BY_COUNT[0].2),
        Expected::Above(1.0),
    ));
    let mut columns = vec![
        ("throughput (kbps)", THROUGHPUT),
        ("round trip (ms)", RTT),
        ("loss", LOSS),
        ("connections", CONNECTIONS),
    ];
    columns.extend(BY_COUNT.into_iter().flat_map(|(loss, time)| [(loss, loss), (time, time)]));
    columns.extend(
        BURSTS_BY_COUNT.into_iter().flat_map(|(mean, _, longest)| [(mean, mean), (longest, longest)]),
    );
    let further = [FADING, LONGER].into_iter().flat_map(|setting| [(TFRC, setting), (MULTFRC, setting)]);
    Experiment {
        id: "multfrc-tab2".into(),
        title: "MULTFRC over a cellular link, emulated".into(),
        paper: papers::of("multfrc"),
        place: "section IV.B, tables II and III".into(),
        claim: "MULTFRC gets 86 kbps with 1.8 connections on the mean, 2512 ms and a loss of 0.045, where one connection gets 54 kbps; the losses grow with the \
                number of connections: 0.015, 0.047 and 0.083 with one, two and three, in bursts of 2.86, 2.41 and 3.25 packets on the mean and 7, 10 and 11 at most.".into(),
        assumed: assumed(),
        random: true,
        jobs: Jobs::new(|seed| {
            let job = |sending: Sending, path: Wireless, setting: &str, model: Model| Job {
                case: Case { setting: setting.into(), ..Case::new(sending.look, 0.0) },
                models: vec![model],
                decisions: &[],
                measure: Box::new(move |runs| {
                    let Some(run) = runs.first() else { return Measured::default() };
                    let mut measured = path.measure(run);
                    measured.figures.extend(by_count(run).figures);
                    measured.figures.extend(bursts_by_count(run).figures);
                    measured
                }),
            };
            let [one, multfrc] = [Sending::new(TFRC, Connections::TFRC), Sending::multfrc(Control::PAPER)];
            let mut jobs = Vec::new();
            for sending in [one, multfrc, Sending::auto()] {
                jobs.push(job(sending, PATH, "", packet_by_packet(PATH, sending, seed)));
            }
            for sending in [one, multfrc] {
                jobs.push(job(sending, PATH, FADING, fading(packet_by_packet(PATH, sending, seed))));
                jobs.push(job(sending, LONGER_PATH, LONGER, packet_by_packet(LONGER_PATH, sending, seed)));
            }
            jobs
        }),
        relations: explained(
            relations,
            &[
                ("connections", BURSTY_COUNT),
                ("rtt", DELAY),
                ("loss", FADES),
                ("loss-two", BURSTY_COUNT),
                ("burst-one", BURSTY),
                ("burst-two", BURSTY),
                ("burst-three", BURSTY),
            ],
        ),
        plots: Vec::new(),
        tables: vec![table(
            "figures",
            "Means",
            &columns,
            [TFRC, MULTFRC, AUTO].map(|scheme| (scheme, "")).into_iter().chain(further).map(
                |(scheme, setting)| (format!("{} {setting}", scheme.name), scheme, setting.to_owned(), 0.0),
            ),
        )],
    }
}
