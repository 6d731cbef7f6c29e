//! Makes real runs, one after the other: two at a time would take the processor from each other.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration as StdDuration;

use super::{Observed, Real, Testbed, TestbedError, Trial};
use crate::RunError;
use crate::cache::{Cache, digest};
use crate::case::{Case, Measured};
use crate::progress::{Forecast, Progress, now};
use crate::results::Results;

/// How real runs are made.
pub struct RealOptions<'a> {
    /// How many times, as seeds from 1 on.
    pub seeds: u64,
    /// What makes them.
    pub testbed: &'a Testbed,
    /// The directory of results: `ID/measured/` in it gets everything that a run has told.
    pub directory: &'a Path,
    /// Where finished runs are kept, so that they need not be repeated.
    pub cache: &'a Path,
    /// Becomes true when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told how far it is whenever a run is done.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// Makes the real runs of experiments, given by their ids; the results are in their order.
///
/// # Errors
/// It was stopped, a run failed, or a finished run cannot be kept.
pub fn run(experiments: &[(String, Real)], options: &RealOptions<'_>) -> Result<Vec<Results>, RunError> {
    let keep = |path: &Path, error| RunError::Keep { path: path.to_owned(), error };
    let cache = Cache::open(options.cache).map_err(|error| keep(options.cache, error))?;
    let mut planned = Vec::new();
    let mut forecast = Forecast::new(experiments.len(), 1);
    for (index, (id, real)) in experiments.iter().enumerate() {
        for seed in 1..=options.seeds {
            let failed = |error| RunError::Real { run: id.clone(), error };
            for trial in (real.trials)(seed).map_err(failed)? {
                forecast.expect(index, trial.duration.as_secs_f64());
                planned.push((index, seed, trial));
            }
        }
    }
    let total = planned.len();
    let mut results: Vec<Results> = experiments.iter().map(|_| Results::default()).collect();
    (options.progress)(Progress { done: 0, total, left: None });
    for (done, (index, seed, trial)) in planned.into_iter().enumerate() {
        let id = experiments[index].0.as_str();
        let name = format!("{id}, {}, seed {seed}, measured", trial.case);
        let key = key(id, seed, &trial);
        let (measured, took) = match cache.load(&key) {
            Some(measured) => (measured, None),
            None => {
                let began = now();
                let directory =
                    options.directory.join(id).join("measured").join(directory_of(&trial.case, seed));
                let failed = |error| RunError::Real { run: name.clone(), error };
                let Some(measured) = make(options, &trial, &directory).map_err(failed)? else {
                    return Err(RunError::Stopped { done, total });
                };
                cache.store(&key, &measured).map_err(|error| keep(cache.directory(), error))?;
                (measured, Some(began.elapsed()))
            }
        };
        forecast.finish(index, trial.duration.as_secs_f64(), took);
        if !results[index].add(seed, trial.case, measured) {
            return Err(RunError::Twice(name));
        }
        let left: Option<StdDuration> = forecast.left();
        (options.progress)(Progress { done: done + 1, total, left });
    }
    Ok(results)
}

fn make(
    options: &RealOptions<'_>,
    trial: &Trial,
    directory: &Path,
) -> Result<Option<Measured>, TestbedError> {
    let Some(()) = options.testbed.run(trial, directory, options.stop)? else { return Ok(None) };
    let measured = (trial.reading)(&Observed::new(directory));
    measured.map(Some).map_err(|error| TestbedError::Results { directory: directory.into(), error })
}

fn key(id: &str, seed: u64, trial: &Trial) -> String {
    let Trial { case, scenario, files, kernel, programs, .. } = trial;
    let described = format!("{case:?}\n{scenario}\n{files:?}\n{kernel:?}\n{programs:?}");
    format!("{id}-{seed}-measured-{}", digest(&described))
}

/// A case as the name of a directory.
fn directory_of(case: &Case, seed: u64) -> String {
    let text = format!("{case} seed {seed}");
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_lowercase()
}
