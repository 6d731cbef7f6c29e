//! What is measured in a run: the stream in each phase, its player, and what is left to the cross traffic.

use anabranch_film::playback::{Parameters, Playback, PlaybackReport};
use anabranch_sim::report::FlowSample;
use anabranch_units::{Bytes, Duration, Rate, Time};

use super::network::{STREAM, seconds};
use crate::case::Measured;
use crate::simulate::Recording;

/// Courses are drawn with one point for so long.
const BIN: Duration = Duration::from_secs(5);

/// A part of a run: its name, and from when to when, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Phase(pub &'static str, pub u64, pub u64);

impl Phase {
    fn has(self, at: Time) -> bool {
        let Self(_, from, to) = self;
        at > seconds(from) && at <= seconds(to)
    }

    fn length(self) -> Duration {
        Duration::from_secs(self.2 - self.1)
    }
}

pub(super) const THROUGHPUT: &str = "throughput";
pub(super) const CROSS: &str = "cross traffic";
pub(super) const WINDOW: &str = "sum of the windows";
pub(super) const CONNECTIONS: &str = "connections";
pub(super) const HIGHEST: &str = "highest second";
pub(super) const STALLS: &str = "stalls";
pub(super) const STALLED: &str = "stall time";
pub(super) const MEAN_CONNECTIONS: &str = "mean connections";
pub(super) const MOST_CONNECTIONS: &str = "most connections";

/// The name of a quantity in a phase.
pub(super) fn during(quantity: &str, phase: &str) -> String {
    format!("{quantity}, {phase}")
}

/// Everything that the experiments of the thesis look at.
pub(super) fn measure(recording: &Recording, phases: &[Phase], rate: Rate, plays: bool) -> Measured {
    let mut measured = Measured::default();
    for phase in phases {
        let stream: Vec<_> = recording.flow(STREAM).filter(|sample| phase.has(sample.at)).collect();
        let count = stream.len() as f64;
        let cross = recording.flows.iter().filter(|sample| sample.flow != STREAM && phase.has(sample.at));
        let (delivered, left): (Bytes, Bytes) =
            (stream.iter().map(|sample| sample.delivered).sum(), cross.map(|sample| sample.delivered).sum());
        let highest = stream.iter().map(|sample| sample.delivered).max().unwrap_or_default();
        let windows: f64 = stream.iter().map(|sample| window_kb(sample)).sum();
        let connections: f64 = stream.iter().map(|sample| f64::from(sample.connections)).sum();
        measured = measured
            .figure(&during(THROUGHPUT, phase.0), kbps(Rate::of(delivered, phase.length())), "kbps")
            .figure(&during(CROSS, phase.0), kbps(Rate::of(left, phase.length())), "kbps")
            .figure(&during(HIGHEST, phase.0), kbps(Rate::of(highest, Duration::from_secs(1))), "kbps")
            .figure(&during(WINDOW, phase.0), windows / count, "kB")
            .figure(&during(CONNECTIONS, phase.0), connections / count, "");
    }
    let totals = recording.totals.flows[STREAM].media.unwrap_or_default();
    let (stalls, stalled) = if plays {
        (totals.stalls, totals.stalled)
    } else {
        let report = played(recording, rate);
        (report.stalls, report.stalled)
    };
    let course = |value: fn(&FlowSample) -> f64| {
        recording.flow(STREAM).map(move |sample| (sample.at.as_secs_f64(), value(sample)))
    };
    measured
        .figure(STALLS, stalls.into(), "")
        .figure(STALLED, stalled.as_secs_f64(), "s")
        .figure(MEAN_CONNECTIONS, totals.connections_mean, "")
        .figure(MOST_CONNECTIONS, totals.connections_max.into(), "")
        .series(THROUGHPUT, recording.rate_series(STREAM, BIN))
        .series(WINDOW, binned(course(window_kb)))
        .series(CONNECTIONS, binned(course(|sample| sample.connections.into())))
}

/// A window that nothing limits has no size: it is no number, and what it would be part of is left out.
fn window_kb(sample: &FlowSample) -> f64 {
    if sample.receive_window == Bytes::MAX { f64::NAN } else { sample.receive_window.as_f64() / 1e3 }
}

fn kbps(rate: Rate) -> f64 {
    rate.as_f64() / 1e3
}

/// Means over [`BIN`] of what has a value every second.
fn binned(course: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let course: Vec<_> = course.collect();
    let bins = course.chunks_exact((BIN.as_nanos() / 1_000_000_000) as usize);
    bins.filter_map(|bin| {
        Some((bin.last()?.0, bin.iter().map(|(_, value)| value).sum::<f64>() / bin.len() as f64))
    })
    .collect()
}

/// How the player of section 8.3 would have fared, whose play changes nothing in the run: it never started
/// there, so that its buffer is all that had arrived in order.
pub(super) fn played(recording: &Recording, rate: Rate) -> PlaybackReport {
    let mut player = Playback::new(Parameters::multitcp_8_3(), Some(rate), Time::ZERO);
    for sample in recording.flow(STREAM) {
        player.advance(sample.at, rate.amount_in(sample.buffer.unwrap_or_default()), false);
    }
    player.report()
}
