//! Striping sessions in virtual time: the real sender, connections with a rate and a window each, and half a
//! round trip between the two.

use anabranch_protocol::stripe::{Block, Striper};
use anabranch_testkit::Events;
use anabranch_units::Bytes;
use proptest::prelude::*;

use super::super::testing::{config, film, play};
use super::super::{Pace, PathFigures};
use super::*;
use crate::auto::{Auto, Parameters};
use crate::content::ReaderId;
use crate::control::RateController;
use crate::multitcp::{self, Basic};

const STEP: Duration = Duration::from_millis(10);
const ONE_WAY: Duration = Duration::from_millis(30);
/// What a server's socket holds in front of the network.
const SEND_BUFFER: u64 = 32 * 1024;

enum Sent {
    Block(Block),
    Synced(u64, Vec<Range<u64>>),
}

struct Wire {
    up: Option<Time>,
    rate: Rate,
    window: Option<Bytes>,
    /// When the link is free again.
    free: Time,
    on_the_way: Events<Sent>,
    leaving: bool,
}

impl Wire {
    fn rate(&self) -> Rate {
        let limit = self.window.map(|window| Rate::of(window, ONE_WAY * 2));
        limit.map_or(self.rate, |limit| limit.min(self.rate))
    }
}

struct World {
    session: Session,
    size: u64,
    striper: Striper,
    /// Of connections opened in this order; later ones have the last.
    rates: Vec<Rate>,
    wires: BTreeMap<ConnectionId, Wire>,
    orders: Events<Frame<'static>>,
    reader: ReaderId,
    now: Time,
    delivered: BTreeMap<ConnectionId, u64>,
    error: Option<String>,
}

fn basic(connections: u32) -> Box<dyn RateController> {
    Box::new(Basic::new(multitcp::Parameters { connections, ..multitcp::Parameters::TABLE_8_1 }))
}

fn auto(at_start: usize) -> Box<dyn RateController> {
    Box::new(Auto::new(Parameters { at_start, ..Parameters::default() }))
}

