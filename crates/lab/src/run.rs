//! Runs the jobs of experiments side by side. What comes out depends neither on their order nor on how many
//! run at a time.
//!
//! Figures of a paper often look at the same simulation. It runs once for all of them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use thiserror::Error;

use crate::cache::{self, Cache};
use crate::case::Measured;
use crate::experiment::{Experiment, Job};
use crate::progress::{Forecast, Progress, now};
use crate::real::TestbedError;
use crate::results::Results;
use crate::share::Share;
use crate::simulate::{Recording, simulate};

/// How experiments are run.
pub struct RunOptions<'a> {
    /// How many seeds, from 1 on, for what is random.
    pub seeds: u64,
    /// Whether what is enough for a look is to run, and no more.
    pub quick: bool,
    /// How many jobs at a time.
    pub jobs: NonZeroUsize,
    /// Where finished runs are kept, so that they need not be repeated.
    pub cache: Option<&'a Path>,
    /// Becomes true when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told how far it is whenever a run is done, from several threads.
    pub progress: &'a (dyn Fn(Progress) + Sync),
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
        error: anabranch_sim::ModelError,
    },
    /// With a seed, the scenario of an experiment is none.
    #[error(transparent)]
    Scenario(#[from] anabranch_sim::scenario::Error),
    /// Two jobs of an experiment cannot be told apart.
    #[error("{0}: two runs of the experiment have this name")]
    Twice(String),
    /// A run of real programs could not be made.
    #[error("{run}: {error}")]
    Real {
        /// Which run.
        run: String,
        /// Why not.
        error: TestbedError,
    },
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
pub fn run(experiments: &[Experiment], options: &RunOptions<'_>) -> Result<Vec<Results>, RunError> {
    let planned = plan(experiments, options)?;
    let measured = measure(experiments, &planned, Share::WHOLE, options)?;
    let mut results: Vec<Results> = experiments.iter().map(|_| Results::default()).collect();
    for (plan, measured) in planned.into_iter().zip(measured) {
        let name = name(&experiments[plan.experiment].id, &plan);
        if !results[plan.experiment].add(plan.seed, plan.job.case, measured) {
            return Err(RunError::Twice(name));
        }
    }
    Ok(results)
}

/// Makes a share of the runs of experiments and keeps them: [`run()`] finds them then. Answers how many runs
/// that are, and how many there are of all.
///
/// # Errors
/// As those of [`run()`].
pub fn run_share(
    experiments: &[Experiment],
    share: Share,
    options: &RunOptions<'_>,
) -> Result<(usize, usize), RunError> {
    let planned = plan(experiments, options)?;
    Ok((measure(experiments, &planned, share, options)?.len(), planned.len()))
}

/// The runs of experiments.
fn plan(experiments: &[Experiment], options: &RunOptions<'_>) -> Result<Vec<Planned>, RunError> {
    let mut planned = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for seed in 1..=seeds(experiment, options) {
            let jobs =
                if options.quick { experiment.jobs.for_a_look(seed)? } else { experiment.jobs.of(seed)? };
            planned.extend(jobs.into_iter().map(|job| Planned { experiment: index, seed, job }));
        }
    }
    Ok(planned)
}

/// How many seeds an experiment runs with.
fn seeds(experiment: &Experiment, options: &RunOptions<'_>) -> u64 {
    match (experiment.random, options.quick) {
        (false, _) => 1,
        (true, true) => options.seeds,
        (true, false) => options.seeds.max(experiment.least_seeds),
    }
}

/// What a share of the runs measured, in their order: kept ones are read, others made and kept.
fn measure(
    experiments: &[Experiment],
    planned: &[Planned],
    share: Share,
    options: &RunOptions<'_>,
) -> Result<Vec<Measured>, RunError> {
    let keep = |path: &Path, error| RunError::Keep { path: path.to_owned(), error };
    let cache = options.cache.map(|path| Cache::open(path).map_err(|error| keep(path, error))).transpose()?;
    side_by_side(experiments.len(), planned, share, options, |together| {
        // A key is made from the whole description: not twice.
        let id = |plan: &Planned| experiments[plan.experiment].id.as_str();
        let keys: Option<Vec<String>> = cache
            .as_ref()
            .map(|cache| together.iter().map(|plan| cache.key(id(plan), plan.seed, &plan.job)).collect());
        let load = |index: usize| cache.as_ref()?.load(&keys.as_ref()?[index]);
        let mut found: Vec<Option<Measured>> = (0..together.len()).map(load).collect();
        if found.iter().all(Option::is_some) {
            return Ok(Some((found.into_iter().flatten().collect(), None)));
        }
        let began = now();
        let Some(recordings) = record(id(together[0]), together[0], options.stop)? else { return Ok(None) };
        for (index, found) in found.iter_mut().enumerate().filter(|(_, found)| found.is_none()) {
            let measured = (together[index].job.measure)(&recordings);
            if let Some((cache, keys)) = cache.as_ref().zip(keys.as_ref()) {
                cache.store(&keys[index], &measured).map_err(|error| keep(cache.directory(), error))?;
            }
            *found = Some(measured);
        }
        Ok(Some((found.into_iter().flatten().collect(), Some(began.elapsed()))))
    })
}

