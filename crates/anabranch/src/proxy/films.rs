//! The films that are open, by where they are and by what is said for them: a player's requests for one file,
//! or for one part of a file, share its size, its validators and its connections.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_client::{Film, OpenError, PlaylistSegment, Settings, Storage};
use anabranch_film::playlist::Parameters;
use anabranch_http::{HeaderError, Pool, Target, TargetError};
use anabranch_media::playlist::Place;
use anabranch_units::Bytes;
use tokio::sync::OnceCell;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::said::Said;
use super::secrets::Secrets;
use crate::endpoint::FilmResource;
use crate::report::{Reporter, Watch};

/// Most films at a time. Each has up to `--memory` in memory.
const MOST_FILMS: usize = 32;
/// How long a film stays open that nobody reads.
const IDLE: Duration = Duration::from_secs(15);
/// How long a film that nobody reads is believed to be still the same: a HEAD, and the GET that follows it.
const FRESH: Duration = Duration::from_secs(2);

/// What is read, and what is said for it: who says something else may get something else.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) secrets: Secrets,
}

/// What an object is to its player.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// Something of its own.
    Whole,
    /// One of many that follow each other: a playlist, what begins a rendition, or a segment.
    Part(Option<PlaylistSegment>),
}

/// The open films.
pub(super) struct Films {
    /// What every film is opened with, but for its URL.
    settings: Settings,
    reporter: Arc<Reporter>,
    slots: Mutex<HashMap<Wanted, Slot>>,
    /// What is done without a request that waits for it.
    tasks: Mutex<JoinSet<()>>,
    /// Connections that go on from part to part.
    pool: Pool,
    /// Makes names of whose they are.
    owners: RandomState,
}

/// A film that is open or being opened.
type Cell = Arc<OnceCell<Arc<OpenFilm>>>;

/// An open film, in the reports as long as it is.
pub(super) struct OpenFilm {
    pub(super) resource: FilmResource,
    _watch: Watch,
}

#[derive(Clone)]
struct Slot {
    film: Cell,
    made: Instant,
    used: Instant,
}

impl Slot {
    fn new() -> Self {
        let now = Instant::now();
        Self { film: Arc::default(), made: now, used: now }
    }

    /// Whether somebody opens or reads it.
    fn is_in_use(&self) -> bool {
        match self.film.get() {
            Some(film) => film.resource.delivery().is_open() || Arc::strong_count(film) > 1,
            None => Arc::strong_count(&self.film) > 1,
        }
    }

    fn has_failed(&self) -> bool {
        self.film.get().is_some_and(|film| film.resource.delivery().failure().is_some())
    }
}

/// Why there is no film.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilmError {
    #[error("{MOST_FILMS} films are being read, and that is the limit")]
    TooMany,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Header(#[from] HeaderError),
}

impl Films {
    pub(super) fn new(settings: Settings, reporter: Arc<Reporter>) -> Self {
        Self {
            settings,
            reporter,
            slots: Mutex::default(),
            tasks: Mutex::default(),
            pool: Pool::default().bounded(Parameters::default().most),
            owners: RandomState::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Wanted, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The film that is `wanted`, opened when it is not. One that nobody reads is opened anew for a reader
    /// that begins at its start (`from_start`): what is there may have changed. A reader that goes on in its
    /// middle gets the one it knows. What is `said` goes with it where it is opened.
    pub(super) async fn get(
        &self,
        wanted: &Wanted,
        from_start: bool,
        role: Role,
        said: &Said,
    ) -> Result<Arc<OpenFilm>, FilmError> {
        let cell = self.slot(wanted, from_start)?.film;
        let opened = cell.get_or_try_init(|| self.open(wanted, role, said)).await.cloned();
        if opened.is_err() {
            self.forget_cell(wanted, &cell);
        }
        opened
    }

    async fn open(&self, wanted: &Wanted, role: Role, said: &Said) -> Result<Arc<OpenFilm>, FilmError> {
        let Place { mut url, bytes } = wanted.place.clone();
        let origin = Target::new(&url)?.origin().clone();
        let mut settings = Settings { part: bytes, ..self.settings.clone() };
        said.add_to(&mut url, &mut settings.headers, &origin)?;
        settings.urls = vec![url];
        wanted.secrets.add_to(&mut settings.headers, &origin)?;
        if let Role::Part(segment) = role {
            settings.pool = Some(self.pool.of(self.owners.hash_one(&wanted.secrets)));
            settings.segment = segment;
            settings.probe_media = false;
            // A group of connections would have to be joined for each anew.
            settings.stripe = false;
        }
        let film = Film::open(settings, Storage::Memory).await?;
        let _watch = self.reporter.watch(&film);
        Ok(Arc::new(OpenFilm { resource: FilmResource::new(film), _watch }))
    }

    fn slot(&self, wanted: &Wanted, from_start: bool) -> Result<Slot, FilmError> {
        let mut slots = self.lock();
        let outdated = |slot: &Slot| {
            let stale = from_start && slot.made.elapsed() > FRESH && !slot.is_in_use();
            stale || slot.has_failed()
        };
        if slots.get(wanted).is_some_and(outdated) {
            slots.remove(wanted);
        }
        if let Some(slot) = slots.get_mut(wanted) {
            slot.used = Instant::now();
            return Ok(slot.clone());
        }
        if slots.len() >= MOST_FILMS {
            let unused = slots.iter().filter(|(_, slot)| !slot.is_in_use()).min_by_key(|(_, slot)| slot.used);
            let unused = unused.map(|(wanted, _)| wanted.clone()).ok_or(FilmError::TooMany)?;
            slots.remove(&unused);
        }
        Ok(slots.entry(wanted.clone()).or_insert_with(Slot::new).clone())
    }

    /// Does something until it is done, is aborted, or [all end](Self::end).
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.tasks().spawn(task)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is done without a request.
    pub(super) async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks());
        tasks.shutdown().await;
    }

    /// Where is told what happens.
    pub(super) fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    /// Bound on the bytes of a film in memory.
    pub(super) fn memory(&self) -> Bytes {
        self.settings.memory
    }

    /// The next request for it opens it anew.
    pub(super) fn forget(&self, wanted: &Wanted, film: &Arc<OpenFilm>) {
        let mut slots = self.lock();
        if slots.get(wanted).and_then(|slot| slot.film.get()).is_some_and(|cached| Arc::ptr_eq(cached, film))
        {
            slots.remove(wanted);
        }
    }

    fn forget_cell(&self, wanted: &Wanted, cell: &Cell) {
        let mut slots = self.lock();
        if slots.get(wanted).is_some_and(|slot| Arc::ptr_eq(&slot.film, cell) && slot.film.get().is_none()) {
            slots.remove(wanted);
        }
    }

    /// Closes films that nobody has read for a while.
    pub(super) fn sweep(&self) {
        self.pool.sweep();
        while self.tasks().try_join_next().is_some() {}
        let now = Instant::now();
        self.lock().retain(|_, slot| {
            if slot.is_in_use() {
                slot.used = now;
            }
            !slot.has_failed() && now.duration_since(slot.used) < IDLE
        });
    }
}
