//! What the tasks of a stream share: the session, the store, the connections, the clock.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_film::content::{ReaderId, RequestId};
use anabranch_film::control::{ConnectionId, PathId};
use anabranch_film::session::{Action, PathFigures, Session};
use anabranch_http::Connection;
use anabranch_http::tcp::SocketControl;
use anabranch_protocol::stripe::frame::Frame;
use anabranch_sockets::Interface;
use anabranch_units::{Bytes, Duration, Ratio, Time};
use bytes::BytesMut;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio::task::AbortHandle;

use super::buffers::Buffers;
use super::command::{Asked, Command};
use super::disk::Backlog;
use super::error::{Cure, EngineError};
use super::membership::Groups;
use super::notice::{Event, Notice};
use super::open::FilmInfo;
use super::pacer::{LARGEST_READ, Pacer};
use super::replica::Replica;
use super::settings::Settings;
use super::store::Store;

/// Starts the task of a connection.
pub(super) type Start = fn(Beginning) -> AbortHandle;

/// What the task of a connection begins with.
pub(super) struct Beginning {
    pub(super) shared: Arc<Shared>,
    pub(super) id: ConnectionId,
    pub(super) path: PathId,
    /// A connection of the probing, where there is one.
    pub(super) first: Option<Connection>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    /// Paces this connection alone.
    pub(super) pacer: Arc<Pacer>,
}

/// Everything but the handles that users hold.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) ranges: bool,
    pub(super) size: Option<u64>,
    replicas: Vec<Replica>,
    start: Start,
    epoch: Instant,
    core: Mutex<Core>,
    pub(super) pacer: Pacer,
    pub(super) buffers: Buffers,
    /// What waits to be written, where it goes into a file.
    pub(super) backlog: Option<Arc<Backlog>>,
    /// Something arrived, was written,, or the stream failed.
    pub(super) progress: Notify,
    /// A reader came or went on.
    moved: Notify,
    notices: broadcast::Sender<Notice>,
    /// For the first who listens: it has what happened while the film was opened.
    early: Mutex<Option<broadcast::Receiver<Notice>>>,
}

/// What changes, under one lock that is never held across a wait.
pub(super) struct Core {
    pub(super) session: Session,
    pub(super) store: Store,
    pub(super) links: BTreeMap<ConnectionId, LinkHandle>,
    pub(super) groups: Groups,
    /// First connections of the replicas, from the probing.
    probed: BTreeMap<u16, Connection>,
    pub(super) readers: BTreeMap<ReaderId, Range<u64>>,
    next_reader: u32,
    /// New bytes that came with the probing, before the session began.
    pub(super) first_bytes: u64,
    /// Paths that lead to the film no more, and what helps against it.
    pub(super) gone: BTreeMap<PathId, Cure>,
    pub(super) failed: Option<EngineError>,
    pub(super) stopped: bool,
}

/// A connection's task, as the others see it.
pub(super) struct LinkHandle {
    commands: mpsc::UnboundedSender<Command>,
    task: AbortHandle,
    pub(super) control: Option<SocketControl>,
    /// Paces this connection alone, where the system has no window to set.
    pacer: Arc<Pacer>,
    window: Option<Bytes>,
}

/// How long the connections of the probing wait to be used.
const PROBED_ARE_KEPT: Duration = Duration::from_secs(10);
/// The reader that stands for the file that is written.
pub(super) const FILE_READER: ReaderId = ReaderId(u32::MAX);

impl Shared {
    pub(super) fn new(
        settings: Settings,
        info: &FilmInfo,
        mut replicas: Vec<Replica>,
        session: Session,
        store: Store,
        epoch: Instant,
        start: Start,
    ) -> Arc<Self> {
        let probed = (0u16..)
            .zip(&mut replicas)
            .filter_map(|(index, replica)| replica.connection.take().map(|connection| (index, connection)));
        let probed = probed.collect();
        let backlog = store.disk().map(|disk| disk.backlog.clone());
        let core = Core {
            session,
            store,
            links: BTreeMap::new(),
            groups: Groups::default(),
            probed,
            readers: BTreeMap::new(),
            next_reader: 0,
            first_bytes: 0,
            gone: BTreeMap::new(),
            failed: None,
            stopped: false,
        };
        let (notices, early) = broadcast::channel(1024);
        Arc::new(Self {
            settings,
            ranges: info.accepts_ranges,
            size: info.size,
            replicas,
            start,
            epoch,
            core: Mutex::new(core),
            pacer: Pacer::new(),
            buffers: Buffers::default(),
            backlog,
            progress: Notify::new(),
            moved: Notify::new(),
            notices,
            early: Mutex::new(Some(early)),
        })
    }

