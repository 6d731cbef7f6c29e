//! A sender that shares its uplinks with others, which the test plays.

use anabranch_congestion::shares::Standing;
use anabranch_congestion::vps::Weight;

use super::*;

const LINK: UplinkId = UplinkId(0);

/// Over so many links of which each loses 2 %, with more to send than TFRC is allowed; it has come to its rate.
fn world(links: u32) -> World<impl FnMut(ConnectionId, bool, u64, Time) -> Option<Duration>> {
    let path = |_, to_receiver: bool, number, _| (!to_receiver || !is_lost(number, 2)).then_some(WAY);
    let mut world = World::new(settings(true, Fec::Off), links, path);
    world.sender = world.sender.clone().with_weight(Weight::ONE);
    world.run(world.now + Duration::from_millis(1500));
    world.stream(0, 4000, Duration::from_millis(2));
    world
}

fn standing(weight: f64, allowed: Rate) -> Standing {
    Standing { weight: Weight::new(weight).unwrap(), allowed, wanted: Rate::from_mbps(50) }
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance * expected, "{value} instead of {expected}");
}

#[test]
fn one_that_shares_with_nobody_is_as_any_other() {
    let shared = world(1);
    let path = |_, to_receiver: bool, number, _| (!to_receiver || !is_lost(number, 2)).then_some(WAY);
    let mut alone = World::new(settings(true, Fec::Off), 1, path);
    alone.run(alone.now + Duration::from_millis(1500));
    assert!(alone.sender.standings(alone.now).is_empty());
    alone.stream(0, 4000, Duration::from_millis(2));
    assert_eq!(shared.sender.status(), alone.sender.status());
    assert_eq!(shared.sender.status().connections[0].share, 1.0);
}

#[test]
fn it_has_its_part_until_the_others_say_nothing_any_more() {
    let mut world = world(1);
    let own = world.sender.standings(world.now)[0].1;
    assert_eq!((own.weight, own.allowed), (Weight::ONE, world.sender.status().connections[0].allowed_rate));
    // 1324 of 1316 bytes and more in 2 ms, what waits, and a quarter more.
    assert!(own.wanted > Rate::from_mbps(6), "{}", own.wanted);
    // One that counts for three, and is allowed as much.
    world.sender.hear(LINK, 7, Some(standing(3.0, own.allowed)), world.now);
    let status = world.sender.status();
    assert_eq!(status.shares_with, 1);
    near(status.connections[0].share, 0.5, 1e-6);
    near(status.connections[0].allowed_rate.as_f64(), own.allowed.as_f64() / 2.0, 1e-6);
    // An encoder that follows hears of it at once.
    assert!(status.available_rate < own.allowed * Ratio::new(1, 2));
    world.stream(0, 600, Duration::from_millis(2));
    world.sender.standings(world.now);
    assert_eq!(world.sender.status().connections[0].share, 1.0);
    // One that goes says so.
    world.sender.hear(LINK, 7, Some(standing(3.0, own.allowed)), world.now);
    assert!(world.sender.status().connections[0].share < 0.7);
    world.sender.hear(LINK, 7, None, world.now);
    assert_eq!(world.sender.status().connections[0].share, 1.0);
}

#[test]
fn each_uplink_is_shared_by_itself() {
    let mut world = world(2);
    let own = world.sender.standings(world.now);
    assert_eq!(own.iter().map(|(link, _)| *link).collect::<Vec<_>>(), [LINK, UplinkId(1)]);
    world.sender.hear(UplinkId(1), 7, Some(standing(1.0, Rate::from_kbps(1))), world.now);
    let shares = world.sender.status().connections.iter().map(|one| one.share).collect::<Vec<_>>();
    assert!(shares[0] == 1.0 && (0.5..0.51).contains(&shares[1]), "{shares:?}");
}
