//! Sessions in virtual time: paths deliver at a rate, shared by their connections; nothing else is modelled.

use super::*;
use crate::auto::{Auto, Parameters};
use crate::content::Policy;
use crate::multitcp::{self, Basic};
use crate::playback;

const READER: ReaderId = ReaderId(0);
const STEP: Duration = Duration::from_millis(20);
const RTT: Duration = Duration::from_millis(60);

struct Server {
    rate: Rate,
    /// Takes connections and then says nothing.
    silent: bool,
    refuses: Option<Refusal>,
}

/// Path, when it is up, queued requests as (answer begins, bytes left).
type Wire = (PathId, Time, VecDeque<(Time, u64)>);

struct World {
    session: Session,
    servers: Vec<Server>,
    connections: BTreeMap<ConnectionId, Wire>,
    limit: Option<Rate>,
    now: Time,
    reader: ReaderId,
    opened: usize,
    failed: Option<String>,
    waited: bool,
}

fn servers(kbps: &[u64]) -> Vec<Server> {
    kbps.iter().map(|kbps| Server { rate: Rate::from_kbps(*kbps), silent: false, refuses: None }).collect()
}

fn config(size: u64, paths: usize, controller: Box<dyn RateController>, pace: Pace) -> Config {
    Config {
        policy: Policy::expected(Bytes::mib(64)),
        controller,
        pace,
        playback: playback::Parameters::default(),
        media_rate: None,
        size: Some(size),
        have: RangeSet::new(),
        ranges: true,
        path_caps: vec![8; paths],
        give_up_after: Duration::from_secs(30),
        silent_after: Duration::from_secs(8),
    }
}

fn auto() -> Box<dyn RateController> {
    Box::new(Auto::new(Parameters::default()))
}

impl World {
    fn new(config: Config, servers: Vec<Server>) -> Self {
        let size = config.size.unwrap();
        let mut session = Session::new(config, Time::ZERO);
        session.add_reader(READER, 0..size, Time::ZERO);
        session.start(Time::ZERO);
        let mut world = Self {
            session,
            servers,
            connections: BTreeMap::new(),
            limit: None,
            now: Time::ZERO,
            reader: READER,
            opened: 0,
            failed: None,
            waited: false,
        };
        world.act();
        world
    }

    fn act(&mut self) {
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

    fn step(&mut self) {
        self.now += STEP;
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
                self.servers[path.0 as usize].rate * units::Ratio::new(1, busy(path, self) as u32)
            })
            .sum();
        let scale = self.limit.map_or(1.0, |limit| limit.ratio_to(offered).min(1.0));
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
            if server.silent {
                continue;
            }
            let share = server.rate * units::Ratio::from_f64(scale / busy(path, self) as f64);
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
                if !self.connections.contains_key(&id) {
                    break;
                }
            }
        }
        let ids: Vec<_> = self.connections.keys().copied().collect();
        for id in ids {
            let unread = if scale < 1.0 { Bytes::kib(64) } else { Bytes::ZERO };
            self.session.path_figures(
                id,
                &PathFigures { rtt: RTT, packet_size: Bytes::new(1448), unread, ..PathFigures::default() },
            );
        }
        let available = self.session.available(self.reader);
        self.session.move_reader(self.reader, available, now);
        self.session.tick(now);
        self.act();
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 50 {
            if self.session.is_complete() || self.failed.is_some() {
                return;
            }
            self.step();
        }
    }
}

fn film(seconds: u64, kbps: u64) -> u64 {
    Rate::from_kbps(kbps).amount_in(Duration::from_secs(seconds)).get()
}

fn play(kbps: u64) -> Pace {
    Pace::Media(Some(Rate::from_kbps(kbps)))
}

#[test]
fn a_film_over_three_replicas_of_which_one_dies() {
    let mut world = World::new(config(film(120, 3000), 3, auto(), play(3000)), servers(&[1500, 1800, 2500]));
    world.run(30);
    world.servers[0].rate = Rate::ZERO;
    world.run(200);
    let status = world.session.status();
    assert!(world.session.is_complete(), "{status:?}");
    assert_eq!(status.playback.stalls, 0);
    assert!(status.playback.startup.unwrap() < Duration::from_secs(5), "{status:?}");
    assert!(status.totals.duplicate * 100 < status.totals.received, "{status:?}");
    assert!(world.failed.is_none());
}

