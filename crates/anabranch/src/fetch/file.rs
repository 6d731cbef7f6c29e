//! Into a file. While it is not complete, its state is beside it, and the same command goes on where it was.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_client::{Cure, EngineError, Film, FilmInfo, OpenError, Settings, Storage};
use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Rate};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::digest::{Checked, check_file, mismatch};
use super::state::{Comparison, State, path_for};
use crate::arguments::FetchArguments;
use crate::failure::Failure;
use crate::opening::open;
use crate::output::Output;
use crate::report::Reporter;

/// The state is written when about so much has come, so that this is what has to come again after a kill; but
/// not more often than one of these times and not more seldom than the other.
const SAVE_AFTER: Bytes = Bytes::mib(1);
const SAVE_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));

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

/// What is decided about a file when the film is known.
#[derive(Debug)]
struct Prepared {
    state: State,
    /// What the user is told about what is there.
    told: Option<String>,
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
    let mut prepared = None;
    let prepare = |info: &FilmInfo| {
        let (now, storage) = target.prepare(info, arguments.restart)?;
        prepared = Some(now);
        Ok(storage)
    };
    let film = tokio::select! {
        film = open(settings, prepare, output) => film.map_err(|error| target.not_opened(&error)),
        signal = output.stop().signal() => Err(Failure::stopped(signal, "stopped")),
    };
    let Some(Prepared { state, told }) = prepared else {
        // Nothing was written: an empty file that this run made has no use.
        target.discard_if_new();
        return film.map(drop);
    };
    let film = film?;
    if let Some(told) = told {
        output.say(told);
    }
    let saver = Saver {
        state,
        path: target.state_path.clone(),
        file: target.file.try_clone().map_err(cannot_write)?,
        ended: Arc::default(),
    };
    let result = {
        let _watch = reporter.watch(&film);
        get(&film, &saver, output).await
    };
    film.shut_down().await;
    let result = match result {
        // A digest says more than any server.
        Ok(()) if arguments.digest.is_some() => Ok(None),
        Ok(()) => check(&film, output).await,
        Err(error) => Err(error),
    };
    let grown = match result {
        Ok(grown) => grown,
        Err((failure, cure)) => {
            return Err(match saver.save(film.have(), true).await {
                Ok(()) => failure.with(kept(&film, path, cure)),
                Err(error) => failure.with(format_args!(
                    "the state could not be saved ({error}), so the same command goes on from where it was a \
                     little before"
                )),
            });
        }
    };
    let have = film.have();
    let size = have.total();
    drop(film);
    // What an older, longer file left behind the end.
    target.file.set_len(size).map_err(cannot_write)?;
    if let Some(wanted) = arguments.digest
        && let Checked::Found(found) = check_file(target.file, path, wanted, output).await?
    {
        let failure = mismatch(&path.display().to_string(), wanted, found);
        saver.end();
        return Err(failure.with(set_aside(path, &target.state_path)));
    }
    if let Some(now) = grown {
        saver.save(have, true).await.map_err(cannot_write)?;
        output.say(format_args!(
            "{} is complete as the film was at first, with {}; it has grown to {} since: the same command \
             gets the rest",
            path.display(),
            Bytes::new(size),
            Bytes::new(now)
        ));
        return Ok(());
    }
    saver.end();
    fs::remove_file(&target.state_path).map_err(cannot_write)?;
    output.say(format_args!("{} is complete: {}", path.display(), Bytes::new(size)));
    Ok(())
}

/// Whether what came is of one version; answers the size of a film that has grown.
async fn check(film: &Film, output: &Output) -> Result<Option<u64>, (Failure, Cure)> {
    tokio::select! {
        result = film.check() => result.map_err(|error| {
            let cure = error.cure;
            (Failure::failed(error), cure)
        }),
        signal = output.stop().signal() => Err((Failure::stopped(signal, "stopped"), Cure::Again)),
    }
}

/// What there is of an unfinished file, and how it can be gone on with.
fn kept(film: &Film, path: &Path, cure: Cure) -> String {
    let info = film.info();
    let size = info.size.map_or("an unknown size".into(), |size| Bytes::new(size).to_string());
    let shown = path.display();
    let how = match cure {
        Cure::Again if info.accepts_ranges => "the same command goes on from there".to_owned(),
        Cure::Again => "but the server knows no ranges: the same command starts over".to_owned(),
        Cure::OtherUrl => format!("--output {shown} with another URL of the same film goes on from there"),
        Cure::StartOver => format!("but they are of the film as it was: --restart starts {shown} over"),
    };
    format!(
        "{} of {size} are kept, {}{how}",
        Bytes::new(film.have().total()),
        if how.starts_with("but") { "" } else { "and " }
    )
}

/// Takes a file that is not what was wanted away from its name, and its state with it.
fn set_aside(path: &Path, state: &Path) -> String {
    let name = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 0 { ".mismatch".to_owned() } else { format!(".mismatch.{number}") });
        PathBuf::from(name)
    };
    // Nothing that is there already is lost by it.
    let moved =
        (0..100).map(name).find(|name| renameat_with(CWD, path, CWD, name, RenameFlags::NOREPLACE).is_ok());
    match moved {
        Some(name) => {
            let _ = fs::remove_file(state);
            format!("it is kept as {}", name.display())
        }
        None => format!(
            "it could not be renamed, and counts as unfinished: --restart starts {} over",
            path.display()
        ),
    }
}

