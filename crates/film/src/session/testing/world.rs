//! A session in virtual time: paths deliver at a rate, shared by their connections; nothing else is modelled.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::*;
use crate::auto::{Auto, Parameters};
use crate::content::ReaderId;

pub(crate) const READER: ReaderId = ReaderId(0);
pub(crate) const STEP: Duration = Duration::from_millis(20);
const RTT: Duration = Duration::from_millis(60);

pub(crate) struct Server {
    pub(crate) rate: Rate,
    /// Takes connections and then says nothing.
    pub(crate) silent: bool,
    pub(crate) refuses: Option<Refusal>,
    /// Cuts every connection that has brought so much.
    pub(crate) cut: Option<u64>,
    /// Refuses requests that come sooner after the last one.
    pub(crate) least_between: Duration,
    /// When it took a request last.
    pub(crate) took: Option<Time>,
}

/// Path, when it is up, queued requests as (answer begins, bytes left).
pub(crate) type Wire = (PathId, Time, VecDeque<(Time, u64)>);

pub(crate) struct World {
    pub(crate) session: Session,
    pub(crate) servers: Vec<Server>,
    pub(crate) connections: BTreeMap<ConnectionId, Wire>,
    pub(crate) limit: Option<Rate>,
    pub(crate) now: Time,
    pub(crate) reader: ReaderId,
    /// What the reader takes at most; `None`: everything at once.
    pub(crate) reads: Option<Rate>,
    /// Whether what the reader took is dropped before anybody looks.
    pub(crate) drops: bool,
    pub(crate) packet_size: Bytes,
    /// The part of what the limit allows that the machine is too late to read, in percent.
    pub(crate) lags: u32,
    /// How long reading was held back by the limit.
    pub(crate) held: Duration,
    /// Connections that say nothing any more.
    pub(crate) hung: BTreeSet<ConnectionId>,
    pub(crate) opened: usize,
    /// Connections with a request that their server does not take.
    pub(crate) refused: BTreeSet<ConnectionId>,
    pub(crate) refusals: Vec<Time>,
    /// When it was asked for what.
    pub(crate) asked: Vec<(Time, Range<u64>)>,
    pub(crate) failed: Option<String>,
    pub(crate) waited: bool,
}

pub(crate) fn servers(kbps: &[u64]) -> Vec<Server> {
    let server = |kbps: &u64| Server {
        rate: Rate::from_kbps(*kbps),
        silent: false,
        refuses: None,
        cut: None,
        least_between: Duration::ZERO,
        took: None,
    };
    kbps.iter().map(server).collect()
}

pub(crate) fn auto() -> Box<dyn RateController> {
    Box::new(Auto::new(Parameters::default()))
}

impl World {
    /// A session with a reader of the whole film.
    pub(crate) fn new(config: Config, servers: Vec<Server>) -> Self {
        let size = config.size.unwrap();
        let mut session = Session::new(config, Time::ZERO);
        session.add_reader(READER, 0..size, Time::ZERO);
        Self::started(session, servers)
    }

    /// A session that has its readers, if any.
    pub(crate) fn started(mut session: Session, servers: Vec<Server>) -> Self {
        session.start(Time::ZERO);
        let mut world = Self {
            session,
            servers,
            connections: BTreeMap::new(),
            limit: None,
            now: Time::ZERO,
            reader: READER,
            reads: None,
            drops: false,
            packet_size: Bytes::new(1448),
            lags: 0,
            held: Duration::ZERO,
            hung: BTreeSet::new(),
            opened: 0,
            refused: BTreeSet::new(),
            refusals: Vec::new(),
            asked: Vec::new(),
            failed: None,
            waited: false,
        };
        world.act();
        world
    }

    pub(crate) fn act(&mut self) {
        while let Some(action) = self.session.poll_action() {
            match action {
                Action::Open { connection, path, .. } => {
                    self.opened += 1;
                    self.connections.insert(connection, (path, self.now + RTT, VecDeque::new()));
                }
                Action::Close { connection, .. } => {
                    self.connections.remove(&connection);
                }
                Action::Request { connection, range, .. } => {
                    self.asked.push((self.now, range.clone()));
                    if !self.takes(connection) {
                        self.refused.insert(connection);
                    }
                    let (.., queue) = self.connections.get_mut(&connection).expect("an open connection");
                    queue.push_back((self.now + RTT, range.end - range.start));
                }
                Action::LimitRate(rate) => self.limit = rate,
                Action::SetWindow { .. } => {}
                Action::Order { .. } | Action::Leave { .. } => panic!("no server stripes here"),
                Action::Waiting { .. } => self.waited = true,
                Action::Fail { error } => self.failed = Some(error),
            }
        }
    }