#[test]
fn a_replica_that_hangs_is_worked_around() {
    let mut world = World::new(config(film(60, 2000), 2, auto(), play(2000)), servers(&[3000, 3000]));
    world.run(10);
    world.servers[0].silent = true;
    world.run(200);
    assert!(world.session.is_complete());
    assert_eq!(world.session.status().playback.stalls, 0);
}

#[test]
fn as_fast_as_it_comes_and_no_slow_source_at_the_end() {
    let size = 20_000_000;
    let controller = Box::new(Auto::new(Parameters { at_start: 2, ..Parameters::default() }));
    let mut world = World::new(config(size, 2, controller, Pace::Max), servers(&[20_000, 500]));
    world.run(100);
    assert!(world.session.is_complete());
    let best = Rate::from_kbps(20_500).time_for(Bytes::new(size));
    assert!(world.now.since(Time::ZERO) < best * 5 / 4, "{} against {best}", world.now);
}

#[test]
fn the_limit_is_told_and_held() {
    let mut world =
        World::new(config(10_000_000, 1, auto(), Pace::Limit(Rate::from_mbps(4))), servers(&[50_000]));
    world.run(60);
    assert!(world.session.is_complete());
    assert_eq!(world.limit, Some(Rate::from_mbps(4)));
    let seconds = world.now.as_secs_f64();
    assert!((19.5..21.5).contains(&seconds), "{seconds}");
}

#[test]
fn a_server_that_wants_fewer_connections_gets_fewer() {
    let basic =
        Box::new(Basic::new(multitcp::Parameters { connections: 4, ..multitcp::Parameters::TABLE_8_1 }));
    let mut world = World::new(config(film(30, 800), 1, basic, play(800)), servers(&[5000]));
    world.servers[0].refuses = Some(Refusal::TooMany(Some(Duration::from_secs(5))));
    world.run(120);
    assert!(world.session.is_complete());
    assert!(world.opened < 30, "{} connections were opened", world.opened);
}

#[test]
fn all_replicas_gone_waits_and_goes_on() {
    let mut world = World::new(config(film(60, 1000), 2, auto(), play(1000)), servers(&[2000, 2000]));
    world.run(5);
    for server in &mut world.servers {
        server.rate = Rate::ZERO;
    }
    world.run(10);
    assert!(world.waited && world.failed.is_none());
    world.servers[1].rate = Rate::from_kbps(2000);
    world.run(200);
    assert!(world.session.is_complete(), "{:?}", world.session.status());
}

#[test]
fn gives_up_with_the_last_error() {
    let mut world = World::new(config(film(600, 1000), 1, auto(), play(1000)), servers(&[2000]));
    world.run(5);
    world.servers[0].rate = Rate::ZERO;
    world.run(100);
    let error = world.failed.expect("it gives up");
    assert!(error.contains("30.0 s") && error.contains("re"), "{error}");
}

#[test]
fn a_seek_keeps_the_connections_and_is_no_stall() {
    let size = film(300, 2000);
    let mut world = World::new(config(size, 1, auto(), play(2000)), servers(&[6000]));
    world.run(10);
    let opened = world.opened;
    let target = size / 2;
    let now = world.now;
    world.session.remove_reader(READER, now);
    world.reader = ReaderId(1);
    world.session.add_reader(world.reader, target..size, now);
    world.run(5);
    assert_eq!(world.opened, opened);
    let status = world.session.status();
    assert_eq!(status.playback.stalls, 0);
    assert!(world.session.have().contains(&(target..target + film(4, 2000))), "{status:?}");
}

#[test]
fn without_ranges_one_connection_brings_all() {
    let mut settings = config(2_000_000, 1, auto(), Pace::Max);
    settings.ranges = false;
    let mut world = World::new(settings, servers(&[4000]));
    world.run(30);
    assert!(world.session.is_complete());
    assert_eq!(world.opened, 1);
}
