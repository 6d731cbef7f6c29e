//! Bodies of responses: text and parts of a file, read in chunks that are used again.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep_until};

use super::answering::Answering;
use super::log::Entry;
use super::passage::Passage;
use super::pieces::{Content, Piece, Pieces};
use super::shape::Shaper;
use super::source::{Source, truncated};

/// What is read and given to hyper at a time.
const CHUNK_BYTES: usize = 128 * 1024;
/// The same where a rate is set, and a smaller piece makes a smoother flow.
const SHAPED_CHUNK_BYTES: usize = 16 * 1024;
/// Unused chunks that are kept: enough for what is between two polls of busy connections.
const KEPT_CHUNKS: usize = 32;

/// Buffers of [`CHUNK_BYTES`] that were used before: fresh ones would cost a page fault for every 4 KiB.
#[derive(Debug, Default)]
pub(super) struct Pool {
    unused: Mutex<Vec<Vec<u8>>>,
}

impl Pool {
    fn take(self: &Arc<Self>) -> Chunk {
        let used = self.unused.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Chunk { bytes: used.unwrap_or_else(|| vec![0; CHUNK_BYTES]), pool: self.clone() }
    }
}

/// A buffer that goes back to its pool.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut unused = self.pool.unused.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.len() < KEPT_CHUNKS {
            unused.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[derive(Debug)]
enum Wait {
    Nothing,
    /// Until a link is free for the next chunk; then comes the link with this index.
    Link(usize, Pin<Box<Sleep>>),
    /// All links are free.
    LinksFree,
    /// For the disk.
    Disk(JoinHandle<io::Result<(Chunk, usize)>>),
}

/// The file, chunk by chunk.
#[derive(Debug)]
struct Chunks {
    file: Option<Arc<Source>>,
    pool: Arc<Pool>,
    passage: Option<Passage>,
    /// What each chunk has to pass.
    links: Vec<Arc<Shaper>>,
    wait: Wait,
}

/// The body of a response.
#[derive(Debug)]
pub(super) struct Body {
    pieces: Pieces,
    chunks: Chunks,
    entry: Entry,
    _answering: Option<Answering>,
}

impl Body {
    pub(super) fn new(
        pieces: impl Into<VecDeque<Piece>>,
        file: Option<Arc<Source>>,
        pool: Arc<Pool>,
        passage: Option<Passage>,
        links: Vec<Arc<Shaper>>,
        entry: Entry,
        answering: Option<Answering>,
    ) -> Self {
        let chunks = Chunks { file, pool, passage, links, wait: Wait::Nothing };
        Self { pieces: Pieces::new(pieces), chunks, entry, _answering: answering }
    }

    /// The same without anything to send: what HEAD gets.
    pub(super) fn without_pieces(self) -> Self {
        Self { pieces: Pieces::new([]), ..self }
    }

    /// Bytes that are still to come.
    pub(super) fn left(&self) -> u64 {
        self.pieces.left().unwrap_or(0)
    }
}

impl Chunks {
    /// A chunk of this length comes to the link with this index.
    fn come_to(&self, link: usize, length: usize) -> Wait {
        match self.links.get(link) {
            Some(shaper) => Wait::Link(link + 1, Box::pin(sleep_until(shaper.reserve(length as u64)))),
            None => Wait::LinksFree,
        }
    }
}

impl Content for Chunks {
    fn poll_bytes(&mut self, cx: &mut Context<'_>, range: &Range<u64>) -> Poll<io::Result<Option<Bytes>>> {
        let file = self.file.clone().ok_or_else(|| io::Error::other("a part of no file"))?;
        let most = if self.links.is_empty() { CHUNK_BYTES } else { SHAPED_CHUNK_BYTES };
        let length = usize::try_from(range.end - range.start).unwrap_or(most).min(most);
        let (chunk, read) = loop {
            match &mut self.wait {
                Wait::Nothing => self.wait = self.come_to(0, length),
                Wait::Link(next, sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    let next = *next;
                    self.wait = self.come_to(next, length);
                }
                Wait::LinksFree => {
                    if let Some(passage) = self.passage.as_ref().filter(|_| self.links.is_empty())
                        && let Some(stand_in) = passage.stand_in(&file, range)?
                    {
                        self.wait = Wait::Nothing;
                        return Poll::Ready(Ok(Some(stand_in)));
                    }
                    let mut chunk = self.pool.take();
                    if let Some(read) = file.read_cached(&mut chunk.bytes[..length], range.start)? {
                        break (chunk, read);
                    }
                    let (file, offset) = (file.clone(), range.start);
                    self.wait = Wait::Disk(tokio::task::spawn_blocking(move || {
                        let read = file.read_at(&mut chunk.bytes[..length], offset)?;
                        Ok((chunk, read))
                    }));
                }
                Wait::Disk(task) => break ready!(Pin::new(task).poll(cx)).map_err(io::Error::other)??,
            }
        };
        self.wait = Wait::Nothing;
        if read == 0 {
            return Poll::Ready(Err(truncated()));
        }
        Poll::Ready(Ok(Some(Bytes::from_owner(chunk).slice(..read))))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Self { pieces, chunks, entry, .. } = &mut *self;
        let frame = ready!(pieces.poll_next(cx, chunks));
        if let Some(Ok(frame)) = &frame {
            entry.sent += frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.pieces.size_hint()
    }
}
