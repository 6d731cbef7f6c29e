//! `anabranch sim`: a scenario in the simulator.

mod table;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anabranch_sim::Simulation;
use anabranch_sim::model::Model;
use anabranch_sim::output::{Output as Files, Summary};
use anabranch_sim::scenario;
use anabranch_units::Time;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::SimArguments;
use crate::failure::Failure;
use crate::output::Output;

/// How often the progress is shown and signals are obeyed.
const LOOK_UP: Duration = Duration::from_millis(100);
/// The first look is after so much simulated time; no later step is shorter than the least.
const FIRST_STEP: anabranch_units::Duration = anabranch_units::Duration::from_millis(10);
const LEAST_STEP: anabranch_units::Duration = anabranch_units::Duration::from_micros(100);

/// Simulates a scenario, writes what is asked for, and prints what it came to.
///
/// # Errors
/// The scenario is wrong, a file cannot be written, or a signal came. What was simulated until then is
/// written.
pub fn run(arguments: &SimArguments, output: &Output) -> Result<(), Failure> {
    let file = &arguments.scenario;
    let model = scenario::load(file, arguments.seed).map_err(|error| match error {
        scenario::Error::Read { .. } => Failure::failed(error),
        scenario::Error::Wrong(wrong) => {
            let text = wrong.to_string();
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            Failure::failed(first).with_details(rest)
        }
    })?;
    let impossible = |error| Failure::failed(format_args!("{}: {error}", file.display()));
    let mut simulation = Simulation::new(model.clone()).map_err(impossible)?;
    let mut files = files(arguments, &model).map_err(Failure::failed)?;

    let progress = output.progress();
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {wide_msg}") {
        progress.set_style(style);
    }
    let began = Instant::now();
    simulate(&mut simulation, &mut files, output, &progress);
    progress.finish_and_clear();
    let took = began.elapsed();

    let name = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy();
    let summary = Summary::new(&name, &model, simulation.now(), &simulation.totals());
    files.finish(&summary).map_err(Failure::failed)?;
    if simulation.now() < simulation.end()
        && let Some(signal) = output.stop().received()
    {
        let kept = arguments.out.as_ref().map_or(String::new(), |directory| {
            format!("; what was simulated until then is in {}", directory.display())
        });
        let (now, end) = (simulation.now(), simulation.end());
        return Err(Failure::stopped(signal, format_args!("interrupted at {now} of {end}{kept}")));
    }
    if output.is_quiet() {
        return Ok(());
    }
    let text = table::of(&summary, took);
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}

fn files(arguments: &SimArguments, model: &Model) -> Result<Files, anabranch_sim::output::Failure> {
    let mut files = Files::default().loss_events(arguments.loss_events);
    if let Some(directory) = &arguments.out {
        files = files.directory(directory, model)?;
    }
    if let Some(file) = &arguments.trace {
        files = files.capture(file, model)?;
    }
    Ok(files)
}

/// Runs to the end, to a signal, or until a file cannot be written.
fn simulate(simulation: &mut Simulation, files: &mut Files, output: &Output, progress: &ProgressBar) {
    let end = simulation.end();
    progress.set_length(end.as_nanos());
    let mut step = FIRST_STEP;
    let (mut looked, mut packets) = (Instant::now(), 0);
    while simulation.now() < end && output.stop().received().is_none() && !files.failed() {
        simulation.run_until(simulation.now() + step, files);
        let took = looked.elapsed();
        let rate = (simulation.data_packets() - packets) as f64 / took.as_secs_f64().max(1e-6);
        progress.set_position(simulation.now().as_nanos());
        progress.set_message(message(simulation.now(), end, rate));
        // Twice as far at the most, so that a busy time after a quiet one does not take for ever.
        let faster = (LOOK_UP.as_secs_f64() / took.as_secs_f64().max(1e-6)).min(2.0);
        step = (step * anabranch_units::Ratio::from_f64(faster)).max(LEAST_STEP);
        (looked, packets) = (Instant::now(), simulation.data_packets());
    }
}

fn message(now: Time, end: Time, packets_per_second: f64) -> String {
    let (now, end) = (now.as_secs_f64(), end.as_secs_f64());
    format!("{now:.1} s of {end:.1} s, {} packets/s", table::short(packets_per_second))
}
