//! The one task that owns a film's session. It hears what connections and readers report, tells the session,
//! carries out what the session wants, and publishes what others wait for. Nothing that it does waits for
//! anybody.

mod actions;
mod striping;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use anabranch_film::content::ReaderId;
use anabranch_film::control::{ConnectionId, PathId};
use anabranch_film::session::{Refusal, Session};
use anabranch_http::Connection;
use anabranch_units::{Duration, Time};

use crate::command::{End, Report};
use crate::connections::Connections;
use crate::disk::Backlog;
use crate::error::{Cure, EngineError};
use crate::first::First;
use crate::groups::Groups;
use crate::notice::Event;
use crate::published::{Figures, Standing};
use crate::readers::Readers;
use crate::shared::{Ears, Shared};

/// How long the connections of the probing wait to be used.
const PROBED_ARE_KEPT: Duration = Duration::from_secs(10);
/// Time is told to the session no more often.
const SHORTEST_TICK: Duration = Duration::from_millis(5);
/// Figures are made for those who look, and no more often.
const FIGURES_ARE_KEPT: Duration = Duration::from_millis(10);
/// So many reports are heard before anything is carried out.
const REPORTS_AT_ONCE: usize = 32;
/// The reader that stands for the file that is written.
const FILE_READER: ReaderId = ReaderId(u32::MAX);

/// Who decides. When it is dropped, all connections are closed.
pub(super) struct Owner {
    shared: Arc<Shared>,
    session: Session,
    connections: Connections,
    groups: Groups,
    readers: Readers,
    /// First connections of the replicas, from the probing.
    probed: BTreeMap<PathId, Connection>,
    /// What is under way since the film was opened.
    first: Option<First>,
    /// Paths that lead to the film no more, and what helps against it.
    gone: BTreeMap<PathId, Cure>,
    failed: Option<EngineError>,
    first_bytes: u64,
    /// Others have connections of its pool although not all has come.
    lends: bool,
    /// Bytes have come that nobody was told of yet.
    has_news: bool,
    figures_made: Time,
    /// When the session was told of the time last.
    ticked: Time,
}

impl Owner {
    pub(super) fn new(
        shared: Arc<Shared>,
        session: Session,
        probed: BTreeMap<PathId, Connection>,
        first: Option<First>,
        first_bytes: u64,
    ) -> Self {
        Self {
            shared,
            session,
            connections: Connections::default(),
            groups: Groups::default(),
            readers: Readers::default(),
            probed,
            first,
            gone: BTreeMap::new(),
            failed: None,
            first_bytes,
            lends: false,
            has_news: false,
            figures_made: Time::ZERO,
            ticked: Time::ZERO,
        }
    }

    /// Gets the film until it is not wanted any more, or cannot be got.
    pub(super) async fn run(mut self, mut ears: Ears) {
        let shared = self.shared.clone();
        let backlog = shared.backlog();
        let mut reports = Vec::with_capacity(REPORTS_AT_ONCE);
        if shared.store.is_file() {
            let end = shared.size.unwrap_or(u64::MAX);
            self.session.add_reader(FILE_READER, 0..end, shared.now());
        }
        self.session.start(shared.now());
        let mut disk_failure = pin!(failure(backlog));
        let mut ticking = pin!(tokio::time::sleep(std::time::Duration::ZERO));
        let mut set_at = self.ticked;
        while self.failed.is_none() {
            self.follow_readers();
            self.carry_out();
            self.give_back();
            if self.shared.settings.pool.is_some() {
                // Who is told that it has come, or ends, asks for the next one over the same connections.
                self.connections.have_left().await;
            }
            self.publish();
            // Earlier where somebody has come who waits, later only after a tick.
            let next = shared.instant(self.next_tick() + self.session.leeway());
            if next < ticking.deadline() || set_at != self.ticked {
                set_at = self.ticked;
                // A new one: the runtime would still wake at the time of one that is set to a later time.
                ticking.set(tokio::time::sleep_until(next));
            }
            tokio::select! {
                biased;
                Some(call) = ears.calls.recv() => self.hear(call),
                () = &mut ticking => self.tick(),
                _ = ears.reports.recv_many(&mut reports, REPORTS_AT_ONCE) => {
                    for report in reports.drain(..) {
                        self.hear(report);
                    }
                    self.bound_memory();
                    if shared.now() >= self.next_tick() {
                        self.tick();
                    }
                }
                error = &mut disk_failure => self.fail(error),
            }
        }
        self.connections.close_all();
        self.make_figures();
        self.publish();
    }

