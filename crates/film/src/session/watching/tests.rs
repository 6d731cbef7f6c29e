//! A reader before a film of which much has arrived, and nothing more comes.

use anabranch_protocol::ranges::RangeSet;

use super::*;
use crate::session::Config;
use crate::session::testing::config;
use crate::session::testing::world::{READER, World, auto, servers};

const RATE: Rate = Rate::from_mbps(4);
const MUCH: u64 = 1 << 30;

fn world(rate: Option<Rate>, there: u64) -> World {
    let mut have = RangeSet::new();
    have.insert(0..there);
    let give_up_after = Duration::MAX;
    let config = Config { have, give_up_after, ..config(2 * MUCH, 1, auto(), Pace::Media(rate)) };
    let mut servers = servers(&[8000]);
    servers[0].silent = true;
    World::new(config, servers)
}

/// What the film is taken to need.
fn kbps(world: &World) -> u64 {
    world.session.media_rate.map_or(0, |rate| rate.as_bps() / 1000)
}

fn stalls(world: &World) -> (u32, Duration) {
    let report = world.session.status().playback;
    (report.stalls, report.stalled)
}

#[test]
fn an_unknown_rate_goes_up_and_down_with_what_the_reader_takes() {
    let mut world = world(None, MUCH);
    for kbytes in [500, 250, 1000, 500] {
        world.reads_for(25, kbytes);
        assert!((kbytes * 8 * 99 / 100..=kbytes * 8 * 101 / 100).contains(&kbps(&world)), "{}", kbps(&world));
    }
    // An uneven hand makes it neither slower and slower nor faster and faster.
    for _ in 0..60 {
        world.reads_for(1, 800);
        world.reads_for(1, 200);
        world.reads_for(1, 500);
    }
    assert!((3400..4600).contains(&kbps(&world)), "{}", kbps(&world));
}

#[test]
fn a_pause_does_not_change_an_unknown_rate() {
    let mut world = world(None, MUCH);
    world.reads_for(25, 500);
    world.reads_for(600, 0);
    world.reads_for(15, 500);
    assert!((3900..4100).contains(&kbps(&world)), "{}", kbps(&world));
}

#[test]
fn what_is_forgotten_behind_the_reader_does_not_end_the_play() {
    let mut world = world(None, MUCH);
    world.drops = true;
    world.reads_for(25, 500);
    assert!((3900..4100).contains(&kbps(&world)), "{}", kbps(&world));
    assert!(world.session.status().playback.playing);
}

#[test]
fn a_pause_is_no_stall_and_plays_nothing() {
    let mut world = world(Some(RATE), MUCH);
    world.reads_for(20, 500);
    let (played, buffer) = (world.session.playback.play_position(), world.session.status().buffer);
    world.reads_for(60, 0);
    assert_eq!((world.session.playback.play_position(), world.session.status().buffer), (played, buffer));
    assert_eq!(stalls(&world), (0, Duration::ZERO));
}

#[test]
fn the_pace_follows_a_player_at_double_speed_and_back() {
    let mut world = world(Some(RATE), MUCH);
    world.reads_for(30, 500);
    assert_eq!(kbps(&world), 4000);
    world.reads_for(30, 1000);
    assert_eq!(kbps(&world), 8000);
    assert_eq!(world.session.status().media_rate, Some(RATE));
    // Slower than the film is no reason to fall behind it.
    world.reads_for(30, 250);
    assert_eq!(kbps(&world), 4000);
    assert_eq!(stalls(&world), (0, Duration::ZERO));
}

#[test]
fn a_player_that_takes_whatever_comes_plays_by_the_clock_and_stalls_at_its_end() {
    // Ten seconds of film, taken at once.
    let mut world = world(Some(RATE), 5_000_000);
    world.reads_for(13, 100_000);
    assert_eq!((stalls(&world).0, kbps(&world)), (1, 4000));
    assert!((2.8..3.2).contains(&stalls(&world).1.as_secs_f64()), "{:?}", stalls(&world));
}

#[test]
fn a_player_that_has_gone_does_not_stall() {
    let mut world = world(Some(RATE), 5_000_000);
    world.reads_for(5, 100_000);
    world.session.remove_reader(READER, world.now);
    world.reads_for(30, 0);
    assert_eq!(stalls(&world), (0, Duration::ZERO));
}
