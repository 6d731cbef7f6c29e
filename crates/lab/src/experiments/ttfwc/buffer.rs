//! Ours: the tuning parameter by the buffer of the player, the first item of the thesis's future work.

use anabranch_congestion::tfwc::BufferRule;
use anabranch_film::content::Policy;
use anabranch_film::playback;
use anabranch_film::session::Pace;
use anabranch_sim::model::{Algorithm, Kind, Media, Model, Tcp};
use anabranch_units::{Bytes, Duration, Rate};

use super::friendliness::PATH;
use super::network::{ASSUMED, Sender, control, model};
use crate::case::{Case, Measured};
use crate::experiment::{Expected, Experiment, Job, Jobs, Relation};
use crate::experiments::describe::{course, plot_courses, table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AUTO, SACK, Scheme, TTFWC_0_0, TTFWC_0_9};
use crate::simulate::Recording;

/// The stream and the TCPs beside it: each would have 1.8 Mbps.
const FLOWS: usize = 8;
const RATE: Rate = Rate::from_kbps(1400);
const SCHEMES: [Scheme; 3] = [TTFWC_0_0, TTFWC_0_9, AUTO];

const STALLED: &str = "time stalled";
const LEAST: &str = "least buffer after the first 60 s";
const BUFFER: &str = "mean buffer";
const VARIATION: &str = "variation of the throughput while the buffer is safe";

/// The dumbbell of figure 5.5 with a media stream in the first flow's place.
fn with_stream(scheme: Scheme, seed: u64) -> Model {
    let plain = control(SACK);
    let of_stream = if scheme == AUTO { TTFWC_0_0 } else { scheme };
    let sender = |number: usize| Sender {
        control: if number == 0 { control(of_stream) } else { plain },
        access_ms: (1.0, 2.6 * number as f64 / (FLOWS - 1) as f64),
    };
    let senders: Vec<Sender> = (0..FLOWS).map(sender).collect();
    let mut model = model(&PATH, &senders, seed);
    if let Some(flow) = model.flows.first_mut()
        && let Kind::Tcp { from, to, tcp, .. } = &flow.kind
    {
        let tuning = (scheme == AUTO).then(BufferRule::default);
        let media = Media {
            client: *to,
            servers: vec![*from],
            tcp: Tcp { tuning, ..tcp.clone() },
            rate: RATE,
            size: None,
            pace: Pace::Max,
            algorithm: Algorithm::Fixed { connections: 1, window: None },
            reader: None,
            playback: playback::Parameters {
                prebuffer: Duration::from_secs(4),
                ..playback::Parameters::multitcp_8_3()
            },
            // Twelve seconds ahead of the player at most.
            policy: Policy {
                abandon_after: 0,
                ..Policy::rome(Bytes::new(50_000), RATE.amount_in(Duration::from_secs(12)))
            },
            largest_window: None,
            connect_timeout: None,
            connections_per_server: 1,
        };
        flow.kind = Kind::Media(Box::new(media));
    }
    model
}

fn measure(run: &Recording) -> Measured {
    let mut buffers = Vec::new();
    let mut safe = Vec::new();
    let mut course = Vec::new();
    for sample in run.flow(0) {
        let Some(buffer) = sample.buffer.map(Duration::as_secs_f64) else { continue };
        let at = sample.at.as_secs_f64();
        course.push((at, buffer));
        if at > 60.0 || run.totals.counted < Duration::from_secs(60) {
            buffers.push(buffer);
            if buffer > 4.0 {
                safe.push(sample.delivered.as_f64());
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let of_rate = mean(&safe);
    let square = safe.iter().map(|rate| (rate - of_rate) * (rate - of_rate)).sum::<f64>() / safe.len() as f64;
    let media = run.totals.flows.first().and_then(|flow| flow.media);
    let stalled = media.map_or(f64::NAN, |media| media.stalled.as_secs_f64());
    Measured::default()
        .figure(STALLED, stalled, "s")
        .figure(LEAST, buffers.iter().copied().fold(f64::NAN, f64::min), "s")
        .figure(BUFFER, mean(&buffers), "s")
        .figure(VARIATION, square.sqrt() / of_rate, "")
        .series(BUFFER, course)
}

pub(super) fn experiment() -> Experiment {
    let less = |one: Scheme, other: Scheme, name: &'static str| {
        move |seed: OneSeed<'_>| Some(seed.figure(one, 0.0, name)? - seed.figure(other, 0.0, name)?)
    };
    let label = |scheme: Scheme| if scheme == AUTO { "by the buffer" } else { scheme.name };
    let columns = [
        ("time stalled (s)", STALLED),
        ("least buffer (s)", LEAST),
        ("mean buffer (s)", BUFFER),
        ("variation while safe", VARIATION),
    ];
    Experiment {
        id: "ttfwc-buffer".into(),
        title: "The tuning parameter by the player's buffer".into(),
        paper: papers::of("ttfwc"),
        place: "chapter 6 (future work), the rule is ours".into(),
        claim: "A parameter that is large when the buffer runs low and small when it is safe stalls no more than the smooth one, and is no rougher than the \
                fast one while the buffer is safe.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain([
                "a stream of 1.4 Mbps beside seven TCPs on 15 Mbps, over one connection, at most 12 s ahead of the player, which starts with 4 s",
                "the parameter goes from 0.9 at a buffer of 2 s to 0 at 8 s; the sender hears of the buffer ten times a second",
                "300 s; the variation is of seconds with more than 4 s in the buffer, after the first 60 s",
            ])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: Jobs::new(|seed| {
            let job = |scheme: &Scheme| Job {
                case: Case::new(*scheme, 0.0),
                models: vec![with_stream(*scheme, seed)],
                decisions: &[],
                measure: Box::new(|runs| runs.first().map_or_else(Measured::default, measure)),
            };
            SCHEMES.iter().map(job).collect()
        }),
        relations: vec![
            Relation::new(
                ("stalls", "time stalled by the buffer, less that at 0.0", "ours: no more", "s"),
                less(AUTO, TTFWC_0_0, STALLED),
                Expected::AtMost(0.0),
            ),
            Relation::new(
                ("smooth", "variation while the buffer is safe, by the buffer, less that at 0.9", "ours: no more", ""),
                less(AUTO, TTFWC_0_9, VARIATION),
                Expected::AtMost(0.0),
            ),
        ],
        plots: vec![plot_courses(
            "buffer",
            "The player's buffer",
            (BUFFER, "s"),
            SCHEMES.map(|scheme| course(label(scheme), scheme, scheme, "", 0.0, BUFFER)).into(),
        )],
        tables: vec![table(
            "stream",
            "The stream",
            &columns,
            SCHEMES.map(|scheme| (label(scheme).to_owned(), scheme, String::new(), 0.0)),
        )],
    }
}
