//! Takes bytes of a film in order.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_film::content::ReaderId;
use anabranch_units::Bytes as Size;
use bytes::Bytes;
use tokio::sync::watch;

use super::command::Report;
use super::error::{Cure, EngineError};
use super::handle::Handle;
use super::published::Standing;

/// A reader gets at most so much at once.
const PIECE: usize = 64 * 1024;
/// The owner sees in its own time how far a reader is. One that has taken so much since tells it: more can be
/// asked for.
const MUCH: u64 = 256 * 1024;

/// Takes bytes of a film in order. Dropping it ends what is done on its behalf.
pub struct Reader {
    film: Arc<Handle>,
    id: ReaderId,
    position: u64,
    end: u64,
    /// For the owner.
    shown: Arc<AtomicU64>,
    /// The position that the owner was told of last.
    told: u64,
    standing: watch::Receiver<Standing>,
    news: watch::Receiver<()>,
}

impl Reader {
    pub(super) fn new(film: Arc<Handle>, range: Range<u64>) -> Self {
        let position = range.start;
        let shown = Arc::new(AtomicU64::new(position));
        let (standing, news) = (film.shared.published.standing(), film.shared.published.news());
        let id = film.shared.add_reader(range.clone(), shown.clone());
        Self { film, id, position, end: range.end, shown, told: position, standing, news }
    }

    /// The next bytes, at most 64 KiB; `None` at the end. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The stream cannot go on.
    pub async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        loop {
            self.news.mark_unchanged();
            let (size, failed) = {
                let standing = self.standing.borrow();
                (standing.size, standing.failed.clone())
            };
            // A film of unknown size may have got one.
            let end = size.map_or(self.end, |size| size.min(self.end));
            if self.position >= end {
                return Ok(None);
            }
            let most = PIECE.min(Size::new(end - self.position).as_usize());
            let found = self.film.shared.store.find(self.position, most);
            if self.position - self.told >= if found.is_some() { MUCH } else { 1 } {
                self.film.shared.report(Report::ReaderMoved).await;
                self.told = self.position;
            }
            let Some(found) = found else {
                match failed {
                    Some(error) => return Err(error),
                    None => self.news.changed().await.map_err(|_| EngineError::ended())?,
                }
                continue;
            };
            let piece = found.get(self.position).await.map_err(|error| {
                EngineError::new(format!("cannot read what was written: {error}"), Cure::Again)
            })?;
            self.position += Size::of(piece.len()).get();
            self.shown.store(self.position, Ordering::Relaxed);
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
        self.film.shared.call(Report::ReaderLeft { id: self.id });
    }
}
