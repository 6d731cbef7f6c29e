//! Runs the jobs of experiments side by side. What comes out depends neither on their order nor on how many run at a time.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{io, thread};

use thiserror::Error;

use crate::cache::Cache;
use crate::experiment::{Experiment, Job, Measured};
use crate::results::Results;
use crate::simulate::simulate;

/// How experiments are run.
pub struct Options<'a> {
    /// How many seeds, from 1 on, for what is random.
    pub seeds: u64,
    /// How many jobs at a time.
    pub jobs: NonZeroUsize,
    /// Where finished runs are kept, so that they need not be repeated.
    pub cache: Option<&'a Path>,
    /// Becomes true when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told how many of how many jobs are done, from several threads.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// Why there are no results.
#[derive(Debug, Error)]
pub enum RunError {
    /// It was to stop.
    #[error("stopped when {done} of {total} runs were done")]
    Stopped {
        /// Finished runs.
        done: usize,
        /// All runs.
        total: usize,
    },
    /// An experiment asks for something that cannot be simulated.
    #[error("{run}: {:?}: {error}", error.place)]
    Model {
        /// Which run.
        run: String,
        /// What is wrong.
        error: sim::ModelError,
    },
    /// Two jobs of an experiment cannot be told apart.
    #[error("{0}: two runs of the experiment have this name")]
    Twice(String),
    /// A finished run cannot be kept.
    #[error("cannot write to {}: {error}", path.display())]
    Keep {
        /// Where.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// A job of one of several experiments.
struct Planned {
    experiment: usize,
    seed: u64,
    job: Job,
}

/// Runs experiments; the results are in their order.
///
/// # Errors
/// It was stopped, an experiment is not right, or a finished run cannot be kept.
pub fn run(experiments: &[Experiment], options: &Options<'_>) -> Result<Vec<Results>, RunError> {
    let mut planned = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for seed in 1..=if experiment.random { options.seeds } else { 1 } {
            planned.extend((experiment.jobs)(seed).into_iter().map(|job| Planned {
                experiment: index,
                seed,
                job,
            }));
        }
    }
    let cache = options.cache.map(Cache::new);
    let measured = side_by_side(&planned, options, |plan| {
        let id = experiments[plan.experiment].id;
        let key = cache.as_ref().map(|cache| cache.key(id, plan.seed, &plan.job));
        if let Some(found) = cache.as_ref().zip(key.as_ref()).and_then(|(cache, key)| cache.load(key)) {
            return Ok(Some(found));
        }
        let Some(measured) = run_job(id, plan, options.stop)? else { return Ok(None) };
        if let (Some(cache), Some(key)) = (&cache, &key) {
            let keep = |error| RunError::Keep { path: cache.directory().to_owned(), error };
            cache.store(key, &measured).map_err(keep)?;
        }
        Ok(Some(measured))
    })?;
    let mut results: Vec<Results> = experiments.iter().map(|_| Results::default()).collect();
    for (plan, measured) in planned.into_iter().zip(measured) {
        let name = name(experiments[plan.experiment].id, &plan);
        if !results[plan.experiment].add(plan.seed, plan.job.case, measured) {
            return Err(RunError::Twice(name));
        }
    }
    Ok(results)
}

fn name(id: &str, plan: &Planned) -> String {
    format!("{id}, {}, seed {}", plan.job.case, plan.seed)
}

fn run_job(id: &str, plan: &Planned, stop: &AtomicBool) -> Result<Option<Measured>, RunError> {
    let mut recordings = Vec::new();
    for model in &plan.job.models {
        match simulate(model, plan.job.decisions, stop) {
            Ok(Some(recording)) => recordings.push(recording),
            Ok(None) => return Ok(None),
            Err(error) => return Err(RunError::Model { run: name(id, plan), error }),
        }
    }
    Ok(Some((plan.job.measure)(&recordings)))
}

/// Does every job on one of several threads. The first error ends it.
fn side_by_side(
    planned: &[Planned],
    options: &Options<'_>,
    work: impl Fn(&Planned) -> Result<Option<Measured>, RunError> + Sync,
) -> Result<Vec<Measured>, RunError> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let total = planned.len();
    let outcomes: Vec<Mutex<Option<Result<Measured, RunError>>>> =
        planned.iter().map(|_| Mutex::new(None)).collect();
    (options.progress)(0, total);
    let worker = || {
        while !options.stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = planned.get(index) else { return };
            let Some(outcome) = work(plan).transpose() else { return };
            failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            *outcomes[index].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(outcome);
            (options.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    thread::scope(|scope| {
        for _ in 0..options.jobs.get().min(total) {
            scope.spawn(worker);
        }
    });
    let mut measured = Vec::with_capacity(total);
    let mut stopped = false;
    for outcome in outcomes {
        match outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(outcome) => measured.push(outcome?),
            None => stopped = true,
        }
    }
    if stopped { Err(RunError::Stopped { done: measured.len(), total }) } else { Ok(measured) }
}
