//! An open film, as its users hold it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use anabranch_film::control::PathId;
use anabranch_film::session::{self, Pace, Session};
use anabranch_http::Connection;
use anabranch_protocol::ranges::RangeSet;
use anabranch_units::{Bytes, Duration, Rate, Time};
use tokio::sync::broadcast;

use super::command::Report;
use super::error::{Cure, EngineError};
use super::first::First;
use super::growth;
use super::handle::Handle;
use super::notice::Notice;
use super::open::{self, FilmInfo, OpenError};
use super::owner::Owner;
use super::published::Figures;
use super::reader::Reader;
use super::replica::Replica;
use super::settings::Settings;
use super::shared::Shared;
use super::status::{self, Status};
use super::store::{Storage, Store};

/// An open film. Cheap to clone; when the last clone and reader is dropped, all its connections are closed.
#[derive(Clone)]
pub struct Film(Arc<Handle>);

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
        let store = Store::new(storage)
            .map_err(|error| OpenError::Storage(format!("no thread to write it: {error}")))?;
        let mut first_bytes = 0;
        for (offset, bytes) in opened.first.drain(..) {
            first_bytes += store.take(offset, bytes.freeze()).map_err(|error| cannot_begin(&error))?;
        }
        if let Some(disk) = store.disk() {
            disk.backlog.flushed().await.map_err(|error| cannot_begin(&error))?;
        }
        first_bytes += opened.coming;
        let mut config = config(&settings, &info, &opened.replicas, &store);
        config.have.insert(0..opened.coming);
        let session = Session::new(config, since(epoch)).expecting_any_speed();
        let session = if settings.pool.is_some() { session.lending() } else { session };
        let control = settings.segment.as_ref().and_then(|segment| segment.control.as_ref());
        let share = control.and_then(|(lasting, _)| lasting.share());
        let session = session.expecting(share.unwrap_or(Rate::ZERO));
        let probed: BTreeMap<PathId, Connection> = (0..)
            .map(PathId)
            .zip(&mut opened.replicas)
            .filter_map(|(path, replica)| Some((path, replica.connection.take()?)))
            .collect();
        let figures = Figures { session: session.status(), have: session.have().clone(), first_bytes };
        let first = First::new(opened.coming);
        let (shared, ears) = Shared::new(settings, &info, opened.replicas, store, figures, epoch);
        let owner = Owner::new(shared.clone(), session, probed, first, first_bytes);
        let owner = tokio::spawn(owner.run(ears)).abort_handle();
        Ok(Self(Arc::new(Handle { shared, info, owner })))
    }

    /// What is known of it.
    pub fn info(&self) -> &FilmInfo {
        &self.0.info
    }

    /// Whether its parts can be read in any order: the server knows ranges, or all of it fits into the memory
    /// that there is for it and so comes only once.
    pub fn is_seekable(&self) -> bool {
        let Handle { shared, info, .. } = &*self.0;
        let fits = |size| shared.store.is_file() || size <= shared.settings.memory.get();
        info.size.is_some_and(|size| info.accepts_ranges || fits(size))
    }

    /// Reads a range of it, up to its end if that comes before the range's.
    pub fn reader(&self, range: Range<u64>) -> Reader {
        let end = self.0.info.size.map_or(range.end, |size| range.end.min(size));
        Reader::new(self.0.clone(), range.start.min(end)..end)
    }

    /// How it stands, or stood at most a tenth of a second ago.
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
        let mut standing = self.0.shared.published.standing();
        let failed = match standing.wait_for(|now| now.is_complete || now.failed.is_some()).await {
            Ok(standing) if standing.is_complete => None,
            Ok(standing) => standing.failed.clone(),
            Err(_) => Some(EngineError::ended()),
        };
        match (failed, self.0.shared.backlog()) {
            (Some(error), _) => Err(error),
            (None, Some(backlog)) => backlog.flushed().await,
            (None, None) => Ok(()),
        }
    }

    /// Waits until a connection was given back to the pool although not all has come yet, as nothing is left to ask
    /// for, or until it is over.
    pub async fn lends(&self) {
        let mut standing = self.0.shared.published.standing();
        // Who would tell is gone where this fails.
        let _ = standing.wait_for(|now| now.lends || now.is_complete || now.failed.is_some()).await;
    }

    /// Asks once more, when all has come, whether the servers still have the film that was opened. Answers
    /// its size there now where it has grown since: what came is then what there was at first. A server that
    /// is not there any more, or tells nothing, is taken at its earlier word.
    ///
    /// # Errors
    /// The film changed while it was got, so that what came may be of two versions.
    pub async fn check(&self) -> Result<Option<u64>, EngineError> {
        growth::check(&self.0.shared).await
    }

    /// What is there, or was a tenth of a second ago; of a file, what is in it.
    pub fn have(&self) -> RangeSet {
        let have = self.0.shared.published.figures().have.clone();
        match self.0.shared.backlog() {
            Some(backlog) => backlog.written(&have),
            None => have,
        }
    }

    /// Closes all connections; readers fail. What is known afterwards of the film stays so.
    pub async fn shut_down(&self) {
        self.0.shared.call(Report::Stop);
        // It is over as well when there is nobody who could say so.
        let _ = self.0.shared.published.standing().wait_for(|now| now.failed.is_some()).await;
    }
}

/// What the session begins with.
fn config(settings: &Settings, info: &FilmInfo, replicas: &[Replica], store: &Store) -> session::Config {
    let segment = settings.segment.as_ref().filter(|segment| !segment.play_time.is_zero());
    let of_segment =
        segment.zip(info.size).map(|(segment, size)| Rate::of(Bytes::new(size), segment.play_time));
    let media_rate = info.media.as_ref().map(|media| media.mean_rate).or(of_segment);
    let ways = settings.interfaces.len().max(1);
    session::Config {
        policy: settings.policy(!store.is_file()),
        controller: settings.controller(replicas.len() * ways),
        pace: match (settings.pace, segment, media_rate) {
            (Pace::Media(_), Some(segment), Some(rate)) => {
                Pace::AtLeast { rate, ahead: segment.ahead, next: segment.next_rung.map(|next| rate * next) }
            }
            (Pace::Media(None), ..) => Pace::Media(media_rate),
            (pace, ..) => pace,
        },
        playback: settings.playback,
        media_rate,
        size: info.size,
        have: store.have(),
        ranges: info.accepts_ranges,
        path_caps: path_caps(settings, replicas),
        give_up_after: settings.give_up_after,
        silent_after: settings.silent_after,
    }
}

fn since(epoch: Instant) -> Time {
    Time::from_nanos(Duration::from(epoch.elapsed()).as_nanos())
}

/// Most connections on every path: those of one host are shared between its URLs and the interfaces.
fn path_caps(settings: &Settings, replicas: &[Replica]) -> Vec<usize> {
    let ways = settings.interfaces.len().max(1);
    let same_host = |replica: &Replica| {
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
