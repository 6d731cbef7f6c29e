//! How often and for how much a session asks.

use std::ops::Range;

use super::*;
use crate::content::ReaderId;

const MIB: u64 = 1 << 20;

/// Requests that were made while so much was buffered, and for how long it was.
fn unhurried_requests(world: &mut World, seconds: u64) -> (Vec<Range<u64>>, f64) {
    let (mut asked, mut steps) = (Vec::new(), 0);
    for _ in 0..seconds * 50 {
        let before = world.asked.len();
        let is_unhurried =
            world.session.status().buffer.is_some_and(|buffer| buffer >= Duration::from_secs(5));
        world.step();
        if is_unhurried {
            steps += 1;
            asked.extend(world.asked[before..].iter().map(|(_, range)| range.clone()));
        }
    }
    (asked, f64::from(steps) * STEP.as_secs_f64())
}

fn several(connections: usize) -> Box<dyn RateController> {
    let parameters = Parameters::default();
    Box::new(Auto::new(Parameters { at_start: connections, most: connections, ..parameters }))
}

#[test]
fn a_film_with_a_buffer_is_asked_for_once_a_second_in_pieces_that_caches_keep() {
    for (kbps, connections) in [(800, 1), (3000, 1), (3000, 3), (8000, 2), (8000, 5), (25_000, 3)] {
        let settings = config(film(200, kbps), 1, several(connections), play(kbps));
        let mut world = World::new(settings, servers(&[kbps * 4]));
        let (asked, seconds) = unhurried_requests(&mut world, 60);
        let case = format!("{kbps} kbps over {connections}: {} in {seconds} s", asked.len());
        assert!(seconds > 45.0, "{case}");
        assert!(asked.len() as f64 <= seconds, "{case}");
        let aligned = asked.iter().filter(|range| range.start % MIB == 0).count();
        // A MiB of the slowest film is too long for its buffer.
        assert!(kbps < 3000 || aligned * 10 >= asked.len() * 8, "{case}, {aligned} aligned");
        assert_eq!(world.session.status().playback.stalls, 0, "{case}");
    }
}

#[test]
fn while_the_buffer_is_low_connections_are_asked_for_little() {
    let mut world = World::new(config(film(400, 4000), 1, several(2), play(4000)), servers(&[4100]));
    while world.session.status().buffer.is_none_or(|buffer| buffer < Duration::from_secs(4)) {
        world.step();
    }
    let longest = world.asked.iter().map(|(_, range)| range.end - range.start).max().unwrap();
    assert!(longest <= Rate::from_kbps(4100).amount_in(Duration::from_millis(500)).get(), "{longest}");
}

#[test]
fn a_driver_need_not_come_between_two_reads_while_nothing_is_urgent() {
    let mut world = World::new(config(film(200, 800), 1, several(1), play(800)), servers(&[3200]));
    assert_eq!(world.session.leeway(), Duration::ZERO, "nothing is there");
    while world.session.status().buffer.is_none_or(|buffer| buffer < Duration::from_secs(6)) {
        world.step();
    }
    assert!(world.session.leeway() >= LEEWAY);
}

#[test]
fn a_seek_waits_for_no_long_request_and_closes_each_connection_once_at_most() {
    for (seek_after, to) in [(10, 0.5), (20, 0.9), (40, 0.0), (60, 0.03)] {
        let size = film(600, 2000);
        let mut world = World::new(config(size, 1, several(2), play(2000)), servers(&[6000]));
        world.session.remove_reader(READER, Time::ZERO);
        world.session.add_reader(READER, size / 4..size, Time::ZERO);
        world.run(seek_after);
        let opened = world.opened;
        let target = (size as f64 * to) as u64;
        let now = world.now;
        world.session.remove_reader(READER, now);
        world.reader = ReaderId(1);
        world.session.add_reader(world.reader, target..size, now);
        world.act();
        while !world.session.have().contains(&(target..target + film(2, 2000))) {
            world.step();
        }
        let took = world.now.since(now);
        assert!(took < Duration::from_millis(2500), "after {seek_after} s to {to}: {took}");
        world.run(5);
        assert!(world.opened <= opened + 2, "{} after {opened}", world.opened);
        assert_eq!(world.session.status().playback.stalls, 0);
        let received = world.session.status().totals;
        assert!(received.duplicate <= received.received / 100, "{received:?}");
    }
}