    fn hear(&mut self, report: Report) {
        let now = self.shared.now();
        match report {
            Report::Connected { id, control, rtt } => {
                if self.connections.connected(id, control) {
                    self.session.connected(id, rtt, now);
                }
            }
            Report::Arrived { id, request, range, unheard: _heard } => {
                // Else the connection was closed meanwhile, and others were asked for it.
                let position = self.session.answering(id);
                if position == Some((request, range.start)) {
                    self.session.arrived(id, range.end - range.start, now);
                    self.has_news = true;
                    // Memory may have run out before this was told.
                    for gone in self.shared.store.missing(range) {
                        self.session.forget(gone);
                    }
                }
            }
            Report::FirstArrived { id, length, unheard: _heard } => self.first_arrived(id, length, now),
            Report::CutShort { id, request } => {
                // What did not come of it is asked for again.
                if self.session.answering(id).is_some_and(|(answering, _)| answering == request) {
                    self.session.cut_short(id, now);
                }
            }
            Report::WholeEnded { id, path } => self.whole_ended(id, path, now),
            Report::Alive { id } => self.session.heard(id, now),
            Report::Ended { id, path, end } => self.ended(id, path, end, now),
            Report::Joining { path, answer } => _ = answer.send(self.group_name(path)),
            Report::Joined { id, path, number, control, rtt, answer } => {
                let is_in =
                    self.session.group_number(path) == number && self.connections.connected(id, control);
                if is_in {
                    self.groups.work(path);
                    let url = self.shared.url(path).to_owned();
                    self.shared.note(Event::Striped { connection: id.0, url });
                    self.session.joined_group(id, rtt, now);
                }
                let _ = answer.send(is_in);
            }
            Report::NotStriped { path, error } => self.stripes_no_more(path, error),
            Report::Brought { id, path, frames, broken, unheard: _heard } => {
                self.brought(id, path, frames, broken, now);
            }
            Report::ReaderCame { id, range, position } => {
                self.readers.add(id, range.clone(), position);
                self.share_memory();
                self.session.add_reader(id, range, now);
            }
            // All are looked at in any case.
            Report::ReaderMoved => {}
            Report::ReaderLeft { id } => {
                self.readers.remove(id);
                self.share_memory();
                self.session.remove_reader(id, now);
            }
            Report::Stop => self.fail(EngineError::ended()),
        }
    }

    /// The answer of a server without ranges ended: there ends the film, if it has no end yet.
    fn whole_ended(&mut self, id: ConnectionId, path: PathId, now: Time) {
        let Some((_, end)) = self.session.answering(id) else { return };
        // An earlier answer may have gone on behind this end.
        let reached = self.session.have().iter().map(|range| range.end).max().unwrap_or(0);
        let reached = reached.max(self.readers.farthest());
        if self.session.size().is_none() && reached <= end {
            self.session.size_known(end);
        }
        self.session.cut_short(id, now);
        let size = self.session.size().unwrap_or(reached);
        if size != end {
            self.ended(id, path, End::changed(&format!("it had {size} bytes and has {end} now")), now);
        }
    }

    /// A connection's life has ended.
    fn ended(&mut self, id: ConnectionId, path: PathId, end: End, now: Time) {
        self.first_is_lost_with(id);
        if !self.connections.close(id) {
            return;
        }
        let end = match end {
            End::Forbidden { after, said } if self.has_others(path, id) => {
                End::Refused(Refusal::TooMany { after, said })
            }
            End::Forbidden { said, .. } => End::Refused(Refusal::Gone(said)),
            end => end,
        };
        if let Some(error) = end.error() {
            let (url, error) = (self.shared.url(path).to_owned(), error.to_owned());
            self.shared.note(Event::ConnectionFailed { connection: id.0, url, error });
        }
        match end {
            End::Closed | End::Grown { .. } => self.session.closed(id, None, now),
            End::Failed(error) => self.session.closed(id, Some(&error), now),
            End::Refused(refusal) => {
                if matches!(refusal, Refusal::Gone(_)) {
                    self.gone.insert(path, Cure::OtherUrl);
                }
                self.session.refused(id, &refusal, now);
            }
            End::Forbidden { .. } => {}
            End::Fatal(error) => self.fail(error),
            End::Lost(error, cure) => {
                self.gone.insert(path, cure);
                let url = self.shared.url(path);
                self.shared.note(Event::ReplicaLost { url: url.to_owned(), error: error.clone() });
                self.session.closed(id, None, now);
                self.session.path_lost(path, &format!("{url}: {error}"), now);
            }
        }
    }

