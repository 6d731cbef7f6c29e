//! The films that are open, by URL and by what is said for it: a player's requests for one object share its
//! size, its validators and its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_client::{Film, OpenError, Settings, Storage};
use anabranch_http::{HeaderError, Target, TargetError};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use url::Url;

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
    pub(super) url: Url,
    pub(super) secrets: Secrets,
}

/// The open films.
pub(super) struct Films {
    /// What every film is opened with, but for its URL.
    settings: Settings,
    reporter: Arc<Reporter>,
    slots: Mutex<HashMap<Wanted, Slot>>,
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
            Some(film) => film.resource.delivery().is_open(),
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
        Self { settings, reporter, slots: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Wanted, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The film that is `wanted`, opened when it is not. One that nobody reads is opened anew for a reader
    /// that begins at its start (`from_start`): what is there may have changed. A reader that goes on in its
    /// middle gets the one it knows.
    pub(super) async fn get(&self, wanted: &Wanted, from_start: bool) -> Result<Arc<OpenFilm>, FilmError> {
        let cell = self.slot(wanted, from_start)?.film;
        let opened = cell.get_or_try_init(|| self.open(wanted)).await.cloned();
        if opened.is_err() {
            self.forget_cell(wanted, &cell);
        }
        opened
    }

    async fn open(&self, wanted: &Wanted) -> Result<Arc<OpenFilm>, FilmError> {
        let mut settings = Settings { urls: vec![wanted.url.clone()], ..self.settings.clone() };
        wanted.secrets.add_to(&mut settings.headers, Target::new(&wanted.url)?.origin())?;
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
        let now = Instant::now();
        self.lock().retain(|_, slot| {
            if slot.is_in_use() {
                slot.used = now;
            }
            !slot.has_failed() && now.duration_since(slot.used) < IDLE
        });
    }
}
