//! Drives a receiver session over real connections: the engine of `play`, `fetch` and `proxy`.
//!
//! A [`Film`] is opened from one or more URLs; [`Reader`]s take bytes from any position of it. Behind it are
//! a task a connection and one that keeps the time; they share the session under a lock that is never held
//! across a wait, and whoever told the session something carries out at once what it answers.
//!
//! What is asked for, where and when, is decided by `anabranch-film`; a connection belongs to
//! `anabranch-http`; who takes the bytes (a player's endpoint, a file, a pipe) is the caller's.
//!
//! ```no_run
//! # async fn play() -> Result<(), Box<dyn std::error::Error>> {
//! use anabranch_client::{Film, Settings, Storage};
//!
//! let settings = Settings::new(vec!["https://a.example/film.mp4".parse()?, "https://b.example/film.mp4".parse()?]);
//! let film = Film::open(settings, Storage::Memory).await?;
//! let mut reader = film.reader(0..u64::MAX);
//! while let Some(bytes) = reader.next().await? {
//!     println!("{} bytes up to {}", bytes.len(), reader.position());
//! }
//! # Ok(())
//! # }
//! ```

mod buffers;
mod command;
mod disk;
mod error;
mod groups;
mod growth;
mod link;
mod membership;
mod notice;
mod open;
mod pacer;
mod replica;
mod settings;
mod shared;
mod status;
mod store;
mod stripe;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use anabranch_film::content::ReaderId;
use anabranch_film::session::{self, Pace, Session};
use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Duration, Time};
use bytes::Bytes;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

pub use disk::Medium;
pub use error::{Cure, EngineError};
pub use notice::{Event, Notice};
pub use open::{FilmInfo, OpenError};
pub use settings::{Algorithm, Settings};
pub use status::{ReplicaStatus, Status};
pub use store::Storage;

use disk::Backlog;
use shared::{FILE_READER, Shared};
use store::Store;

/// An open film. Cheap to clone; when the last clone and reader is dropped, all its connections are closed.
#[derive(Clone)]
pub struct Film(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    info: FilmInfo,
    clock: AbortHandle,
    /// Who looks after the worker that writes.
    disk: Option<AbortHandle>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.clock.abort();
        if let Some(disk) = &self.disk {
            disk.abort();
        }
        self.shared.stop();
    }
}

/// Takes bytes of a film in order. Dropping it ends what is done on its behalf.
pub struct Reader {
    film: Film,
    id: ReaderId,
    position: u64,
    end: u64,
}

/// A reader gets at most so much at once.
const PIECE: usize = 64 * 1024;

impl Film {
    /// Opens a film: probes every URL, drops those that do not agree with the first.
    ///
    /// # Errors
    /// None of them leads to something that can be streamed.
    pub async fn open(settings: Settings, storage: Storage) -> Result<Self, OpenError> {
        Self::open_with(settings, |_| Ok(storage)).await
    }

    /// Opens a film; where it goes is decided when its size and validators are known.
    ///
    /// # Errors
    /// None of the URLs leads to something that can be streamed, or `storage` fails.
    pub async fn open_with(
        settings: Settings,
        storage: impl FnOnce(&FilmInfo) -> Result<Storage, OpenError>,
    ) -> Result<Self, OpenError> {
        let epoch = Instant::now();
        let mut opened = open::open(&settings).await?;
        let info = opened.info;
        let storage = storage(&info)?;
        if let (Storage::File { file, have, in_doubt: true }, Some(first)) =
            (&storage, opened.replicas.first_mut())
        {
            let samples = open::samples_of(&**file, have)?;
            let mut connection = first.connection.take();
            let options = settings.connect_options(settings.interfaces.first());
            open::compare(first, &mut connection, &samples, &options).await?;
            first.connection = connection;
        }
        let (mut store, mut have) = Store::new(storage)
            .map_err(|error| OpenError::Storage(format!("no thread to write it: {error}")))?;
        let mut first_bytes = 0;
        for (offset, mut bytes) in opened.first.drain(..) {
            let range = offset..offset + anabranch_units::Bytes::of(bytes.len()).get();
            store.take(offset, &mut bytes, &have).map_err(|error| cannot_begin(&error))?;
            first_bytes += have.insert(range);
        }
        if let Some(disk) = store.disk() {
            disk.backlog.flushed().await.map_err(|error| cannot_begin(&error))?;
        }
        let ways = settings.interfaces.len().max(1);
        let paths = opened.replicas.len() * ways;
        let media_rate = info.media.as_ref().map(|media| media.mean_rate);
        let config = session::Config {
            policy: settings.policy(!store.is_file()),
            controller: settings.controller(paths),
            pace: match settings.pace {
                Pace::Media(None) => Pace::Media(media_rate),
                pace => pace,
            },
            playback: settings.playback,
            media_rate,
            size: info.size,
            have,
            ranges: info.accepts_ranges,
            path_caps: path_caps(&settings, &opened.replicas),
            give_up_after: settings.give_up_after,
            silent_after: settings.silent_after,
        };
        let now = Time::from_nanos(Duration::from(epoch.elapsed()).as_nanos());
        let session = Session::new(config, now).expecting_any_speed();
        let is_file = store.is_file();
        let shared = Shared::new(settings, &info, opened.replicas, session, store, epoch, link::start);
        shared.lock().first_bytes = first_bytes;
        shared.tell(|session, now| {
            if is_file {
                session.add_reader(FILE_READER, 0..info.size.unwrap_or(u64::MAX), now);
            }
            session.start(now);
        });
        let clock = tokio::spawn(keep_time(shared.clone())).abort_handle();
        let disk = shared
            .backlog
            .clone()
            .map(|backlog| tokio::spawn(watch_disk(shared.clone(), backlog)).abort_handle());
        Ok(Self(Arc::new(Handle { shared, info, clock, disk })))
    }

