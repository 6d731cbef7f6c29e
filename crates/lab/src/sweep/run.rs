//! Makes the runs of a share.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anabranch_sim::Simulation;
use anabranch_sim::model::Model;
use anabranch_sim::output::Summary;
use serde_json::Value;

use super::kept::{Head, Journal, Row, path};
use super::{Sweep, SweepError};
use crate::path_error::PathError;
use crate::progress::{Forecast, Progress, now};
use crate::share::Share;

/// How often a running simulation looks whether it is to stop: so many times in its course.
const SLICES: u64 = 200;
/// What a summary says of every run that is no result.
const NO_RESULTS: [&str; 5] = ["version", "scenario", "seed", "name", "kind"];

/// How runs are made.
pub struct SweepOptions<'a> {
    /// How many at a time.
    pub jobs: NonZeroUsize,
    /// Becomes true when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told how far it is whenever a run is done, from several threads.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// Makes the runs of a share that its file in `directory` does not have yet, and adds them to it.
///
/// # Errors
/// A run's scenario is none (nothing is run then), a file cannot be read or written, or it was stopped.
pub fn run(
    sweep: &Sweep,
    share: Share,
    directory: &Path,
    options: &SweepOptions<'_>,
) -> Result<(), SweepError> {
    let runs: Vec<usize> = (0..sweep.runs()).filter(|run| share.has(*run)).collect();
    // All of them, before the first takes its time.
    for run in &runs {
        simulation(sweep, &sweep.model(*run)?)?;
    }
    fs::create_dir_all(directory).map_err(PathError::writing(directory))?;
    let (journal, done) = Journal::open(path(directory, share), &Head::new(sweep, share))?;
    let left: Vec<usize> = runs.iter().copied().filter(|run| !done.contains_key(run)).collect();
    let mut forecast = Forecast::new(1, options.jobs.get());
    left.iter().for_each(|_| forecast.expect(0, 1.0));
    let before = runs.len() - left.len();
    let state = Mutex::new((before, forecast, journal));
    let failure = Mutex::new(None);
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    (options.progress)(Progress { done: before, total: runs.len(), left: None });
    let worker = || {
        while !options.stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
            let Some(run) = left.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let began = now();
            let outcome = match simulated(sweep, *run, options.stop) {
                Ok(None) => return,
                Ok(Some(row)) => {
                    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                    let written = state.2.add(&row);
                    state.0 += usize::from(written.is_ok());
                    state.1.finish(0, 1.0, Some(began.elapsed()));
                    (options.progress)(Progress { done: state.0, total: runs.len(), left: state.1.left() });
                    written
                }
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                failed.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..options.jobs.get().min(left.len()) {
            scope.spawn(worker);
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let (done, ..) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if done < runs.len() { Err(SweepError::Stopped { done, total: runs.len() }) } else { Ok(()) }
}

fn simulation(sweep: &Sweep, model: &Model) -> Result<Simulation, SweepError> {
    Simulation::new(model.clone())
        .map_err(|error| SweepError::Model { scenario: sweep.scenario().into(), error })
}

fn simulated(sweep: &Sweep, run: usize, stop: &AtomicBool) -> Result<Option<Row>, SweepError> {
    let (point, _) = sweep.of_run(run);
    let model = sweep.model(run)?;
    let mut simulation = simulation(sweep, &model)?;
    let slice = model.run.duration / SLICES + anabranch_units::Duration::from_nanos(1);
    while simulation.now() < simulation.end() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        simulation.run_until(simulation.end().min(simulation.now() + slice), &mut ());
    }
    let summary = Summary::new(sweep.scenario(), &model, simulation.now(), &simulation.totals());
    let values = sweep.values(point).into_iter().map(|value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    });
    let mut results = Vec::new();
    if let Ok(summary) = serde_json::to_value(&summary) {
        flatten("", &summary, &mut results);
    }
    Ok(Some(Row { run, values: values.collect(), results }))
}

/// The numbers of a summary with their places: `flow.film.goodput_bps`, `link.a-b.drop_rate`, `events`.
fn flatten(place: &str, value: &Value, into: &mut Vec<(String, Value)>) {
    let under = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| !NO_RESULTS.contains(&key.as_str())) {
                flatten(&under(key), value, into);
            }
        }
        Value::Array(elements) => {
            // `flows` and `links`, each with its name.
            let one = place.trim_end_matches('s');
            for element in elements {
                let name = element.get("name").and_then(Value::as_str).unwrap_or_default();
                flatten(&format!("{one}.{name}"), element, into);
            }
        }
        _ => into.push((place.to_owned(), value.clone())),
    }
}
