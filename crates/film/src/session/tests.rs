//! Sessions over paths that deliver at a rate.

mod requests;
mod segments;

use super::testing::world::{READER, STEP, World, auto, servers};
use super::testing::{config, film, play};
use super::*;
use crate::auto::{Auto, Parameters};
use crate::control::Sample;
use crate::multitcp::{self, Basic};

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
    let refusal = Refusal::TooMany { after: Some(Duration::from_secs(5)), said: "503".into() };
    world.servers[0].refuses = Some(refusal);
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
fn without_ranges_one_connection_brings_all() {
    let mut settings = config(2_000_000, 1, auto(), Pace::Max);
    settings.ranges = false;
    let mut world = World::new(settings, servers(&[4000]));
    world.run(30);
    assert!(world.session.is_complete());
    assert_eq!(world.opened, 1);
}

/// A server without ranges that cuts every answer at the same place sends what is there again for ever.
#[test]
fn a_server_that_brings_nothing_new_is_asked_seldom_and_given_up() {
    let mut settings = config(20_000_000, 1, auto(), Pace::Max);
    settings.ranges = false;
    let mut world = World::new(settings, servers(&[80_000]));
    world.servers[0].cut = Some(5_000_000);
    world.run(120);
    let error = world.failed.expect("it gives up");
    assert!(error.starts_with("nothing new arrived for 30.0 s") && error.ends_with("cut off"), "{error}");
    assert!(world.opened <= 8, "{} connections were opened", world.opened);
    // Each of the two that got as far took half a second.
    assert!(world.now < Time::ZERO + Duration::from_secs(33), "{}", world.now);
}

#[test]
fn a_long_way_back_to_where_a_server_without_ranges_was_is_no_reason_to_give_up() {
    let mut settings = config(20_000_000, 1, auto(), Pace::Max);
    settings.ranges = false;
    settings.give_up_after = Duration::from_secs(5);
    let mut world = World::new(settings, servers(&[8_000]));
    world.servers[0].cut = Some(15_000_000);
    world.run(16);
    world.servers[0].cut = None;
    world.run(60);
    assert!(world.session.is_complete(), "{:?}", world.failed);
    assert_eq!(world.opened, 2);
}

#[test]
fn with_nobody_watching_one_connection_is_held_however_long_it_takes() {
    let controllers: [Box<dyn RateController>; 2] = [
        Box::new(Auto::new(Parameters { at_start: 2, ..Parameters::default() })),
        Box::new(Basic::new(multitcp::Parameters { connections: 4, ..multitcp::Parameters::TABLE_8_1 })),
    ];
    for controller in controllers {
        let size = film(300, 2000);
        let session = Session::new(config(size, 2, controller, play(2000)), Time::ZERO);
        let mut world = World::started(session, servers(&[3000, 3000]));
        world.run(60);
        assert_eq!((world.opened, world.connections.len()), (1, 1));
        // Whoever comes gets the others as well.
        let now = world.now;
        world.session.add_reader(READER, 0..size, now);
        world.step();
        assert!(world.connections.len() >= 2, "{}", world.connections.len());
        world.run(5);
        assert!(world.session.have().run_end(0) > film(4, 2000));
    }
}

#[test]
fn a_film_of_which_little_fits_into_memory_gets_no_more_connections_on_a_perfect_path() {
    // 20 MiB of 50 Mbps are three seconds: less than B-, and all that there can be.
    let mut settings = config(film(120, 50_000), 1, auto(), play(50_000));
    settings.policy.look_ahead = Bytes::mib(20);
    let mut world = World::new(settings, servers(&[1_000_000]));
    world.reads = Some(Rate::from_kbps(50_000));
    world.run(60);
    // At the start the buffer may be filled over more than one.
    let status = world.session.status();
    assert!(status.totals.connections_most <= 3, "{status:?}");
    assert_eq!(status.playback.stalls, 0);
}

#[test]
fn a_long_download_at_a_limit_does_not_collect_connections_on_loopback() {
    let limit = Rate::from_mbps(1);
    let mut world =
        World::new(config(film(1200, 1000), 1, auto(), Pace::Limit(limit)), servers(&[1_000_000]));
    // A packet of loopback is larger than all that a connection of this rate has in flight.
    world.packet_size = Bytes::new(65_483);
    for _ in 0..10 {
        world.run(50);
        // A busy machine: little moves for two seconds.
        world.servers[0].rate = Rate::from_kbps(100);
        world.run(2);
        world.servers[0].rate = Rate::from_kbps(1_000_000);
        world.run(8);
    }
    world.run(40);
    assert!(world.connections.len() <= 2, "{} connections are left", world.connections.len());
}

#[test]
fn a_hung_connection_to_a_server_without_ranges_is_replaced() {
    let mut settings = config(4_000_000, 1, auto(), Pace::Max);
    settings.ranges = false;
    let mut world = World::new(settings, servers(&[4000]));
    world.run(2);
    world.hung.insert(ConnectionId(0));
    world.run(60);
    assert!(world.session.is_complete(), "{:?}", world.failed);
    assert_eq!(world.opened, 2);
}

#[test]
fn a_reader_that_pauses_without_ranges_does_not_lose_its_connection() {
    let mut settings = config(400_000_000, 1, auto(), Pace::Max);
    settings.ranges = false;
    settings.policy.look_ahead = Bytes::mib(1);
    let mut world = World::new(settings, servers(&[4000]));
    world.run(2);
    world.reads = Some(Rate::ZERO);
    world.run(8);
    // As in a driver, nothing is read while nobody wants anything.
    world.hung.insert(ConnectionId(0));
    world.run(60);
    assert_eq!((world.opened, &world.failed), (1, &None));
}