#[test]
fn a_seek_before_long_requests_keeps_the_connections() {
    let size = film(300, 2000);
    let mut world = World::new(config(size, 1, auto(), play(2000)), servers(&[6000]));
    world.run(2);
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
fn with_a_full_memory_too_requests_are_whole_and_a_pause_is_no_failure() {
    let mut settings = config(film(600, 8000), 1, several(1), play(8000));
    settings.policy.look_ahead = Bytes::mib(24);
    settings.policy.segment_size.1 = Bytes::mib(2);
    let mut world = World::new(settings, servers(&[40_000]));
    // Faster than the film is the reader only as long as the player has room.
    world.reads = Some(Rate::from_kbps(8000));
    let (asked, seconds) = unhurried_requests(&mut world, 120);
    assert!(asked.len() as f64 <= seconds, "{} in {seconds} s", asked.len());
    world.reads = Some(Rate::ZERO);
    world.run(100);
    assert_eq!(world.failed, None);
}

#[test]
fn a_connection_that_hangs_with_a_long_request_makes_no_stall() {
    let mut world = World::new(config(film(300, 3000), 2, several(2), play(3000)), servers(&[6000, 6000]));
    world.run(60);
    let hung = *world.connections.keys().next().unwrap();
    world.hung.insert(hung);
    world.run(100);
    let status = world.session.status();
    assert_eq!(status.playback.stalls, 0, "{status:?}");
    assert!(status.totals.duplicate * 100 <= status.totals.received, "{status:?}");
}

#[test]
fn paths_that_become_slower_in_the_middle_of_long_requests_stall_no_more_than_with_short_ones() {
    let stalled = |unhurried_from| {
        let mut settings = config(film(300, 3000), 2, several(4), play(3000));
        settings.policy.unhurried_from = unhurried_from;
        let mut world = World::new(settings, servers(&[3000, 3000]));
        for second in 0..200 {
            for (path, server) in world.servers.iter_mut().enumerate() {
                server.rate = Rate::from_kbps(if second / 10 % 2 == path { 700 } else { 4000 });
            }
            world.run(1);
        }
        let status = world.session.status();
        assert!(status.totals.duplicate * 50 <= status.totals.received, "{status:?}");
        (status.playback.stalled, world.opened, status.totals)
    };
    let (long, short) = (stalled(Some(Duration::from_secs(5))), stalled(None));
    assert!(long.0 <= short.0, "{long:?} against {short:?}");
    // Once for each time that a path becomes slower.
    assert!(long.1 <= 4 + 20, "{long:?} against {short:?}");
}

#[test]
fn a_server_that_takes_requests_only_so_often_is_asked_no_more_often_after_a_few_refusals() {
    for (kbps, least_between) in [(800, 1000), (3000, 1000), (3000, 400), (3000, 2000)] {
        let mut world = World::new(config(film(120, kbps), 1, auto(), play(kbps)), servers(&[kbps * 4]));
        world.servers[0].least_between = Duration::from_millis(least_between);
        world.run(200);
        let case = format!("{kbps} kbps, {least_between} ms: {:?}", world.refusals);
        assert!(world.session.is_complete(), "{case}");
        assert_eq!(world.session.status().playback.stalls, 0, "{case}");
        assert!(world.refusals.len() <= 5, "{case}");
        assert!(world.refusals.iter().all(|at| *at < Time::ZERO + Duration::from_secs(20)), "{case}");
    }
}
