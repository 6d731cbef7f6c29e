//! What all tasks of a film have: what does not change, where bytes are kept, and the way to its owner.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anabranch_film::content::ReaderId;
use anabranch_film::control::PathId;
use anabranch_sockets::Interface;
use anabranch_units::{Bytes, Duration, Time};
use tokio::sync::{broadcast, mpsc};

use super::buffers::Buffers;
use super::command::Report;
use super::disk::Backlog;
use super::notice::{Event, Notice};
use super::open::FilmInfo;
use super::pacer::Pacer;
use super::published::{Figures, Published};
use super::replica::Replica;
use super::settings::Settings;
use super::store::Store;

/// So many reports wait for the owner at most. What takes memory has permits of its own.
const REPORTS: usize = 256;

/// What all tasks of a film have.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) ranges: bool,
    pub(super) size: Option<u64>,
    /// Where the film begins in what its servers have.
    pub(super) start: u64,
    /// The size of that.
    pub(super) whole: Option<u64>,
    replicas: Vec<Replica>,
    epoch: Instant,
    pub(super) store: Store,
    pub(super) pacer: Pacer,
    pub(super) buffers: Buffers,
    pub(super) published: Published,
    /// From tasks, which wait for room.
    pub(super) reports: mpsc::Sender<Report>,
    /// From callers that cannot wait: as many as readers come and go.
    calls: mpsc::UnboundedSender<Report>,
    next_reader: AtomicU32,
    notices: broadcast::Sender<Notice>,
    /// For the first who listens: it has what happened while the film was opened.
    early: Mutex<Option<broadcast::Receiver<Notice>>>,
}

/// What the owner hears.
pub(super) struct Ears {
    pub(super) reports: mpsc::Receiver<Report>,
    pub(super) calls: mpsc::UnboundedReceiver<Report>,
}

impl Shared {
    pub(super) fn new(
        settings: Settings,
        info: &FilmInfo,
        replicas: Vec<Replica>,
        store: Store,
        figures: Figures,
        epoch: Instant,
    ) -> (Arc<Self>, Ears) {
        let (notices, early) = broadcast::channel(1024);
        let (report, reports) = mpsc::channel(REPORTS);
        let (call, calls) = mpsc::unbounded_channel();
        let shared = Self {
            settings,
            ranges: info.accepts_ranges,
            size: info.size,
            start: info.within.map_or(0, |within| within.start),
            whole: info.within.map_or(info.size, |within| Some(within.size)),
            replicas,
            epoch,
            store,
            pacer: Pacer::new(),
            buffers: Buffers::default(),
            published: Published::new(figures),
            reports: report,
            calls: call,
            next_reader: AtomicU32::new(0),
            notices,
            early: Mutex::new(Some(early)),
        };
        (Arc::new(shared), Ears { reports, calls })
    }

    pub(super) fn now(&self) -> Time {
        Time::from_nanos(Duration::from(self.epoch.elapsed()).as_nanos())
    }

    /// A moment of the film on the system's clock.
    pub(super) fn instant(&self, at: Time) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.epoch + std::time::Duration::from(at.since(Time::ZERO)))
    }

    /// Tells the owner something; when there is none any more, nobody has to know.
    pub(super) async fn report(&self, report: Report) {
        let _ = self.reports.send(report).await;
    }

    /// The same for callers that cannot wait.
    pub(super) fn call(&self, report: Report) {
        let _ = self.calls.send(report);
    }

    /// Somebody begins to read, and is at this position.
    pub(super) fn add_reader(&self, range: Range<u64>, position: Arc<AtomicU64>) -> ReaderId {
        let id = ReaderId(self.next_reader.fetch_add(1, Ordering::Relaxed));
        self.call(Report::ReaderCame { id, range, position });
        id
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        let early = self.early.lock().unwrap_or_else(PoisonError::into_inner).take();
        early.unwrap_or_else(|| self.notices.subscribe())
    }

    pub(super) fn note(&self, event: Event) {
        // Nobody listening is no error.
        let _ = self.notices.send(Notice::new(self.now().since(Time::ZERO), event));
    }

    /// How many paths there are: replicas, for each interface once.
    pub(super) fn paths(&self) -> usize {
        self.replicas.len() * self.settings.interfaces.len().max(1)
    }

    pub(super) fn replica(&self, path: PathId) -> &Replica {
        &self.replicas[usize::from(path.0) % self.replicas.len().max(1)]
    }

    /// Where a path leads, as it is shown.
    pub(super) fn url(&self, path: PathId) -> &str {
        &self.replica(path).url
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        self.replicas.iter().map(|replica| replica.url.as_str())
    }

    pub(super) fn interface(&self, path: PathId) -> Option<&Interface> {
        self.settings.interfaces.get(usize::from(path.0) / self.replicas.len().max(1))
    }

    /// What is to be written, where it goes into a file.
    pub(super) fn backlog(&self) -> Option<&Arc<Backlog>> {
        self.store.disk().map(|disk| &disk.backlog)
    }

    /// Waits while more is to be written than the memory has room for: what is not read fills the receive
    /// windows.
    pub(super) async fn disk_keeps_up(&self) {
        if let Some(backlog) = self.backlog() {
            backlog.room(self.settings.memory.get()).await;
        }
    }

    /// Waits until some reader wants bytes.
    pub(super) async fn wanted(&self) {
        // The owner has a sender of it for as long as there is one.
        let _ = self.published.standing().wait_for(|standing| standing.wants).await;
    }

    /// What is there of a range, as far as it is there without a gap.
    pub(super) async fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut position = range.start;
        while position < range.end {
            let found = self.store.find(position, Bytes::new(range.end - position).as_usize());
            let Some(found) = found else { break };
            let piece = found.get(position).await?;
            position += Bytes::of(piece.len()).get();
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}