    /// Whether the server takes one more request now.
    pub(crate) fn takes(&mut self, connection: ConnectionId) -> bool {
        let path = self.connections[&connection].0;
        let server = &mut self.servers[path.0 as usize];
        let is_taken = server.took.is_none_or(|took| self.now.since(took) >= server.least_between);
        if is_taken {
            server.took = Some(self.now);
        }
        is_taken
    }

    pub(crate) fn step(&mut self) {
        self.now += STEP;
        for id in std::mem::take(&mut self.refused) {
            if self.connections.remove(&id).is_some() {
                self.refusals.push(self.now);
                let refusal = Refusal::TooMany { after: None, said: "503".into() };
                self.session.refused(id, &refusal, self.now);
                self.act();
            }
        }
        let now = self.now;
        let ids: Vec<_> = self.connections.keys().copied().collect();
        let busy = |path: PathId, world: &Self| {
            world
                .connections
                .values()
                .filter(|(on, _, queue)| *on == path && !queue.is_empty())
                .count()
                .max(1) as u64
        };
        let offered: Rate = ids
            .iter()
            .map(|id| {
                let (path, ..) = self.connections[id];
                self.servers[path.0 as usize].rate * anabranch_units::Ratio::new(1, busy(path, self) as u32)
            })
            .sum();
        let late = 1.0 - self.lags as f64 / 100.0;
        let scale = self.limit.map_or(1.0, |limit| (limit.ratio_to(offered) * late).min(1.0));
        if scale < 1.0 {
            self.held += STEP;
        }
        for id in ids {
            let Some((path, up, queue)) = self.connections.get(&id).cloned() else { continue };
            let server = &self.servers[path.0 as usize];
            if up > now - STEP {
                if up <= now {
                    if server.rate.is_zero() {
                        self.connections.remove(&id);
                        self.session.closed(id, Some("refused"), now);
                    } else {
                        self.session.connected(id, RTT, now);
                    }
                    self.act();
                }
                continue;
            }
            if server.rate.is_zero() {
                self.connections.remove(&id);
                self.session.closed(id, Some("reset"), now);
                self.act();
                continue;
            }
            if let (Some(refusal), true) = (&server.refuses, busy(path, self) > 1) {
                let refusal = refusal.clone();
                self.connections.remove(&id);
                self.session.refused(id, &refusal, now);
                self.act();
                continue;
            }
            if server.silent || self.hung.contains(&id) {
                continue;
            }
            let share = server.rate * anabranch_units::Ratio::from_f64(scale / busy(path, self) as f64);
            let cut = server.cut;
            let mut budget = share.amount_in(STEP).get();
            for (begins, left) in queue {
                let bytes = if begins <= now { budget.min(left) } else { 0 };
                if bytes == 0 {
                    break;
                }
                budget -= bytes;
                let (.., queue) = self.connections.get_mut(&id).unwrap();
                if bytes == left {
                    queue.pop_front();
                } else {
                    queue[0].1 -= bytes;
                }
                self.session.arrived(id, bytes, now);
                self.act();
                let brought = self.session.connections.get(&id).map_or(0, |connection| connection.total);
                if cut.is_some_and(|cut| brought >= cut) && self.connections.remove(&id).is_some() {
                    self.session.closed(id, Some("cut off"), now);
                    self.act();
                }
                if !self.connections.contains_key(&id) {
                    break;
                }
            }
        }
        let ids: Vec<_> = self.connections.keys().copied().collect();
        for id in ids {
            let unread = if scale < 1.0 { Bytes::kib(64) } else { Bytes::ZERO };
            let (packet_size, held) = (self.packet_size, self.held);
            let figures = PathFigures { rtt: RTT, packet_size, unread, held, ..PathFigures::default() };
            self.session.path_figures(id, &figures, now);
        }
        let available = self.session.available(self.reader);
        let position = self.session.coordinator.reader(self.reader).map_or(0, |reader| reader.position);
        let most = self.reads.map_or(u64::MAX, |rate| position + rate.amount_in(STEP).get());
        self.session.move_reader(self.reader, available.min(most), now);
        if self.drops {
            self.session.forget(0..available.min(most));
        }
        self.session.tick(now);
        self.act();
    }

    /// The reader takes at most so much for so long, and nothing else ends it.
    pub(crate) fn reads_for(&mut self, seconds: u64, kbytes_per_second: u64) {
        self.reads = Some(Rate::from_kbps(kbytes_per_second * 8));
        (0..seconds * 50).for_each(|_| self.step());
    }

    /// Until the film is there or has failed, and no longer than this.
    pub(crate) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 50 {
            if self.session.is_complete() || self.failed.is_some() {
                return;
            }
            self.step();
        }
    }
}