impl World {
    fn new(size: u64, pace: Pace, controller: Box<dyn RateController>, kbps: &[u64]) -> Self {
        let mut session = Session::new(config(size, 1, controller, pace), Time::ZERO);
        session.add_reader(ReaderId(0), 0..size, Time::ZERO);
        session.start(Time::ZERO);
        Self {
            session,
            size,
            striper: Striper::new(size),
            rates: kbps.iter().map(|kbps| Rate::from_kbps(*kbps)).collect(),
            wires: BTreeMap::new(),
            orders: Events::default(),
            reader: ReaderId(0),
            now: Time::ZERO,
            delivered: BTreeMap::new(),
            error: None,
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll_action() {
            match action {
                Action::Open { connection, .. } => {
                    let index = (connection.0 as usize).min(self.rates.len() - 1);
                    let wire = Wire {
                        up: Some(self.now + ONE_WAY * 2),
                        rate: self.rates[index],
                        window: None,
                        free: self.now,
                        on_the_way: Events::default(),
                        leaving: false,
                    };
                    self.wires.insert(connection, wire);
                }
                Action::Close { connection, .. } => {
                    self.wires.remove(&connection);
                    self.striper.closed(connection);
                }
                Action::Order { connection, frame, .. } => {
                    assert!(
                        self.wires.get(&connection).is_some_and(|wire| wire.up.is_none() && !wire.leaving)
                    );
                    self.orders.put(self.now + ONE_WAY, frame);
                }
                Action::Leave { connection, .. } => {
                    self.wires.get_mut(&connection).expect("it is there").leaving = true;
                    self.striper.closed(connection);
                }
                Action::SetWindow { connection, window, .. } => {
                    if let Some(wire) = self.wires.get_mut(&connection) {
                        wire.window = window;
                    }
                }
                Action::Request { .. } => panic!("the server stripes"),
                Action::LimitRate(_) | Action::Waiting { .. } => {}
                Action::Fail { error } => self.error = Some(error),
            }
        }
        if self.wires.is_empty() {
            // The server's group ends with its last connection.
            self.striper = Striper::new(self.size);
            self.orders = Events::default();
        }
    }

    /// The connection breaks, with all that is on it.
    fn kill(&mut self, connection: ConnectionId) {
        self.wires.remove(&connection);
        self.striper.closed(connection);
        if !self.wires.values().any(|wire| wire.up.is_none() && !wire.leaving) {
            self.striper = Striper::new(self.size);
            self.orders = Events::default();
            self.wires.values().filter(|wire| wire.up.is_none()).for_each(|wire| assert!(wire.leaving));
        }
        self.session.closed(connection, Some("reset"), self.now);
        self.act();
    }

    fn serve(&mut self) {
        let now = self.now;
        while let Some(order) = self.orders.due(now) {
            match order {
                Frame::Want { range, priority } => self.striper.want(range, priority).expect("room"),
                Frame::Cancel { range } => self.striper.cancel(&range).expect("room"),
                Frame::Sync { mark } => {
                    let queued: Vec<_> = self.striper.queued().cloned().collect();
                    for wire in self.wires.values_mut().filter(|wire| wire.up.is_none() && !wire.leaving) {
                        wire.free = wire.free.max(now);
                        wire.on_the_way.put(wire.free + ONE_WAY, Sent::Synced(mark, queued.clone()));
                    }
                }
                other => panic!("a session orders no {other:?}"),
            }
        }
        let wires = &mut self.wires;
        while let Some((connection, block)) = self.striper.next_block(|id| {
            let wire = &wires[&id];
            let waiting = wire.rate().amount_in(wire.free.since(now));
            !wire.rate().is_zero() && waiting.get() < SEND_BUFFER
        }) {
            let wire = wires.get_mut(&connection).expect("it is there");
            let length = Bytes::new(block.range.end - block.range.start);
            wire.free = wire.free.max(now) + wire.rate().time_for(length);
            wire.on_the_way.put(wire.free + ONE_WAY, Sent::Block(block));
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        let ids: Vec<_> = self.wires.keys().copied().collect();
        for id in ids {
            let Some(wire) = self.wires.get_mut(&id) else { continue };
            if let Some(up) = wire.up {
                if up <= now {
                    wire.up = None;
                    self.striper.connected(id);
                    self.session.joined_group(id, ONE_WAY * 2, now);
                    self.act();
                }
                continue;
            }
            while let Some(wire) = self.wires.get_mut(&id)
                && !wire.rate.is_zero()
                && let Some(sent) = wire.on_the_way.due(now)
            {
                self.session.heard(id, now);
                match sent {
                    Sent::Block(Block { sequence, range }) => {
                        *self.delivered.entry(id).or_default() += range.end - range.start;
                        self.session.block_arrived(id, sequence, range, now).expect("a correct server");
                    }
                    Sent::Synced(mark, queued) => {
                        self.session.synced(id, mark, &queued, now).expect("a correct server");
                    }
                }
                self.act();
            }
            if self.wires.get(&id).is_some_and(|wire| wire.leaving && wire.on_the_way.is_empty()) {
                self.wires.remove(&id);
                self.session.closed(id, None, now);
                self.act();
            }
        }
        self.serve();
        let ids: Vec<_> = self.wires.keys().copied().collect();
        for id in ids {
            let figures =
                PathFigures { rtt: ONE_WAY * 2, packet_size: Bytes::new(1448), ..PathFigures::default() };
            self.session.path_figures(id, &figures, now);
        }
        let available = self.session.available(self.reader);
        self.session.move_reader(self.reader, available, now);
        self.session.tick(now);
        self.act();
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis / 10 {
            if self.session.is_complete() || self.error.is_some() {
                return;
            }
            self.step();
        }
    }
}

#[test]
fn a_film_over_three_connections_of_which_one_dies() {
    let mut world = World::new(film(60, 3000), play(3000), basic(3), &[1500, 1500, 1500]);
    world.run(20_000);
    world.kill(ConnectionId(1));
    world.run(100_000);
    let status = world.session.status();
    assert!(world.session.is_complete(), "{status:?}");
    assert_eq!(status.playback.stalls, 0, "{status:?}");
    assert!(status.totals.rerequested > 0 && status.totals.rerequested < 200_000, "{status:?}");
    assert!(status.totals.duplicate < 100_000, "{status:?}");
}

#[test]
fn as_fast_as_all_connections_together_bring_it() {
    let size = 10_000_000;
    let mut world = World::new(size, Pace::Max, basic(3), &[8000, 3000, 1000]);
    world.run(60_000);
    assert!(world.session.is_complete());
    let best = Rate::from_kbps(12_000).time_for(Bytes::new(size));
    assert!(world.now.since(Time::ZERO) < best * 5 / 4, "{} against {best}", world.now);
    assert!(world.session.status().totals.duplicate < size / 50, "{:?}", world.session.status());
}

#[test]
fn a_connection_that_hangs_holds_nobody_up() {
    let mut world = World::new(film(60, 2000), play(2000), basic(3), &[2000, 2000, 2000]);
    world.run(10_000);
    world.wires.get_mut(&ConnectionId(1)).unwrap().rate = Rate::ZERO;
    world.run(200_000);
    let status = world.session.status();
    assert!(world.session.is_complete(), "{status:?}");
    assert_eq!(status.playback.stalls, 0, "{status:?}");
}

#[test]
fn a_seek_cancels_and_comes_first() {
    let size = film(600, 2000);
    let mut world = World::new(size, Pace::Max, basic(2), &[2000, 2000]);
    world.run(5_000);
    let (target, now) = (size / 2, world.now);
    world.session.remove_reader(world.reader, now);
    world.reader = ReaderId(1);
    world.session.add_reader(world.reader, target..size, now);
    world.act();
    world.run(500);
    assert!(world.session.have().contains(&(target..target + 50_000)), "{:?}", world.session.status());
    let behind: u64 = world.striper.queued().filter(|range| range.start < target).count() as u64;
    assert_eq!(behind, 0, "nothing before the seek is queued any more");
    assert_eq!(world.delivered.len(), 2);
}

#[test]
fn shares_follow_the_windows() {
    let mut world = World::new(film(60, 20_000), Pace::Max, basic(2), &[50_000, 50_000]);
    world.run(200);
    let windows = [Bytes::kib(48), Bytes::kib(16)];
    world.delivered.clear();
    for _ in 0..500 {
        for (wire, window) in world.wires.values_mut().zip(windows) {
            wire.window = Some(window);
        }
        world.step();
    }
    let [one, two] = [0, 1].map(|id| world.delivered[&ConnectionId(id)] as f64);
    assert!((2.7..3.3).contains(&(one / two)), "{one} and {two}");
}

#[test]
fn auto_gives_connections_back_without_losing_anything() {
    let mut world = World::new(film(60, 1000), play(1000), auto(3), &[4000]);
    world.run(120_000);
    let status = world.session.status();
    assert!(world.session.is_complete(), "{status:?}");
    assert_eq!(status.playback.stalls, 0);
    assert!(status.connections_mean < 2.5, "{status:?}");
    assert!(status.totals.duplicate < 100_000, "{status:?}");
}

#[test]
fn what_was_not_asked_for_is_an_error() {
    let mut world = World::new(1_000_000, Pace::Max, basic(1), &[1000]);
    world.run(100);
    let now = world.now;
    let mut arrived = |sequence, range| world.session.block_arrived(ConnectionId(0), sequence, range, now);
    assert_eq!(arrived(100, 900_000..900_001), Err(UnexpectedFrame::Unwanted));
    for sequence in 100..300 {
        // The same over and over: at most as often as it was asked for.
        if arrived(sequence, 0..16_000).is_err() {
            return;
        }
    }
    panic!("200 times the same block");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Connections of any speed that break at any moment, seeks to anywhere: every byte comes in the end.
    #[test]
    fn every_byte_comes_in_the_end(
        kbps in prop::collection::vec(300_u64..8000, 1..5), events in prop::collection::vec((0_u64..1500, 0_usize..8, any::<bool>()), 0..12),
    ) {
        let size = 3_000_000;
        let connections = u32::try_from(kbps.len()).unwrap();
        let mut world = World::new(size, play(2000), basic(connections), &kbps);
        let mut next_reader = 1;
        for (wait, which, seek) in events {
            world.run(wait);
            let now = world.now;
            if seek {
                world.session.remove_reader(world.reader, now);
                world.reader = ReaderId(next_reader);
                next_reader += 1;
                world.session.add_reader(world.reader, size / 8 * which as u64..size, now);
                world.act();
            } else {
                let up: Vec<_> = world.wires.iter().filter(|(_, wire)| wire.up.is_none()).map(|(id, _)| *id).collect();
                if let Some(id) = up.get(which) { world.kill(*id); }
            }
        }
        let now = world.now;
        world.session.remove_reader(world.reader, now);
        world.reader = ReaderId(next_reader);
        world.session.add_reader(world.reader, 0..size, now);
        world.act();
        world.run(300_000);
        prop_assert!(world.session.is_complete(), "{:?}: {:?}", world.error, world.session.status());
    }
}