#[test]
fn what_a_draining_connection_brings_is_part_of_the_throughput() {
    /// Closes its first connection at the tenth measurement, and writes down what it is shown.
    #[derive(Debug, Default)]
    struct Closing(std::sync::Arc<std::sync::Mutex<Vec<(usize, Rate)>>>);
    impl RateController for Closing {
        fn start(&mut self) -> Vec<Order> {
            vec![Order { what: What::Open(None), why: "two" }; 2]
        }
        fn connected(&mut self, _: ConnectionId, _: PathId, _: &Sample<'_>) -> Vec<Order> {
            Vec::new()
        }
        fn closed(&mut self, _: ConnectionId, _: Time) {}
        fn measure(&mut self, sample: &Sample<'_>) -> Vec<Order> {
            let mut seen = self.0.lock().unwrap();
            seen.push((sample.connections.len(), sample.throughput()));
            let close = Order { what: What::Close(ConnectionId(0)), why: "one is enough" };
            if seen.len() == 10 { vec![close] } else { Vec::new() }
        }
        fn interval(&self, _: Duration) -> Duration {
            Duration::from_millis(200)
        }
    }
    let closing = Closing::default();
    let seen = closing.0.clone();
    let mut settings = config(20_000_000, 1, Box::new(closing), Pace::Max);
    // Long answers: the closed one goes on for seconds.
    settings.policy.segment_size = (Bytes::mib(2), Bytes::mib(2));
    let mut world = World::new(settings, servers(&[8000]));
    world.run(4);
    let seen = seen.lock().unwrap();
    let (before, after) = (seen[9], seen[11]);
    assert_eq!((before.0, after.0), (2, 1));
    assert!(after.1.ratio_to(before.1) > 0.9, "{} after {}", after.1, before.1);
}

#[test]
fn a_machine_too_busy_to_read_at_the_limit_opens_no_more_connections() {
    let mut world = World::new(
        config(film(600, 1000), 1, auto(), Pace::Limit(Rate::from_mbps(1))),
        servers(&[1_000_000]),
    );
    world.packet_size = Bytes::new(65_483);
    world.lags = 10;
    world.run(120);
    assert_eq!(world.opened, 1);
}

#[test]
fn a_rate_is_learnt_although_what_the_player_took_is_dropped_at_once() {
    let mut world = World::new(config(film(600, 4000), 1, auto(), Pace::Media(None)), servers(&[2000]));
    world.reads = Some(Rate::from_kbps(4000));
    world.drops = true;
    // At first the player takes everything that comes, so that nothing is left of it when the session looks.
    world.run(5);
    assert_eq!(world.session.status().media_rate, None);
    world.servers[0].rate = Rate::from_mbps(20);
    world.run(60);
    let rate = world.session.status().media_rate.expect("a rate");
    assert!((3900..=4100).contains(&(rate.as_bps() / 1000)), "{rate}");
}

/// A player of segments chooses by how fast they come.
#[test]
fn at_least_a_rate_takes_all_that_comes_and_gives_its_connections_back() {
    let pace = Pace::AtLeast { rate: Rate::from_kbps(800), ahead: Duration::ZERO, next: None };
    let mut world = World::new(config(film(4, 800), 1, auto(), pace), servers(&[8000]));
    for _ in 0..100 {
        world.step();
    }
    assert!(world.session.is_complete(), "four seconds of film come in less than two");
    assert_eq!(world.limit, None);
    world.session.release(world.now);
    world.act();
    assert!(world.connections.is_empty());
}

#[test]
fn at_least_a_rate_that_is_missed_takes_more_connections_and_sooner_the_less_there_is_to_play() {
    let after = |ahead| {
        let pace =
            Pace::AtLeast { rate: Rate::from_kbps(800), ahead: Duration::from_secs(ahead), next: None };
        let mut world = World::new(config(film(60, 800), 1, auto(), pace), servers(&[400]));
        let mut steps = 0;
        while world.opened < 2 && steps < 3000 {
            world.step();
            steps += 1;
        }
        STEP * steps
    };
    let (empty, full) = (after(0), after(40));
    assert!(empty < Duration::from_secs(5) && empty < full, "{empty} and {full}");
}

/// Its player needs all of a segment: nothing is asked for twice while something was asked for by nobody.
#[test]
fn what_is_late_in_the_middle_of_a_segment_is_got_twice_only_when_nothing_else_is_left() {
    let pace = Pace::AtLeast { rate: Rate::from_kbps(3000), ahead: Duration::ZERO, next: None };
    let size = film(8, 3000);
    let mut world = World::new(config(size, 2, auto(), pace), servers(&[200, 2000]));
    world.run(60);
    assert!(world.session.is_complete());
    let mut asked = RangeSet::new();
    let mut twice = 0;
    for (at, range) in &world.asked {
        let is_all_asked_for = asked.contains(&(0..size));
        let is_new = asked.insert(range.clone()) == range.end - range.start;
        assert!(is_new || is_all_asked_for, "{range:?} again at {at}");
        twice += u32::from(!is_new);
    }
    assert!(twice > 0, "the slow one does not set the time");
}
