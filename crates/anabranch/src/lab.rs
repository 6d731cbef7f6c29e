//! `anabranch lab`: published results, run again and judged.

mod bench;
mod work;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::outcome::{Outcome, Verdict};
use anabranch_lab::readings::{ReadingsError, Search};
use anabranch_lab::real::{Real, RealOptions, Testbed};
use anabranch_lab::results::Results;
use anabranch_lab::sweep::{self, Sweep};
use anabranch_lab::{RunOptions, Share, experiments, files, validation};
use indicatif::HumanDuration;

use crate::arguments::{
    LabArguments, LabCommand, PapersArguments, ReadingsArguments, RunArguments, SweepArguments,
    ValidateArguments,
};
use crate::failure::Failure;
use crate::output::{Output, counted};
use work::{LabError, in_background, marked, print, write};

/// Where finished runs are kept in the directory of results.
const RUNS: &str = "runs";

/// So many of the best sets of a search are told.
const BEST_SETS: usize = 10;

/// Lists, runs or reports.
///
/// # Errors
/// An experiment that is not known, a run that could not be made, results that could not be written, or a
/// signal.
pub async fn run(arguments: LabArguments, output: &Output) -> Result<(), Failure> {
    match arguments.command {
        LabCommand::List(papers) => list(&papers),
        LabCommand::Copy { id, directory } => copy(&id, &directory),
        LabCommand::Run(arguments) => run_experiments(arguments, output).await,
        LabCommand::Report { directory, markdown } => {
            let outcomes = files::bind(&directory).map_err(Failure::failed)?;
            if let Some(path) = markdown {
                write(&path, anabranch_lab::reproduction::page(&outcomes))?;
            }
            tell(&outcomes, &directory)
        }
        LabCommand::Readings(arguments) => search(arguments, output).await,
        LabCommand::Sweep(arguments) => run_sweep(arguments, output).await,
        LabCommand::Merge { directory, out } => merge(&directory, out),
        LabCommand::Validate(arguments) => validate(arguments, output).await,
        LabCommand::Bench(arguments) => bench::run(arguments, output).await,
    }
}

fn list(papers: &PapersArguments) -> Result<(), Failure> {
    let lines = all(papers)?.into_iter().map(|experiment| {
        let Experiment { id, paper, place, title, .. } = experiment;
        let real = if experiments::REAL.contains(&id.as_str()) { "; --real" } else { "" };
        format!("{id:<20} {title} ({paper}, {place}{real})\n")
    });
    print(&lines.collect::<String>())
}

/// Copies an experiment that is built in, and tells how the copy is run.
fn copy(id: &str, directory: &Path) -> Result<(), Failure> {
    let Some(folder) = anabranch_lab::copy(id, directory).map_err(Failure::failed)? else {
        let known = experiments::all(None).map_err(|error| marked(&error))?;
        let meant = anabranch_lab::select(known, &[id.to_owned()]).map_err(Failure::usage)?;
        let ids: Vec<&str> = meant.iter().map(|one| one.id.as_str()).collect();
        return Err(Failure::usage(format_args!("'{id}' is the beginning of several: {}", ids.join(", "))));
    };
    let (folder, directory) = (folder.display(), directory.display());
    print(&format!("{folder}\n'anabranch lab run {id} --papers {directory}' runs it\n"))
}

/// Every experiment; what is wrong with a plan is told with the marked line.
fn all(papers: &PapersArguments) -> Result<Vec<Experiment>, Failure> {
    experiments::all(papers.directory.as_deref()).map_err(|error| marked(&error))
}

async fn run_experiments(arguments: RunArguments, output: &Output) -> Result<(), Failure> {
    let chosen =
        Arc::new(anabranch_lab::select(all(&arguments.papers)?, &arguments.ids).map_err(Failure::usage)?);
    // Better now than after the runs.
    let real = if arguments.real { Some(real_runs(&chosen, arguments.testbed)?) } else { None };
    let runs = arguments.out.join(RUNS);
    fs::create_dir_all(&runs)
        .map_err(|error| Failure::failed(format_args!("cannot write to {}: {error}", runs.display())))?;
    if arguments.fresh {
        anabranch_lab::forget_runs(&runs).map_err(|error| {
            Failure::failed(format_args!("cannot remove the finished runs in {}: {error}", runs.display()))
        })?;
    }
    let jobs = jobs(arguments.jobs);
    let quick = arguments.quick;
    let seeds = if quick { 1 } else { arguments.seeds };
    output.say(format_args!(
        "experiments: {}; seeds 1 to {}; runs at a time: {jobs}; results in {}",
        chosen.iter().map(|experiment| experiment.id.as_str()).collect::<Vec<_>>().join(", "),
        seeds,
        arguments.out.display()
    ));
    if let Some(share) = arguments.shard {
        return run_share(chosen, share, RunPlan { seeds, quick, jobs, runs }, output).await;
    }
    let (experiments, kept, out) = (Arc::clone(&chosen), runs.clone(), arguments.out.clone());
    let (results, mut outcomes) = in_background(output, true, move |stop, progress| {
        let options = RunOptions { seeds, quick, jobs, cache: Some(&kept), stop, progress };
        make(&experiments, &options, &out)
    })
    .await?;
    if let Some((real, testbed)) = real {
        output.say(format_args!(
            "with real programs, one run after the other: {}",
            told(&real, arguments.real_seeds)
        ));
        let out = arguments.out.clone();
        outcomes = in_background(output, true, move |stop, progress| {
            let options = RealOptions {
                seeds: arguments.real_seeds,
                testbed: &testbed,
                directory: &out,
                cache: &runs,
                stop,
                progress,
            };
            measure(&chosen, &results, &real, outcomes, &options)
        })
        .await?;
    }
    tell(&outcomes, &arguments.out)
}

