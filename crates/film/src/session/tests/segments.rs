//! Sessions of segments, whose connections were others' before and will be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::fixed::Fixed;

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// A segment of so many bytes, of 5 Mbps, over two connections, and what is asked for on each.
fn session(size: u64, share: Rate) -> (Session, Vec<(ConnectionId, u64)>) {
    session_of(size, share, Rate::from_mbps(5), Duration::from_secs(4))
}

/// The same of this rate, with so much to play before it.
fn session_of(size: u64, share: Rate, rate: Rate, ahead: Duration) -> (Session, Vec<(ConnectionId, u64)>) {
    let pace = Pace::AtLeast { rate, ahead, next: None };
    begun(config(size, 1, Box::new(Fixed::new(2, None)), pace), size, share)
}

/// The same of 5 Mbps, with another controller.
fn session_by(
    controller: Box<dyn RateController>,
    size: u64,
    share: Rate,
) -> (Session, Vec<(ConnectionId, u64)>) {
    let pace = Pace::AtLeast { rate: Rate::from_mbps(5), ahead: Duration::from_secs(4), next: None };
    begun(config(size, 1, controller, pace), size, share)
}

fn begun(config: Config, size: u64, share: Rate) -> (Session, Vec<(ConnectionId, u64)>) {
    let mut session = Session::new(config, Time::ZERO).lending().expecting(share);
    session.start(Time::ZERO);
    session.add_reader(READER, 0..size, Time::ZERO);
    let opened: Vec<_> = std::iter::from_fn(|| session.poll_action())
        .filter_map(|action| match action {
            Action::Open { connection, .. } => Some(connection),
            _ => None,
        })
        .collect();
    for connection in opened {
        session.connected(connection, ROUND_TRIP, Time::ZERO + ROUND_TRIP);
    }
    let asked = asked(&mut session);
    (session, asked)
}

