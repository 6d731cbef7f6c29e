//! Figure 17: a film with parity over the cellular link.

use anabranch_congestion::aggregate::Scheme as Connections;
use anabranch_congestion::multfrc::Parameters as Control;
use anabranch_units::Bytes;

use super::cellular::{PATH, assumed, packet_by_packet};
use super::describe::{Figure, course, plot_courses, table};
use super::packets::{Clip, packets};
use super::sending::Sending;
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Relation};
use crate::papers;
use crate::scheme::{AUTO, MULTFRC, Scheme, TFRC};

/// The film's rates, with the names of what is measured: seconds frozen, packets not repaired, and the
/// buffer.
const RATES: [(f64, &str, &str, &str); 3] = [
    (50.0, "frozen at 50 kbps", "lost at 50 kbps", "buffer at 50 kbps"),
    (70.0, "frozen at 70 kbps", "lost at 70 kbps", "buffer at 70 kbps"),
    (90.0, "frozen at 90 kbps", "lost at 90 kbps", "buffer at 90 kbps"),
];
/// The part of the trace that carries the film.
const FROM: f64 = 600.0;
const UNTIL: f64 = FROM + 70.0;

fn clip(scheme: Scheme, kbps: f64) -> Clip {
    let block = if scheme == TFRC { 56 } else { 61 };
    Clip { kbps, seconds: 30.0, media: 50, block, size: Bytes::new(760), carrier: PATH.size }
}

pub(super) fn figure_17() -> Experiment {
    let frozen = |id: &str, scheme: Scheme, rate: usize, published: &str, expected| {
        let (kbps, name, ..) = RATES[rate];
        Relation::new(
            (
                id,
                &format!("seconds for which a film of {kbps} kbps is frozen with {}", scheme.name),
                published,
                "s",
            ),
            Figure::new(scheme, 0.0, name).value(),
            expected,
        )
    };
    const SCHEMES: [Scheme; 3] = [TFRC, MULTFRC, AUTO];
    let columns: Vec<(&str, &'static str)> =
        RATES.iter().flat_map(|(_, frozen, lost, _)| [(*frozen, *frozen), (*lost, *lost)]).collect();
    Experiment {
        id: "multfrc-fig17".into(),
        title: "A film with parity over a cellular link, emulated".into(),
        paper: papers::of("multfrc"),
        place: "section IV.E, figure 17".into(),
        claim: "With ten seconds buffered one TFRC connection with RS(56,50) sustains a film of 50 kbps, MULTFRC with RS(61,50) one of 90 kbps, without a freeze.".into(),
        assumed: assumed()
            .into_iter()
            .chain([
                "the trace is that of tables I to III here, from 600 s to 670 s; the paper took 70 s of one of its own".to_owned(),
                "the clip lasts 30 s, as 300 frames at ten a second do (the paper also speaks of 60 s), at a constant rate".to_owned(),
                "a packet of 760 bytes is lost with any packet of the trace that carries a byte of it".to_owned(),
            ])
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            [Sending::new(TFRC, Connections::TFRC), Sending::multfrc(Control::PAPER), Sending::auto()]
                .map(|sending| Job {
                    case: Case::new(sending.look, 0.0),
                    models: vec![packet_by_packet(PATH, sending, seed)],
                    decisions: &[],
                    measure: Box::new(move |runs| {
                        let Some(run) = runs.first() else { return Measured::default() };
                        let sent = packets(run, PATH.size);
                        let begin = sent.partition_point(|packet| packet.sent < FROM);
                        let end = sent.partition_point(|packet| packet.sent < UNTIL);
                        RATES.iter().fold(Measured::default(), |measured, (kbps, frozen, lost, buffer)| {
                            let shown = clip(sending.look, *kbps).show(&sent[begin..end], FROM, UNTIL);
                            measured.figure(frozen, shown.frozen, "s").figure(lost, shown.lost, "packets").series(buffer, shown.buffer)
                        })
                    }),
                })
                .into()
        }),
        relations: vec![
            frozen("tfrc-50", TFRC, 0, "0", Expected::AtMost(0.0)),
            frozen("tfrc-70", TFRC, 1, "more than 0", Expected::Above(0.0)),
            frozen("tfrc-90", TFRC, 2, "more than 0", Expected::Above(0.0)),
            frozen("multfrc-50", MULTFRC, 0, "0", Expected::AtMost(0.0)),
            frozen("multfrc-70", MULTFRC, 1, "0", Expected::AtMost(0.0)),
            frozen("multfrc-90", MULTFRC, 2, "0", Expected::AtMost(0.0)),
            frozen("auto-90", AUTO, 2, "ours: 0", Expected::AtMost(0.0)),
        ],
        plots: RATES
            .iter()
            .map(|(kbps, _, _, buffer)| {
                let curves = SCHEMES.map(|scheme| course(scheme.name, scheme, scheme, "", 0.0, buffer));
                let title = format!("What the player has of a film of {kbps} kbps");
                plot_courses(&format!("buffer-{kbps}"), &title, ("film in the buffer", "s"), curves.into())
            })
            .collect(),
        tables: vec![table(
            "figures",
            "Seconds frozen, and packets that were not repaired",
            &columns,
            SCHEMES.map(|scheme| (scheme.name.to_owned(), scheme, String::new(), 0.0)),
        )],
    }
}