    pub(super) fn now(&self) -> Time {
        Time::from_nanos(Duration::from(self.epoch.elapsed()).as_nanos())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        let early = self.early.lock().unwrap_or_else(PoisonError::into_inner).take();
        early.unwrap_or_else(|| self.notices.subscribe())
    }

    pub(super) fn note(&self, event: Event) {
        // Nobody listening is no error.
        let _ = self.notices.send(Notice::new(self.now().since(Time::ZERO), event));
    }

    /// Paths are replicas, for each interface once.
    fn replica_index(&self, path: PathId) -> usize {
        usize::from(path.0) % self.replicas.len().max(1)
    }

    pub(super) fn replica(&self, path: PathId) -> &Replica {
        &self.replicas[self.replica_index(path)]
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

    /// Tells the session something and carries out what it answers.
    pub(super) fn tell<T>(self: &Arc<Self>, what: impl FnOnce(&mut Session, Time) -> T) -> T {
        let mut core = self.lock();
        let answer = what(&mut core.session, self.now());
        self.carry_out(&mut core);
        answer
    }

    /// Does what the session wants. Nothing here waits.
    pub(super) fn carry_out(self: &Arc<Self>, core: &mut Core) {
        while let Some(action) = core.session.poll_action() {
            if core.stopped {
                continue;
            }
            match action {
                Action::Open { connection, path, why } => self.open(core, connection, path, why),
                Action::Close { connection, why } => {
                    if let Some(link) = core.links.remove(&connection) {
                        link.task.abort();
                        self.note(Event::Close { connection: connection.0, why });
                    }
                }
                Action::Request { connection, request, range, why } => {
                    let end = (range.end < u64::MAX).then_some(range.end);
                    self.note(Event::Request { connection: connection.0, first: range.start, end, why });
                    if let Some(link) = core.links.get(&connection) {
                        // A task that has ended tells so itself.
                        let _ = link.commands.send(Command::Ask(Asked { request, range }));
                    }
                }
                Action::Order { connection, frame, why } => {
                    if let Frame::Want { range, .. } = &frame {
                        let (connection, first, end) = (connection.0, range.start, Some(range.end));
                        self.note(Event::Request { connection, first, end, why });
                    }
                    if let Some(link) = core.links.get(&connection) {
                        let _ = link.commands.send(Command::Order(frame));
                    }
                }
                Action::Leave { connection, why } => {
                    if let Some(link) = core.links.get(&connection) {
                        let _ = link.commands.send(Command::Leave);
                        self.note(Event::Close { connection: connection.0, why });
                    }
                }
                Action::SetWindow { connection, window, why } => {
                    let bytes = window.map(Bytes::get);
                    self.note(Event::Window { connection: connection.0, bytes, why });
                    if let Some(link) = core.links.get_mut(&connection) {
                        link.window = window;
                        link.apply_window();
                    }
                }
                Action::LimitRate(rate) => {
                    self.note(Event::Limit { rate_bps: rate.map(anabranch_units::Rate::as_bps) });
                    self.pacer.set_rate(rate);
                }
                Action::Waiting { last_error } => self.note(Event::Waiting { error: last_error }),
                Action::Fail { error } => {
                    let cure = self.cure(core);
                    self.end(core, EngineError::new(error, cure));
                }
            }
        }
    }

    fn open(self: &Arc<Self>, core: &mut Core, connection: ConnectionId, path: PathId, why: &'static str) {
        let (sender, commands) = mpsc::unbounded_channel();
        let first = if self.interface(path) == self.interface(PathId(0)) {
            core.probed.remove(&path.0)
        } else {
            None
        };
        let pacer = Arc::new(Pacer::new());
        let beginning =
            Beginning { shared: self.clone(), id: connection, path, first, commands, pacer: pacer.clone() };
        let link = LinkHandle {
            commands: sender,
            task: (self.start)(beginning),
            control: None,
            pacer,
            window: None,
        };
        core.links.insert(connection, link);
        let interface = self.interface(path).map(ToString::to_string);
        self.note(Event::Open { connection: connection.0, url: self.url(path).to_owned(), interface, why });
    }

    /// A connection's task has a connection.
    pub(super) fn connected(self: &Arc<Self>, id: ConnectionId, connection: &Connection) {
        let mut core = self.lock();
        if let Some(link) = core.links.get_mut(&id) {
            link.control = Some(connection.control());
        }
        let now = self.now();
        core.session.connected(id, connection.handshake_rtt(), now);
        self.carry_out(&mut core);
    }

    /// What helps when the session has failed: where no path leads to the film any more, it is what helps
    /// against that.
    fn cure(&self, core: &Core) -> Cure {
        let paths = self.replicas.len() * self.settings.interfaces.len().max(1);
        if core.gone.len() < paths {
            Cure::Again
        } else if core.gone.values().any(|cure| *cure == Cure::StartOver) {
            Cure::StartOver
        } else {
            Cure::OtherUrl
        }
    }

    /// Payload has arrived.
    pub(super) fn arrived(
        self: &Arc<Self>,
        id: ConnectionId,
        buffer: &mut BytesMut,
    ) -> Result<(), EngineError> {
        let length = Bytes::of(buffer.len()).get();
        let now = self.now();
        let mut core = self.lock();
        let core = &mut *core;
        let Some((_, offset)) = core.session.answering(id) else {
            buffer.clear();
            return Ok(());
        };
        core.store.take(offset, buffer, core.session.have())?;
        core.session.arrived(id, length, now);
        self.bound_memory(core);
        self.carry_out(core);
        self.progress.notify_waiters();
        Ok(())
    }

    /// The answer to a range ended: what did not come of it is asked for again.
    pub(super) fn answer_ended(self: &Arc<Self>, id: ConnectionId, request: RequestId) {
        self.tell(|session, now| {
            if session.answering(id).is_some_and(|(answering, _)| answering == request) {
                session.cut_short(id, now);
            }
        });
    }

    /// The answer of a server without ranges ended: there ends the film, if it has no end yet.
    pub(super) fn whole_ended(self: &Arc<Self>, id: ConnectionId) -> Result<(), String> {
        let mut core = self.lock();
        let core = &mut *core;
        let Some((_, end)) = core.session.answering(id) else { return Ok(()) };
        // An earlier answer may have gone on behind this end.
        let readers = core.readers.values().map(|reader| reader.start);
        let reached = core.session.have().iter().map(|range| range.end).chain(readers).max().unwrap_or(0);
        if core.session.size().is_none() && reached <= end {
            core.session.size_known(end);
        }
        core.session.cut_short(id, self.now());
        let size = core.session.size().unwrap_or(reached);
        self.carry_out(core);
        self.progress.notify_waiters();
        if size == end { Ok(()) } else { Err(format!("it had {size} bytes and has {end} now")) }
    }

    /// Waits until some reader wants bytes: without ranges nothing else bounds what is read ahead.
    pub(super) async fn wanted(&self) {
        loop {
            let moved = self.moved.notified();
            if self.lock().session.wants_something() {
                return;
            }
            moved.await;
        }
    }

    /// Waits until a connection may read, and tells how much at once. `own` is the connection's own pacer.
    pub(super) async fn may_read(&self, id: ConnectionId, own: &Pacer) -> Bytes {
        self.disk_keeps_up().await;
        // What a reader waits for that has got nothing yet comes first: the limit holds afterwards.
        if self.pacer.is_limited() && self.lock().session.brings_first_bytes(id) {
            return LARGEST_READ;
        }
        let _holding = own.hold();
        self.pacer.ready().await.min(own.ready().await)
    }

    /// Waits while more is to be written than the memory has room for: what is not read fills the receive
    /// windows.
    async fn disk_keeps_up(&self) {
        if let Some(backlog) = &self.backlog {
            backlog.room(self.settings.memory.get()).await;
        }
    }

    /// Whether the path has other connections than this one.
    pub(super) fn has_others(&self, path: PathId, id: ConnectionId) -> bool {
        self.lock()
            .session
            .status()
            .connections
            .iter()
            .any(|other| other.path == path && other.connection != id)
    }

    /// A path leads to something else from now on.
    pub(super) fn path_lost(self: &Arc<Self>, id: ConnectionId, path: PathId, error: &str, cure: Cure) {
        self.lock().gone.insert(path, cure);
        self.note(Event::ReplicaLost { url: self.url(path).to_owned(), error: error.to_owned() });
        let error = format!("{}: {error}", self.url(path));
        self.tell(|session, now| {
            session.closed(id, None, now);
            session.path_lost(path, &error, now);
        });
    }

    /// The stream cannot go on.
    pub(super) fn fail(&self, error: EngineError) {
        self.end(&mut self.lock(), error);
    }

    pub(super) fn log_end(&self, id: ConnectionId, path: PathId, error: Option<&str>) {
        self.lock().links.remove(&id);
        if let Some(error) = error {
            let url = self.url(path).to_owned();
            self.note(Event::ConnectionFailed { connection: id.0, url, error: error.to_owned() });
        }
    }

    /// Time passes: figures of the paths, windows, the session's clock. Answers when to come again.
    ///
    /// Connections of the probing that nobody needed soon are closed: servers count them.
    pub(super) fn tick(self: &Arc<Self>) -> Time {
        let mut core = self.lock();
        let core = &mut *core;
        let now = self.now();
        if now.since(Time::ZERO) > PROBED_ARE_KEPT {
            core.probed.clear();
        }
        for (id, link) in &mut core.links {
            let Some(control) = &link.control else { continue };
            let _ = control.keep_window();
            let (unread, held) = (control.unread(), link.pacer.held());
            let known = control.info().map(|info| PathFigures {
                rtt: info.rtt,
                packet_size: info.mss,
                out_of_order: info.out_of_order,
                packets: info.data_segments_received,
                unread,
                held,
            });
            let figures = known.unwrap_or(PathFigures { unread, held, ..PathFigures::default() });
            core.session.path_figures(*id, &figures, now);
        }
        if core.store.is_file() {
            let available = core.session.available(FILE_READER);
            core.session.move_reader(FILE_READER, available, now);
        }
        core.session.tick(now);
        self.carry_out(core);
        core.session.next_tick()
    }

    /// Somebody begins to read.
    pub(super) fn add_reader(self: &Arc<Self>, range: Range<u64>) -> ReaderId {
        let now = self.now();
        let mut core = self.lock();
        let core = &mut *core;
        let id = ReaderId(core.next_reader);
        core.next_reader += 1;
        core.readers.insert(id, range.clone());
        self.share_memory(core);
        core.session.add_reader(id, range, now);
        self.carry_out(core);
        self.moved.notify_waiters();
        id
    }

    pub(super) fn remove_reader(self: &Arc<Self>, id: ReaderId) {
        let now = self.now();
        let mut core = self.lock();
        let core = &mut *core;
        core.readers.remove(&id);
        self.share_memory(core);
        core.session.remove_reader(id, now);
        self.carry_out(core);
    }

    /// A reader took what is before `position`.
    pub(super) fn move_reader(self: &Arc<Self>, core: &mut Core, id: ReaderId, position: u64) {
        let now = self.now();
        if let Some(range) = core.readers.get_mut(&id) {
            range.start = position;
        }
        core.session.move_reader(id, position, now);
        self.bound_memory(core);
        self.carry_out(core);
        self.moved.notify_waiters();
    }

    /// Readers divide the memory.
    fn share_memory(&self, core: &mut Core) {
        if !core.store.is_file() {
            let readers = Bytes::of(core.readers.len().max(1)).get();
            let ahead = self.settings.memory * Ratio::new(5, 8);
            core.session.set_look_ahead(Bytes::new(ahead.get() / readers).max(Bytes::kib(256)));
        }
    }

    /// Keeps what is a little behind and the look-ahead before every reader; more than the bound goes.
    pub(super) fn bound_memory(&self, core: &mut Core) {
        if core.store.in_memory() <= self.settings.memory.get() {
            return;
        }
        let share = self.settings.memory.get() / Bytes::of(core.readers.len().max(1)).get();
        let (behind, ahead) = (share / 8, share * 6 / 8);
        let wanted: Vec<_> = core
            .readers
            .values()
            .map(|range| range.start.saturating_sub(behind)..range.start.saturating_add(ahead).min(range.end))
            .collect();
        for gone in core.store.evict(&wanted) {
            core.session.forget(gone);
        }
    }

    /// Ends everything.
    pub(super) fn stop(&self) {
        self.end(&mut self.lock(), EngineError::new("the stream was ended", Cure::Again));
    }

    /// Nothing is asked for any more and all connections are closed. Readers get what is there, then `why`.
    fn end(&self, core: &mut Core, why: EngineError) {
        core.stopped = true;
        core.failed.get_or_insert(why);
        for (_, link) in std::mem::take(&mut core.links) {
            link.task.abort();
        }
        core.probed.clear();
        self.progress.notify_waiters();
    }
}

impl LinkHandle {
    fn apply_window(&self) {
        if SocketControl::is_supported() {
            if let Some(control) = &self.control {
                // A socket that is gone tells so when it is read.
                let _ = control.set_window(self.window);
            }
        } else {
            // Without windows: read as fast as such a window would let the sender send.
            let rtt = self.control.as_ref().and_then(SocketControl::info).map(|info| info.rtt);
            let rtt = rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(Duration::from_millis(100));
            self.pacer.set_rate(self.window.map(|window| anabranch_units::Rate::of(window, rtt)));
        }
    }
}