fn asked(session: &mut Session) -> Vec<(ConnectionId, u64)> {
    std::iter::from_fn(|| session.poll_action())
        .filter_map(|action| match action {
            Action::Request { connection, range, .. } => Some((connection, range.end - range.start)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_connection_is_asked_at_first_for_half_of_what_one_brought_before() {
    let (first, second) = (ConnectionId(0), ConnectionId(1));
    let (_, known) = session(2_500_000, Rate::from_mbps(1));
    // The first one is alone then: a second of 500 kbps. The other one 0.4 s of it.
    assert_eq!(known, [(first, 62_500), (first, 62_500), (second, 25_000), (second, 25_000)]);
    let (_, unknown) = session(2_500_000, Rate::ZERO);
    assert!(unknown.iter().all(|(_, length)| *length == 128 << 10), "{unknown:?}");
}

/// What was asked of it when nothing was known is little then.
#[test]
fn the_only_connection_is_asked_for_more_while_its_rate_rises() {
    let pace = Pace::AtLeast { rate: Rate::from_kbps(800), ahead: Duration::ZERO, next: None };
    let mut session =
        Session::new(config(400_000, 1, Box::new(Fixed::new(1, None)), pace), Time::ZERO).lending();
    session.start(Time::ZERO);
    session.add_reader(READER, 0..400_000, Time::ZERO);
    let (only, now) = (ConnectionId(0), Time::ZERO + ROUND_TRIP);
    session.connected(only, ROUND_TRIP, now);
    assert_eq!(asked(&mut session), [(only, 50_000), (only, 50_000)]);
    session.arrived(only, 40_000, now + ROUND_TRIP);
    session.tick(now + ROUND_TRIP * 2);
    assert_eq!(asked(&mut session), [(only, 128 << 10)], "60 kB are under way, of 200 kB a second");
    session.tick(now + ROUND_TRIP * 3);
    assert_eq!(asked(&mut session), [], "a second of it is");
}

#[test]
fn the_only_connection_is_not_asked_for_little_later() {
    let (_, asked) = session(300_000, Rate::ZERO);
    assert_eq!(asked, [(ConnectionId(0), 131_072), (ConnectionId(0), 168_928)]);
}

#[test]
fn what_comes_of_an_answer_that_was_under_way_before_tells_what_the_connection_brings() {
    let (mut session, _) = session(2_500_000, Rate::from_mbps(1));
    let first = ConnectionId(0);
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    session.tick(at(101));
    session.first_arrived(first, 100_000, at(200));
    session.tick(at(500));
    let status = session.status();
    let rate = status.connections.iter().find(|status| status.connection == first).map(|status| status.rate);
    assert!(rate > Some(Rate::from_mbps(1)), "{rate:?}");
    assert_eq!(status.totals.received, 0, "of what was asked for here");
}

/// Its player has a minute to play, and goes by how long the segment takes.
#[test]
fn of_several_connections_one_that_becomes_slow_at_the_end_does_not_set_the_time() {
    for (last_kbps, is_helped) in [(100, true), (2000, false)] {
        let pace = Pace::AtLeast { rate: Rate::from_kbps(3000), ahead: Duration::from_secs(60), next: None };
        let size = film(4, 3000);
        let mut world =
            World::new(config(size, 2, Box::new(Fixed::new(2, None)), pace), servers(&[2000, 2000]));
        while world.now < Time::ZERO + Duration::from_secs(10) && !world.session.is_complete() {
            world.step();
            let asked: u64 = world.asked.iter().map(|(_, range)| range.end - range.start).sum();
            if asked >= size {
                world.servers[0].rate = Rate::from_kbps(last_kbps);
            }
        }
        let twice = world.session.status().totals.rerequested;
        assert_eq!((world.session.is_complete(), twice > 0), (true, is_helped), "{last_kbps} kbps: {twice}");
    }
}

/// What comes next would hold up what its player waits for.
#[test]
fn nothing_of_the_first_segment_is_lent_while_a_player_waits_until_the_end_is_a_round_trip_away() {
    for (ahead, leaves) in [(Duration::from_secs(4), true), (Duration::ZERO, false)] {
        let (mut session, _) = session_of(200_000, Rate::ZERO, Rate::from_mbps(5), ahead);
        let now = Time::ZERO + Duration::from_millis(300);
        for length in [131_072, 43_928] {
            session.arrived(ConnectionId(0), length, now);
        }
        assert_eq!(session.lend(now), leaves, "{ahead}: the rest takes 200 ms at a megabit a second");
        if !leaves {
            session.arrived(ConnectionId(0), 16_072, now);
            assert!(session.lend(now), "the rest takes 71 ms");
        }
    }
}

/// Two connections, of whoever notes whether the last interval was to tell something.
#[derive(Debug)]
struct Noting(Fixed, Arc<AtomicBool>);

impl RateController for Noting {
    fn start(&mut self) -> Vec<Order> {
        self.0.start()
    }

    fn connected(&mut self, connection: ConnectionId, path: PathId, sample: &Sample<'_>) -> Vec<Order> {
        self.0.connected(connection, path, sample)
    }

    fn closed(&mut self, _connection: ConnectionId, _now: Time) {}

    fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
        self.1.store(!sample.sated, Ordering::Relaxed);
        Vec::new()
    }

    fn interval(&self, rtt: Duration) -> Duration {
        self.0.interval(rtt)
    }
}

/// One connection fewer is not one that was lost, or one that could not be opened.
#[test]
fn what_is_left_after_something_was_lent_tells_nothing_of_the_paths() {
    let tells = Arc::new(AtomicBool::new(true));
    let noting = Box::new(Noting(Fixed::new(2, None), tells.clone()));
    let (mut session, asked) = session_by(noting, 200_000, Rate::from_mbps(1));
    let mut now = Time::ZERO + Duration::from_millis(300);
    assert!(!session.lend(now), "nobody is idle");
    for (connection, length) in asked.iter().filter(|(connection, _)| *connection == ConnectionId(1)) {
        session.arrived(*connection, *length, now);
    }
    assert!(session.lend(now));
    for _ in 0..2 {
        now += Duration::from_millis(500);
        session.tick(now);
        assert!(!tells.load(Ordering::Relaxed), "the other one brings what is left");
    }
}

#[test]
fn one_of_several_leaves_while_the_others_bring_what_is_left_and_the_last_one_stays() {
    let (mut session, asked) = session(200_000, Rate::from_mbps(1));
    assert_eq!(asked.iter().map(|(_, length)| length).sum::<u64>(), 175_000);
    let now = Time::ZERO + Duration::from_millis(300);
    assert!(!session.lend(now), "nobody is idle");
    for _ in 0..2 {
        session.arrived(ConnectionId(1), 25_000, now);
    }
    assert!(session.lend(now));
    let actions: Vec<_> = std::iter::from_fn(|| session.poll_action()).collect();
    let leaves = |action: &Action| matches!(action, Action::Close { connection: ConnectionId(1), .. });
    assert!(actions.iter().any(leaves), "{actions:?}");
    assert!(!session.is_complete() && !session.lend(now), "the last one is not idle");
    for length in [62_500, 62_500, 25_000] {
        session.arrived(ConnectionId(0), length, now);
    }
    assert!(session.is_complete());
}
