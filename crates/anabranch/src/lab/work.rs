//! What all commands of the lab have: long work with a progress line, and errors with their place.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_lab::campaign::CampaignError;
use anabranch_lab::readings::ReadingsError;
use anabranch_lab::sweep::SweepError;
use anabranch_lab::{Progress, RunError, files};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::output::Output;

/// How often it is told how far the work is where no progress line is drawn.
const MINUTE: Duration = Duration::from_secs(60);

/// The error, with the marked line below it where it has one.
pub(super) fn marked(error: &dyn std::error::Error) -> Failure {
    let text = error.to_string();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    Failure::failed(first).with_details(rest)
}

/// Does long work beside the signals' handler, with a progress line. `is_kept`: what was done is not lost
/// when it is stopped.
pub(super) async fn in_background<T: Send + 'static>(
    output: &Output,
    is_kept: bool,
    work: impl FnOnce(&AtomicBool, &(dyn Fn(Progress) + Sync)) -> Result<T, LabError> + Send + 'static,
) -> Result<T, Failure> {
    let progress = output.progress();
    if let Ok(style) = ProgressStyle::with_template("  {bar:30} {pos}/{len} runs{msg}") {
        progress.set_style(style);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut work = {
        let (bar, stop) = (progress.clone(), Arc::clone(&stop));
        tokio::task::spawn_blocking(move || work(&stop, &|progress| show(&bar, progress)))
    };
    let mut minutes = tokio::time::interval_at(tokio::time::Instant::now() + MINUTE, MINUTE);
    let ended = loop {
        tokio::select! {
            ended = &mut work => break ended,
            _ = output.stop().signal() => {
                stop.store(true, Ordering::Relaxed);
                break work.await;
            }
            _ = minutes.tick() => tell_where_nothing_is_drawn(output, &progress),
        }
    };
    progress.finish_and_clear();
    match (ended.map_err(Failure::failed)?, output.stop().received()) {
        (Ok(done), _) => Ok(done),
        (
            Err(
                stopped @ (LabError::Run(RunError::Stopped { .. })
                | LabError::Readings(ReadingsError::Run(RunError::Stopped { .. }))
                | LabError::Sweep(SweepError::Stopped { .. })
                | LabError::Campaign(CampaignError::Stopped)),
            ),
            Some(signal),
        ) => {
            let failure = Failure::stopped(signal, stopped);
            Err(if is_kept { failure.with("the same command goes on from there") } else { failure })
        }
        (Err(LabError::Sweep(error)), _) => Err(marked(&error)),
        (Err(LabError::Campaign(error)), _) => Err(marked(&error)),
        (Err(error), _) => Err(Failure::failed(error)),
    }
}

/// Says how far the work is where the progress line has no terminal, as in a log.
fn tell_where_nothing_is_drawn(output: &Output, progress: &ProgressBar) {
    let total = progress.length().unwrap_or_default();
    if progress.is_hidden() && total > 1 {
        output.say(format_args!("{} of {total} runs{}", progress.position(), progress.message()));
    }
}

/// Why there are no verdicts.
#[derive(Debug, thiserror::Error)]
pub(super) enum LabError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Files(#[from] files::FilesError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    #[error(transparent)]
    Readings(#[from] ReadingsError),
}

fn show(bar: &ProgressBar, Progress { done, total, left }: Progress) {
    // The numbers of runs fit.
    bar.set_length(total as u64);
    bar.set_position(done as u64);
    bar.set_message(left.map_or_else(String::new, |left| format!(", {} left", HumanDuration(left))));
}

pub(super) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    fs::write(path, content)
        .map_err(|error| Failure::failed(format_args!("cannot write to {}: {error}", path.display())))
}

pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}