    /// What is known of it.
    pub fn info(&self) -> &FilmInfo {
        &self.0.info
    }

    /// Whether its parts can be read in any order: the server knows ranges, or all of it fits into the memory
    /// that there is for it and so comes only once.
    pub fn is_seekable(&self) -> bool {
        let Handle { shared, info, .. } = &*self.0;
        let fits = |size| shared.lock().store.is_file() || size <= shared.settings.memory.get();
        info.size.is_some_and(|size| info.accepts_ranges || fits(size))
    }

    /// Reads a range of it, up to its end if that comes before the range's.
    pub fn reader(&self, range: Range<u64>) -> Reader {
        let end = self.0.info.size.map_or(range.end, |size| range.end.min(size));
        let range = range.start.min(end)..end;
        let id = self.0.shared.add_reader(range.clone());
        Reader { film: self.clone(), id, position: range.start, end }
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        status::of(&self.0.shared)
    }

    /// What happens from now on; the first to call also gets what happened before. Slow listeners miss some.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.shared.subscribe()
    }

    /// Waits until all of it is there and written. Only with [`Storage::File`] does that ever happen by
    /// itself.
    ///
    /// # Errors
    /// The stream cannot go on.
    pub async fn complete(&self) -> Result<(), EngineError> {
        loop {
            let progress = self.0.shared.progress.notified();
            {
                let core = self.0.shared.lock();
                if core.session.is_complete() {
                    break;
                }
                if let Some(error) = &core.failed {
                    return Err(error.clone());
                }
            }
            progress.await;
        }
        match &self.0.shared.backlog {
            Some(backlog) => backlog.flushed().await,
            None => Ok(()),
        }
    }

    /// Asks once more, when all has come, whether the servers still have the film that was opened. Answers
    /// its size there now where it has grown since: what came is then what there was at first. A server that
    /// is not there any more, or tells nothing, is taken at its earlier word.
    ///
    /// # Errors
    /// The film changed while it was got, so that what came may be of two versions.
    pub async fn check(&self) -> Result<Option<u64>, EngineError> {
        self.0.shared.check().await
    }

    /// What is there; of a file, what is in it.
    pub fn have(&self) -> RangeSet {
        let core = self.0.shared.lock();
        let have = core.session.have();
        self.0.shared.backlog.as_ref().map_or_else(|| have.clone(), |backlog| backlog.written(have))
    }

    /// Closes all connections; readers fail.
    pub fn shut_down(&self) {
        self.0.clock.abort();
        self.0.shared.stop();
    }
}

impl Reader {
    /// The next bytes, at most 64 KiB; `None` at the end. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The stream cannot go on.
    pub async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        let shared = self.film.0.shared.clone();
        loop {
            let progress = shared.progress.notified();
            let found = {
                let core = shared.lock();
                // A film of unknown size may have got one.
                if core.session.size().is_some_and(|size| self.position >= size) || self.position >= self.end
                {
                    return Ok(None);
                }
                let available = core.session.available(self.id).saturating_sub(self.position);
                if available > 0 {
                    let most = PIECE.min(anabranch_units::Bytes::new(available).as_usize());
                    core.store.find(self.position, most)
                } else {
                    None
                }
                .map_or_else(|| core.failed.clone().map_or(Ok(None), Err), |found| Ok(Some(found)))?
            };
            let Some(found) = found else {
                progress.await;
                continue;
            };
            let piece = found.get(self.position).await.map_err(|error| {
                EngineError::new(format!("cannot read what was written: {error}"), Cure::Again)
            })?;
            self.position += anabranch_units::Bytes::of(piece.len()).get();
            shared.move_reader(&mut shared.lock(), self.id, self.position);
            return Ok(Some(piece));
        }
    }

    /// The position of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.film.0.shared.remove_reader(self.id);
    }
}

/// Most connections on every path: those of one host are shared between its URLs and the interfaces.
fn path_caps(settings: &Settings, replicas: &[replica::Replica]) -> Vec<usize> {
    let ways = settings.interfaces.len().max(1);
    let same_host = |replica: &replica::Replica| {
        replicas.iter().filter(|other| other.target.origin().host() == replica.target.origin().host()).count()
    };
    let caps: Vec<_> =
        replicas.iter().map(|replica| (settings.per_host / (same_host(replica) * ways)).max(1)).collect();
    caps.iter().copied().cycle().take(caps.len() * ways).collect()
}

/// The first bytes cannot be kept.
fn cannot_begin(error: &EngineError) -> OpenError {
    match error.cure {
        Cure::StartOver => OpenError::AnotherFilm(error.to_string()),
        _ => OpenError::Storage(error.to_string()),
    }
}

/// Ends the film when what has come cannot be written.
async fn watch_disk(shared: Arc<Shared>, backlog: Arc<Backlog>) {
    let error = backlog.failure().await;
    shared.fail(error);
}

/// Calls the session when it wants to be called.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let next = shared.tick();
        let wait = next.since(shared.now()).max(Duration::from_millis(5));
        tokio::time::sleep(wait.into()).await;
    }
}
