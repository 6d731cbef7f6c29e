//! What nobody hears of is tried again before it is known to be lost.

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

#[test]
fn packets_of_a_burst_of_more_than_three_round_trips() {
    let burst = Duration::from_millis(540);
    assert!(delivered(100, 50, burst).into_iter().eq(0..100));
}
