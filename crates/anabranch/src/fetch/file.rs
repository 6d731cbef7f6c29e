//! Into a file. While it is not complete, its state is beside it, and the same command goes on where it was.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stream::ranges::RangeSet;
use transport::engine::{Film, FilmInfo, OpenError, Settings, Storage};
use units::Bytes;

use super::digest::check_file;
use super::state::{State, path_for};
use crate::arguments::FetchArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::Reporter;

/// How often the state is written.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// A file that is written, and its state.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    state_path: PathBuf,
    /// Locked, so that no second run writes to it.
    file: File,
    /// What an earlier run left.
    old: Option<State>,
}

/// Gets the film into the file.
pub(super) async fn fetch(
    path: &Path,
    arguments: &FetchArguments,
    settings: Settings,
    reporter: &Reporter,
    output: &Output,
) -> Result<(), Failure> {
    let target = Target::open(path, arguments, output)?;
    let cannot_write =
        |error: io::Error| Failure::failed(format_args!("cannot write {}: {error}", path.display()));
    let file = target.file.try_clone().map_err(cannot_write)?;
    let mut state = None;
    let prepare = |info: &FilmInfo| {
        let (prepared, have) = target.prepare(info, arguments.restart, output)?;
        state = Some(prepared);
        Ok(Storage::File { file, have })
    };
    let film = tokio::select! {
        film = Film::open_with(settings, prepare) => film.map_err(Failure::failed),
        signal = output.stop().signal() => Err(Failure::stopped(signal, "stopped")),
    };
    let Some(state) = state else {
        // Nothing was written: an empty file that this run made has no use.
        target.discard_if_new();
        return film.map(drop);
    };
    let film = film?;
    let saver = Saver {
        state,
        path: target.state_path.clone(),
        file: target.file.try_clone().map_err(cannot_write)?,
    };
    let result = {
        let _watch = reporter.watch(&film);
        get(&film, &saver, output).await
    };
    film.shut_down();
    if let Err(failure) = result {
        let kept = film.have().total();
        let saved = saver.save(film.have(), true).await;
        return Err(match saved {
            Ok(()) => failure.with(format_args!(
                "{} of {} are kept, and the same command goes on from there",
                Bytes::new(kept),
                film.info().size.map_or("an unknown size".into(), |size| Bytes::new(size).to_string()),
            )),
            Err(error) => failure.with(format_args!("the state could not be saved ({error}), so the same command goes on from where it was a little before")),
        });
    }
    let size = film.have().total();
    drop(film);
    // What an older, longer file left behind the end.
    target.file.set_len(size).map_err(cannot_write)?;
    fs::remove_file(&target.state_path).map_err(cannot_write)?;
    if let Some(digest) = arguments.digest {
        check_file(target.file, path, digest, output).await?;
    }
    output.say(format_args!("{} is complete: {}", path.display(), Bytes::new(size)));
    Ok(())
}

/// Waits until all is there, and saves the state all the time.
async fn get(film: &Film, saver: &Saver, output: &Output) -> Result<(), Failure> {
    let saving = async {
        let mut told = false;
        loop {
            tokio::time::sleep(SAVE_EVERY).await;
            if let Err(error) = saver.save(film.have(), false).await
                && !std::mem::replace(&mut told, true)
            {
                output.warn(format_args!(
                    "this run could not be gone on with: cannot write {}: {error}",
                    saver.path.display()
                ));
            }
        }
    };
    tokio::select! {
        result = film.complete() => result.map_err(Failure::failed),
        signal = output.stop().signal() => Err(Failure::stopped(signal, "stopped")),
        () = saving => Ok(()),
    }
}

/// Writes the state.
#[derive(Debug)]
struct Saver {
    state: State,
    path: PathBuf,
    file: File,
}

impl Saver {
    /// Saves that `have` is in the file; with `sync` it is on the disk before.
    async fn save(&self, have: RangeSet, sync: bool) -> io::Result<()> {
        let (state, path, file) = (self.state.with(&have, sync), self.path.clone(), self.file.try_clone()?);
        let save = move || {
            if sync {
                file.sync_data()?;
            }
            state.write(&path)
        };
        tokio::task::spawn_blocking(save).await.map_err(io::Error::other)?
    }
}

impl Target {
    /// Opens the file and looks what an earlier run left of it. Nothing is changed yet.
    fn open(path: &Path, arguments: &FetchArguments, output: &Output) -> Result<Self, Failure> {
        let shown = path.display();
        let state_path = path_for(path);
        if path.is_dir() {
            return Err(Failure::usage(format_args!(
                "{shown} is a directory: name a file with --output FILE"
            )));
        }
        let old = State::read(&state_path).or_else(|error| {
            if arguments.restart || arguments.force {
                return Ok(None);
            }
            Err(Failure::failed(format_args!(
                "cannot read {}: {error}; --restart starts {shown} over",
                state_path.display()
            )))
        })?;
        let was_there = path.exists();
        if was_there && old.is_none() && !arguments.force && !arguments.restart {
            return Err(Failure::failed(format_args!("{shown} is there already; --force overwrites it")));
        }
        if !was_there && old.is_some() {
            output.warn(format_args!("{shown} is gone although its state is there: it is started over"));
        }
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| Failure::failed(format_args!("cannot write {shown}: {error}")))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::failed(format_args!("another program writes {shown} now")));
            }
            // A file system without locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        Ok(Self { path: path.into(), state_path, file, old: old.filter(|_| was_there) })
    }

    /// Decides how much of the file is of use, now that it is known what film it is, and makes the file fit.
    fn prepare(
        &self,
        info: &FilmInfo,
        restart: bool,
        output: &Output,
    ) -> Result<(State, RangeSet), OpenError> {
        let shown = self.path.display();
        let cannot_write = |error: io::Error| OpenError::Storage(format!("cannot write {shown}: {error}"));
        let state = State::new(info);
        let mut have = RangeSet::new();
        if let Some(old) = self.old.as_ref().filter(|_| !restart) {
            if let Some(difference) = old.difference(&state) {
                return Err(OpenError::Storage(format!(
                    "the film has changed since the last run: {difference}; --restart starts {shown} over"
                )));
            }
            have = old.have(self.file.metadata().map_err(cannot_write)?.len());
            if have.is_empty() {
                output.say(format_args!("nothing of {shown} is known to be right: it is started over"));
            } else if !info.accepts_ranges {
                output.say(format_args!("the server knows no ranges: {shown} is started over"));
                have = RangeSet::new();
            } else {
                output.say(format_args!("goes on with {shown}: {} are there", Bytes::new(have.total())));
            }
        }
        // First the state, and then what it tells about: at every moment the file is known to be incomplete.
        state.with(&have, false).write(&self.state_path).map_err(|error| {
            OpenError::Storage(format!("cannot write {}: {error}", self.state_path.display()))
        })?;
        if have.is_empty() {
            self.file.set_len(0).map_err(cannot_write)?;
        }
        Ok((state, have))
    }

    /// Takes away a file that was made by this run and has nothing in it.
    fn discard_if_new(&self) {
        let is_empty = self.file.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if is_empty && self.old.is_none() && !self.state_path.exists() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