fn name(id: &str, plan: &Planned) -> String {
    format!("{id}, {}, seed {}", plan.job.case, plan.seed)
}

fn record(id: &str, plan: &Planned, stop: &AtomicBool) -> Result<Option<Vec<Recording>>, RunError> {
    let mut recordings = Vec::new();
    for model in &plan.job.models {
        match simulate(model, plan.job.decisions, stop) {
            Ok(Some(recording)) => recordings.push(recording),
            Ok(None) => return Ok(None),
            Err(error) => return Err(RunError::Model { run: name(id, plan), error }),
        }
    }
    Ok(Some(recordings))
}

/// Jobs that look at the same simulations, in the order of the first of each.
fn groups(planned: &[Planned]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (index, plan) in planned.iter().enumerate() {
        let Job { models, decisions, .. } = &plan.job;
        // What is not simulated is not worth sharing, and is told apart by nothing but its measure.
        let group = if models.is_empty() {
            groups.len()
        } else {
            *known.entry(cache::digest(&format!("{models:?}\n{decisions:?}"))).or_insert(groups.len())
        };
        match groups.get_mut(group) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// How a run's time compares with that of others of its experiment: the bits that its narrowest links carry
/// in its course.
fn size(job: &Job) -> f64 {
    let bits = job.models.iter().map(|model| {
        let narrowest = model.links.iter().map(|link| link.rate.as_f64()).fold(f64::INFINITY, f64::min);
        model.run.duration.as_secs_f64() * if narrowest.is_finite() { narrowest } else { 1.0 }
    });
    // A formula takes next to nothing, but not nothing.
    bits.sum::<f64>().max(1.0)
}

/// What a group of jobs gave, in their order, and how long it took if it was not there already.
type Done = (Vec<Measured>, Option<Duration>);

/// Does every group of jobs of a share on one of several threads. The first error ends it. What was measured
/// is in the order of the jobs.
fn side_by_side(
    experiments: usize,
    planned: &[Planned],
    share: Share,
    options: &RunOptions<'_>,
    work: impl Fn(&[&Planned]) -> Result<Option<Done>, RunError> + Sync,
) -> Result<Vec<Measured>, RunError> {
    let mut groups = groups(planned);
    let mut number = 0..;
    groups.retain(|_| number.next().is_some_and(|number| share.has(number)));
    let total = groups.iter().map(Vec::len).sum();
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let outcomes: Mutex<Vec<Option<Measured>>> = Mutex::new(planned.iter().map(|_| None).collect());
    let error = Mutex::new(None);
    let mut forecast = Forecast::new(experiments, options.jobs.get());
    for group in &groups {
        let first = &planned[group[0]];
        forecast.expect(first.experiment, size(&first.job));
    }
    let state = Mutex::new((0, forecast));
    (options.progress)(Progress { done: 0, total, left: None });
    let worker = || {
        while !options.stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
            let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let together: Vec<&Planned> = group.iter().map(|index| &planned[*index]).collect();
            let (measured, took) = match work(&together) {
                Ok(Some(done)) => done,
                Ok(None) => return,
                Err(failure) => {
                    failed.store(true, Ordering::Relaxed);
                    locked(&error).get_or_insert(failure);
                    return;
                }
            };
            for (index, measured) in group.iter().zip(measured) {
                locked(&outcomes)[*index] = Some(measured);
            }
            let mut state = locked(&state);
            state.0 += group.len();
            state.1.finish(together[0].experiment, size(&together[0].job), took);
            (options.progress)(Progress { done: state.0, total, left: state.1.left() });
        }
    };
    thread::scope(|scope| {
        for _ in 0..options.jobs.get().min(groups.len()) {
            scope.spawn(worker);
        }
    });
    if let Some(error) = error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let measured: Vec<Measured> = outcomes.into_iter().flatten().collect();
    if measured.len() < total { Err(RunError::Stopped { done: measured.len(), total }) } else { Ok(measured) }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
