//! What nobody hears of is tried again, before it is known to be lost, where little is under way.

use super::*;

/// A stream over a path of four round trips' latency, on which everything is lost that leaves within `lasts` from the
/// `first`-th packet on: the packets that came out.
fn delivered(count: u64, first: u64, lasts: Duration) -> Vec<u64> {
    let (way, interval) = (Duration::from_millis(84), EVERY_10_MS * 3);
    let begins = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + Duration::from_secs(1);
    let lost = begins + interval * first..begins + interval * first + lasts;
    let path =
        move |_, to_receiver: bool, _, now: Time| (!to_receiver || !lost.contains(&now)).then_some(way);
    let settings = Settings { latency: way * 8, ..settings(true, Fec::Off) };
    let mut world = World::new(settings, 1, path);
    world.run(begins);
    world.stream(0, count, interval);
    world.run(world.now + Duration::from_secs(3));
    numbers(&world.delivered)
}

#[test]
fn the_last_packet_before_a_pause() {
    assert!(delivered(50, 49, Duration::from_millis(10)).into_iter().eq(0..50));
}

/// A link that holds up what is sent, the later the longer, until 0.4 s have passed: nothing is doubled.
#[test]
fn nothing_where_much_is_under_way() {
    let way = Duration::from_millis(84);
    let begins = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + Duration::from_secs(1);
    let path = move |_, to_receiver: bool, _, now: Time| {
        let held = (begins + Duration::from_millis(700)).since(now);
        Some(if to_receiver && held < Duration::from_millis(400) { way + held } else { way })
    };
    let settings = Settings { latency: way * 8, ..settings(true, Fec::Off) };
    let mut world = World::new(settings, 1, path);
    world.run(begins);
    world.stream(0, 100, EVERY_10_MS * 2);
    world.run(world.now + Duration::from_secs(3));
    assert!(numbers(&world.delivered).into_iter().eq(0..100));
    assert_eq!(world.sender.status().again, 0);
}