/// How runs are made, and where they are kept.
struct RunPlan {
    seeds: u64,
    quick: bool,
    jobs: NonZeroUsize,
    runs: PathBuf,
}

/// Makes a share of the runs, for a report that is made when all are there.
async fn run_share(
    chosen: Arc<Vec<Experiment>>,
    share: Share,
    plan: RunPlan,
    output: &Output,
) -> Result<(), Failure> {
    let RunPlan { seeds, quick, jobs, runs } = plan;
    let (done, all) = in_background(output, true, move |stop, progress| {
        let options = RunOptions { seeds, quick, jobs, cache: Some(&runs), stop, progress };
        Ok(anabranch_lab::run_share(&chosen, share, &options)?)
    })
    .await?;
    print(&format!(
        "share {share} is done, {done} of {all} runs; when all are, the same command without --shard makes the report\n"
    ))
}

/// Real runs, and the ids of the experiments that have them.
type RealRuns = Vec<(String, Real)>;

/// The real runs of experiments, and a testbed that can make them.
fn real_runs(chosen: &[Experiment], testbed: Option<PathBuf>) -> Result<(RealRuns, Testbed), Failure> {
    let real: RealRuns =
        chosen.iter().filter_map(|one| Some((one.id.clone(), experiments::real(&one.id)?))).collect();
    if real.is_empty() {
        return Err(Failure::usage(format_args!(
            "--real: none of these experiments has real runs; those that have are {}",
            experiments::REAL.join(", ")
        )));
    }
    let testbed = Testbed::find(testbed).map_err(Failure::failed)?;
    testbed.check(real.iter().flat_map(|(_, real)| real.needs)).map_err(Failure::failed)?;
    Ok((real, testbed))
}

/// The ids of experiments with real runs, and how long these take.
fn told(real: &RealRuns, seeds: u64) -> String {
    // What is wrong with one is told when they are made.
    let trials = real.iter().flat_map(|(_, real)| (1..=seeds).filter_map(|seed| (real.trials)(seed).ok()));
    let seconds = trials.flatten().map(|trial| trial.duration.as_secs_f64()).sum();
    let ids: Vec<&str> = real.iter().map(|(id, _)| id.as_str()).collect();
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    format!("{}; about {} if none was made before", ids.join(", "), HumanDuration(time))
}

/// Makes the real runs, and writes what they gave beside what was simulated.
fn measure(
    chosen: &[Experiment],
    results: &[Results],
    real: &RealRuns,
    mut outcomes: Vec<Outcome>,
    options: &RealOptions<'_>,
) -> Result<Vec<Outcome>, LabError> {
    let measured = anabranch_lab::real::run(real, options)?;
    for ((id, real), measured) in real.iter().zip(&measured) {
        let simulated = chosen.iter().zip(results).zip(&mut outcomes);
        for ((experiment, results), outcome) in simulated.filter(|((one, _), _)| one.id == *id) {
            *outcome = files::write(options.directory, experiment, results, Some((real, measured)))?;
        }
    }
    files::bind(options.directory)?;
    Ok(outcomes)
}