/// Waits until all is there, and saves the state all the time.
async fn get(film: &Film, saver: &Saver, output: &Output) -> Result<(), (Failure, Cure)> {
    let saving = async {
        let (mut told, mut wait) = (false, SAVE_EVERY.0);
        // The first time at once: what an earlier run left may just have been found to be of this film.
        loop {
            let have = film.have();
            let before = have.total();
            if let Err(error) = saver.save(have, false).await
                && !std::mem::replace(&mut told, true)
            {
                output.warn(format_args!(
                    "this run could not be gone on with: cannot write {}: {error}",
                    saver.path.display()
                ));
            }
            tokio::time::sleep(wait.into()).await;
            wait = next_wait(Bytes::new(film.have().total().saturating_sub(before)), wait);
        }
    };
    tokio::select! {
        result = film.complete() => result.map_err(|error: EngineError| {
            let cure = error.cure;
            (Failure::failed(error), cure)
        }),
        signal = output.stop().signal() => Err((Failure::stopped(signal, "stopped"), Cure::Again)),
        () = saving => Ok(()),
    }
}

/// How long until the state is written again, after this has come in this time. A rate that rises is seen in
/// time.
fn next_wait(came: Bytes, wait: Duration) -> Duration {
    let (least, most) = SAVE_EVERY;
    Rate::of(came, wait).time_for(SAVE_AFTER).min(wait * 2).clamp(least, most)
}

/// Writes the state.
#[derive(Debug)]
struct Saver {
    state: State,
    path: PathBuf,
    file: File,
    /// Nothing is written any more; held while something is.
    ended: Arc<Mutex<bool>>,
}

impl Saver {
    /// Waits for what is being written and has nothing follow it: a write that nobody waits for any more must
    /// not come behind the last word on the file.
    fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Saves that `have` is in the file; with `sync` it is on the disk before, and nothing else is saved
    /// afterwards.
    async fn save(&self, have: RangeSet, sync: bool) -> io::Result<()> {
        let (state, path, file) = (self.state.with(&have, sync), self.path.clone(), self.file.try_clone()?);
        let ended = self.ended.clone();
        let save = move || {
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            if *ended {
                return Ok(());
            }
            *ended = sync;
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
        // A link to nowhere is not followed: it may be planted.
        let file = File::options().read(true).write(true).create_new(!was_there).open(path);
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
    fn prepare(&self, info: &FilmInfo, restart: bool) -> Result<(Prepared, Storage), OpenError> {
        let shown = self.path.display();
        let cannot_write = |error: io::Error| OpenError::Storage(format!("cannot write {shown}: {error}"));
        let state = State::new(info);
        let mut have = RangeSet::new();
        let (mut told, mut in_doubt) = (None, false);
        if let Some(old) = self.old.as_ref().filter(|_| !restart) {
            have = old.have(self.file.metadata().map_err(cannot_write)?.len());
            let there = Bytes::new(have.total());
            let comparison = old.compare(&state);
            told = Some(match comparison {
                Comparison::Another(how) => return Err(OpenError::AnotherFilm(how)),
                _ if have.is_empty() => {
                    format!("nothing of {shown} is known to be right: it is started over")
                }
                _ if !info.accepts_ranges => {
                    have = RangeSet::new();
                    format!("{} knows no ranges: {shown} is started over", info.replicas[0])
                }
                Comparison::InDoubt(how) => {
                    in_doubt = true;
                    let how = how.map(|how| format!("; {how}, but samples of the content agree"));
                    format!("goes on with {shown}: {there} are there{}", how.unwrap_or_default())
                }
                Comparison::Same => format!("goes on with {shown}: {there} are there"),
            });
        }
        // First the state, and then what it tells about: at every moment the file is known to be incomplete.
        // One that may be of another film keeps its own until that is known.
        if !in_doubt {
            state.with(&have, false).write(&self.state_path).map_err(|error| {
                OpenError::Storage(format!("cannot write {}: {error}", self.state_path.display()))
            })?;
        }
        if have.is_empty() {
            self.file.set_len(0).map_err(cannot_write)?;
        }
        let file = self.file.try_clone().map_err(cannot_write)?;
        Ok((Prepared { state, told }, Storage::File { file: Arc::new(file), have, in_doubt }))
    }

    /// Why the film could not be opened, and what that means for what is there.
    fn not_opened(&self, error: &OpenError) -> Failure {
        let shown = self.path.display();
        match error {
            OpenError::AnotherFilm(how) => Failure::failed(format_args!(
                "the film has changed since the last run: {how}; --restart starts {shown} over"
            )),
            OpenError::Refused { status: 401 | 403 | 404 | 410, .. } if self.old.is_some() => {
                Failure::failed(error).with(format_args!(
                    "--output {shown} with another URL of the same film goes on with what is there"
                ))
            }
            error => Failure::failed(error),
        }
    }

    /// Takes away a file that was made by this run and has nothing in it.
    fn discard_if_new(&self) {
        let is_empty = self.file.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if is_empty && self.old.is_none() && !self.state_path.exists() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_as_often_as_what_a_kill_costs_is_worth() {
        let seconds = Duration::from_secs;
        assert_eq!(next_wait(Bytes::mib(100), seconds(1)), seconds(1), "a fast film");
        assert_eq!(next_wait(Bytes::mib(1), seconds(4)), seconds(4), "a film of 2 Mbps");
        assert_eq!(next_wait(Bytes::ZERO, seconds(1)), seconds(2), "one that has only begun");
        assert_eq!(next_wait(Bytes::ZERO, seconds(8)), seconds(8), "one that stands still");
        assert_eq!(next_wait(Bytes::mib(100), seconds(8)), seconds(1), "one that goes on fast");
    }
}