    /// First bytes have come that were under way when the film was opened.
    fn first_arrived(&mut self, id: ConnectionId, length: u64, now: Time) {
        self.has_news = true;
        self.session.first_arrived(id, length, now);
        if let Some(first) = &mut self.first {
            first.heard(now);
            if self.shared.store.missing(first.range.clone()).is_empty() {
                self.first = None;
            }
        }
    }

    /// A connection goes, and with it what was under way on it since the film was opened.
    fn first_is_lost_with(&mut self, id: ConnectionId) {
        if self.first.as_ref().is_some_and(|first| first.is_of(id)) {
            self.forget_first();
        }
    }

    /// What has not come of the first bytes is asked for like everything else.
    fn forget_first(&mut self) {
        for gap in self.first.take().iter().flat_map(|first| self.shared.store.missing(first.range.clone())) {
            self.session.forget(gap);
        }
    }

    /// Connections of a pool are for others once all has come, or has been asked for of others.
    fn give_back(&mut self) {
        if self.shared.settings.pool.is_none() || self.first.is_some() {
            return;
        }
        let now = self.shared.now();
        if self.session.is_complete() {
            self.probed.clear();
            self.session.release(now);
            self.carry_out();
        } else if self.session.lend(now) {
            self.lends = true;
            self.carry_out();
        }
    }

    /// Whether the path has other connections than this one.
    fn has_others(&self, path: PathId, id: ConnectionId) -> bool {
        let connections = self.session.status().connections;
        connections.iter().any(|other| other.path == path && other.connection != id)
    }

    /// When the session wants to be told of the time.
    fn next_tick(&self) -> Time {
        self.session.next_tick().max(self.ticked + SHORTEST_TICK)
    }

    /// Time passes: figures of the paths, windows, the session's clock.
    fn tick(&mut self) {
        let now = self.shared.now();
        self.ticked = now;
        // Servers count connections, also those that nobody needed soon.
        if now.since(Time::ZERO) > PROBED_ARE_KEPT {
            self.probed.clear();
        }
        if let Some(silent) =
            self.first.as_ref().and_then(|first| first.silent(self.shared.settings.silent_after, now))
        {
            match silent {
                Ok(id) => self.ended(
                    id,
                    PathId(0),
                    End::Failed("the server has been silent for too long".into()),
                    now,
                ),
                Err(()) => self.forget_first(),
            }
        }
        for (id, figures) in self.connections.figures() {
            self.session.path_figures(id, &figures, now);
        }
        if self.shared.store.is_file() {
            let available = self.session.available(FILE_READER);
            self.session.move_reader(FILE_READER, available, now);
        }
        self.session.tick(now);
    }

    /// The film cannot be got any further. Readers get what is there, then this.
    fn fail(&mut self, error: EngineError) {
        self.failed.get_or_insert(error);
    }

    /// Tells the session how far the readers are.
    fn follow_readers(&mut self) {
        let now = self.shared.now();
        for (id, position) in self.readers.moved() {
            self.session.move_reader(id, position, now);
        }
    }

    /// Readers divide the memory.
    fn share_memory(&mut self) {
        if !self.shared.store.is_file() {
            self.session.set_look_ahead(self.readers.look_ahead(self.shared.settings.memory));
        }
    }

    /// Keeps what is around the readers; what is beyond the bound goes.
    fn bound_memory(&mut self) {
        let most = self.shared.settings.memory;
        if self.shared.store.in_memory() > most.get() {
            for gone in self.shared.store.evict(&self.readers.kept(most)) {
                self.session.forget(gone);
            }
        }
    }

    /// Tells those who wait what there is.
    fn publish(&mut self) {
        let standing = Standing {
            size: self.session.size(),
            is_complete: self.session.is_complete(),
            lends: self.lends,
            wants: !self.shared.ranges && self.session.wants_something(),
            failed: self.failed.clone(),
        };
        let is_old = self.shared.now().since(self.figures_made) >= FIGURES_ARE_KEPT;
        if is_old || standing.is_complete {
            self.make_figures();
        }
        self.shared.published.stand(standing, std::mem::take(&mut self.has_news));
    }

    fn make_figures(&mut self) {
        self.figures_made = self.shared.now();
        self.shared.published.set_figures(Figures {
            session: self.session.status(),
            have: self.session.have().clone(),
            first_bytes: self.first_bytes,
        });
    }
}

/// Whatever ends it, a fault of its own too: nobody waits for what it would have got.
impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.published.fail(EngineError::ended());
    }
}

/// Waits until what has come cannot be written.
async fn failure(backlog: Option<&Arc<Backlog>>) -> EngineError {
    match backlog {
        Some(backlog) => backlog.failure().await,
        None => std::future::pending().await,
    }
}
