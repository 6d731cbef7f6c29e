//! What the viewer of a film sees of a run.

use anabranch_film::playback::{Parameters, Playback, PlaybackReport};
use anabranch_sim::model::{FlowId, Kind, Model};
use anabranch_sim::report::FlowSample;
use anabranch_units::{Duration, Rate, Time};

use crate::simulate::Recording;
use crate::statistics::mean;

/// The rate of the media that a flow plays.
pub(super) fn media_rate(model: &Model, flow: FlowId) -> Option<Rate> {
    match model.flows.get(flow).map(|flow| &flow.kind) {
        Some(Kind::Media(media)) => Some(media.rate),
        _ => None,
    }
}

/// A player beside the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Viewer {
    /// When it starts and stops.
    pub(super) parameters: Parameters,
    /// It waits so long before it looks whether it can start.
    pub(super) waits: Duration,
}

/// How a player would have fared whose play changes nothing in the run, beside a film that was not played
/// there.
pub(super) fn played(run: &Recording, flow: FlowId, viewer: Viewer, rate: Option<Rate>) -> PlaybackReport {
    fared(run.flow(flow), viewer, rate)
}

fn fared<'a>(
    samples: impl Iterator<Item = &'a FlowSample>,
    viewer: Viewer,
    rate: Option<Rate>,
) -> PlaybackReport {
    let mut player = Playback::new(viewer.parameters, rate, Time::ZERO);
    for sample in samples.filter(|sample| sample.at >= Time::ZERO + viewer.waits) {
        player.advance(sample.at, sample.in_order, false);
    }
    player.report()
}

/// The part of the samples in which a player that began at `start_up`, and never stood still, wants what is
/// not there; not finite where none began or the media has no rate.
pub(super) fn late<'a>(
    samples: impl Iterator<Item = &'a FlowSample>,
    start_up: Option<Duration>,
    rate: Option<Rate>,
) -> f64 {
    let (Some(start_up), Some(rate)) = (start_up, rate) else { return f64::NAN };
    let is_late =
        |sample: &FlowSample| rate.time_for(sample.in_order) < sample.at.since(Time::ZERO + start_up);
    let late = samples.map(|sample| if is_late(sample) { 1.0 } else { 0.0 });
    mean(&late.collect::<Vec<f64>>()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use anabranch_film::playback::StallRule;
    use anabranch_units::Bytes;

    use super::*;

    #[test]
    fn a_player_waits_for_media_or_for_a_time() {
        // Half of what a player needs comes: 5 s of media after 10 s.
        let samples: Vec<_> = (1..=40)
            .map(|second| FlowSample {
                at: Time::ZERO + Duration::from_secs(second),
                in_order: Bytes::new(second * 500_000),
                ..FlowSample::default()
            })
            .collect();
        let fared = |prebuffer: u64, waits: u64| {
            let stall = StallRule::FixedPause(Duration::from_secs(5));
            let parameters = Parameters { prebuffer: Duration::from_secs(prebuffer), stall };
            let viewer = Viewer { parameters, waits: Duration::from_secs(waits) };
            let report = fared(samples.iter(), viewer, Some(Rate::from_mbps(8)));
            (report.startup.map(Duration::as_secs_f64), report.stalls)
        };
        assert_eq!(fared(10, 0), (Some(20.0), 1), "20 s of play until 40 s");
        assert_eq!(fared(0, 10), (Some(10.0), 3));
    }

    #[test]
    fn what_comes_after_its_play_time_is_late() {
        // 1 MB is a second; the third of four seconds has nothing new.
        let sample = |second: u64, megabytes: u64| FlowSample {
            at: Time::ZERO + Duration::from_secs(second),
            in_order: Bytes::new(megabytes * 1_000_000),
            ..FlowSample::default()
        };
        let samples = [sample(1, 1), sample(2, 2), sample(3, 2), sample(4, 4)];
        let part = |start_up_ms: u64| {
            let start_up = Some(Duration::from_millis(start_up_ms));
            late(samples.iter(), start_up, Some(Rate::from_mbps(8)))
        };
        assert_eq!([part(0), part(500), part(1000)], [0.25, 0.25, 0.0]);
        assert!(late(samples.iter(), None, Some(Rate::from_mbps(8))).is_nan());
    }
}