fn jobs(wanted: Option<NonZeroUsize>) -> NonZeroUsize {
    wanted.or_else(|| available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}

/// Searches what a paper leaves open.
async fn search(arguments: ReadingsArguments, output: &Output) -> Result<(), Failure> {
    let ReadingsArguments { paper, papers, only, seeds, jobs: wanted, out } = arguments;
    let search = Search::load(&paper, papers.as_deref(), &only).map_err(|error| match error {
        ReadingsError::Unknown { .. } | ReadingsError::NoValue { .. } => Failure::usage(error),
        _ => marked(&error),
    })?;
    let most = if search.is_one_by_one() { search.sets() } else { BEST_SETS };
    let jobs = jobs(wanted);
    let runs = out.join(RUNS);
    fs::create_dir_all(&runs)
        .map_err(|error| Failure::failed(format_args!("cannot write to {}: {error}", runs.display())))?;
    output.say(format_args!(
        "{paper}: {}, seeds 1 to {seeds}; runs at a time: {jobs}; results in {}",
        counted(search.sets(), "set"),
        out.display()
    ));
    let found = in_background(output, true, move |stop, progress| {
        let options = RunOptions { seeds, quick: false, jobs, cache: Some(&runs), stop, progress };
        Ok(search.run(&options)?)
    })
    .await?;
    write(&out.join(format!("{paper}-sets.csv")), found.table())?;
    write(&out.join(format!("{paper}-relations.csv")), found.relations())?;
    print(&found.best(most))
}

/// Makes the runs of a sweep or of a share of it, and the table when it is all.
async fn run_sweep(arguments: SweepArguments, output: &Output) -> Result<(), Failure> {
    let SweepArguments { spec, shard, jobs: wanted, out } = arguments;
    let plan = Sweep::load(&spec).map_err(|error| marked(&error))?;
    let share = shard.unwrap_or(Share::WHOLE);
    let jobs = jobs(wanted);
    output.say(format_args!(
        "{}: {}, {}, {} of them in share {share}; runs at a time: {jobs}; results in {}",
        plan.scenario(),
        counted(plan.points(), "point"),
        counted(plan.runs(), "run"),
        share.count(plan.runs()),
        out.display()
    ));
    let directory = out.clone();
    in_background(output, true, move |stop, progress| {
        Ok(sweep::run(&plan, share, &directory, &sweep::SweepOptions { jobs, stop, progress })?)
    })
    .await?;
    match shard {
        None => merge(&out, None),
        Some(_) => print(&format!(
            "share {share} is done; 'anabranch lab merge {}' makes the table\n",
            out.display()
        )),
    }
}

/// Makes the table of a sweep from its shares.
fn merge(directory: &Path, out: Option<PathBuf>) -> Result<(), Failure> {
    let table = sweep::merge(directory).map_err(|error| marked(&error))?;
    let path = out.unwrap_or_else(|| directory.join("table.csv"));
    write(&path, table)?;
    print(&format!("{}\n", path.display()))
}

/// Compares the simulator with ns-2.
async fn validate(arguments: ValidateArguments, output: &Output) -> Result<(), Failure> {
    let ValidateArguments { groups, seeds, jobs: wanted, out } = arguments;
    let names = validation::names();
    if let Some(wrong) =
        groups.iter().find(|group| !names.iter().any(|name| name.starts_with(group.as_str())))
    {
        let known = names.join(", ");
        return Err(Failure::usage(format_args!(
            "there is no group of scenarios '{wrong}'; there are: {known}"
        )));
    }
    let jobs = jobs(wanted);
    output.say(format_args!("seeds 1 to {seeds}; runs at a time: {jobs}"));
    let comparisons = in_background(output, false, move |stop, progress| {
        Ok(validation::validate(
            &groups,
            &RunOptions { seeds, quick: false, jobs, cache: None, stop, progress },
        )?)
    })
    .await?;
    if let Some(path) = out {
        write(&path, validation::page(&comparisons, seeds))?;
        write(&path.with_extension("csv"), validation::everything(&comparisons))?;
    }
    print(&validation::summary(&comparisons))
}

/// Runs the experiments, and writes what they gave.
fn make(
    chosen: &[Experiment],
    options: &RunOptions<'_>,
    out: &Path,
) -> Result<(Vec<Results>, Vec<Outcome>), LabError> {
    let results = anabranch_lab::run(chosen, options)?;
    let written =
        chosen.iter().zip(&results).map(|(experiment, results)| files::write(out, experiment, results, None));
    let outcomes = written.collect::<Result<_, _>>()?;
    files::bind(out)?;
    Ok((results, outcomes))
}

/// A line for every relation, and one for all.
fn tell(outcomes: &[Outcome], directory: &Path) -> Result<(), Failure> {
    let mut text = String::new();
    for outcome in outcomes {
        for judgement in &outcome.verdicts {
            let measured =
                judgement.measured.map_or_else(|| "nothing".into(), |estimate| estimate.to_string());
            text += &format!(
                "{:<10}  {}  {}: measured {measured}, published {}\n",
                judgement.verdict.to_string(),
                outcome.id,
                judgement.in_words(),
                judgement.published,
            );
        }
        for compared in outcome.measured.iter().flat_map(|comparison| &comparison.rows) {
            let simulated =
                compared.simulated.map_or_else(|| "nothing".into(), |estimate| estimate.to_string());
            text += &format!(
                "real        {}  {}: {}: measured {} {}, simulated {simulated}\n",
                outcome.id, compared.case, compared.figure, compared.measured, compared.unit
            );
        }
    }
    // Results of our own count apart from published ones.
    let of_papers: Vec<&[Outcome]> = outcomes.chunk_by(|one, other| one.paper == other.paper).collect();
    if of_papers.len() > 1 {
        for outcomes in of_papers {
            let paper = outcomes.first().map_or("", |outcome| &outcome.paper.name);
            text += &format!("{paper}: {}\n", verdicts(outcomes));
        }
    }
    text += &format!("{}; {}\n", verdicts(outcomes), directory.join("report.html").display());
    print(&text)
}

fn verdicts(outcomes: &[Outcome]) -> String {
    let count = |verdict| outcomes.iter().map(|outcome| outcome.count(verdict)).sum::<usize>();
    format!("{} relations reproduce, {} differ", count(Verdict::Reproduces), count(Verdict::Differs))
}
