//! Runs a model and keeps what measurements need.

use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_sim::model::{FlowId, LinkId, Model};
use anabranch_sim::report::{Decision, FlowSample, LinkSample, Observer, Totals};
use anabranch_sim::{ModelError, Simulation};
use anabranch_units::{Duration, Time};

/// How often a running simulation looks whether it is to stop: so many times in its course.
const SLICES: u64 = 200;

/// What a simulation told.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The intervals of all flows, in the order of time.
    pub flows: Vec<FlowSample>,
    /// The intervals of all links, in the order of time.
    pub links: Vec<LinkSample>,
    /// The decisions that were asked for.
    pub decisions: Vec<Decision>,
    /// The totals.
    pub totals: Totals,
    /// When the run ended.
    pub ended: Time,
}

impl Recording {
    /// The intervals of a flow.
    pub fn flow(&self, flow: FlowId) -> impl Iterator<Item = &FlowSample> {
        self.flows.iter().filter(move |sample| sample.flow == flow)
    }

    /// The intervals of a link.
    pub fn link(&self, link: LinkId) -> impl Iterator<Item = &LinkSample> {
        self.links.iter().filter(move |sample| sample.link == link)
    }
}

/// Keeps samples, and the decisions that are asked for.
struct Recorder {
    recording: Recording,
    decisions: &'static [&'static str],
}

impl Observer for Recorder {
    fn flow(&mut self, sample: &FlowSample) {
        self.recording.flows.push(*sample);
    }

    fn link(&mut self, sample: &LinkSample) {
        self.recording.links.push(*sample);
    }

    fn wants_loss_events(&self) -> bool {
        self.decisions.iter().any(|what| ["loss_event", "timeout"].contains(what))
    }

    fn decision(&mut self, decision: &Decision) {
        if self.decisions.contains(&decision.what) {
            self.recording.decisions.push(decision.clone());
        }
    }
}

/// Runs a model to its end; `None` when it was to stop before.
///
/// # Errors
/// The model is not right.
pub fn simulate(
    model: &Model,
    decisions: &'static [&'static str],
    stop: &AtomicBool,
) -> Result<Option<Recording>, ModelError> {
    let mut simulation = Simulation::new(model.clone())?;
    let mut recorder = Recorder { recording: Recording::default(), decisions };
    let end = Time::ZERO + model.run.duration;
    let slice = model.run.duration / SLICES + Duration::from_nanos(1);
    let mut now = Time::ZERO;
    while now < end {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        now = end.min(now + slice);
        simulation.run_until(now, &mut recorder);
    }
    recorder.recording.totals = simulation.totals();
    recorder.recording.ended = end;
    Ok(Some(recorder.recording))
}
