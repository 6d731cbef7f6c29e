//! What nobody hears of is tried again, before it is known to be lost, where little is under way.

use super::*;

/// Each way, of which the latency is eight.
const LONG_WAY: Duration = Duration::from_millis(84);
/// When the stream begins.
const BEGINS: Time = Time::from_nanos(((1 << 32) - 1_000_000) * 1000);

/// `count` packets over a path on which a datagram takes so long that leaves at a time after the beginning, or is
/// lost: what came out, and how many were sent again.
fn streamed(count: u64, interval: Duration, takes: impl Fn(Duration) -> Option<Duration>) -> (Vec<u64>, u64) {
    let path = |_, to_receiver: bool, _, now: Time| {
        if to_receiver { takes(now.since(BEGINS)) } else { Some(LONG_WAY) }
    };
    let settings = Settings { latency: LONG_WAY * 8, ..settings(true, Fec::Off) };
    let mut world = World::new(settings, 1, path);
    world.run(BEGINS);
    world.stream(0, count, interval);
    world.run(world.now + Duration::from_secs(3));
    (numbers(&world.delivered), world.sender.status().again)
}

#[test]
fn the_last_packet_before_a_pause() {
    let interval = EVERY_10_MS * 3;
    let last = interval * 49;
    let (delivered, again) =
        streamed(50, interval, |since| (since < last || since >= last + EVERY_10_MS).then_some(LONG_WAY));
    assert!(delivered.into_iter().eq(0..50));
    assert!((1..=2).contains(&again), "{again}");
}

/// A link that stands still for 0.4 s, and then brings all that waits.
#[test]
fn nothing_where_much_is_under_way() {
    let goes_on = Duration::from_millis(700);
    let (delivered, again) = streamed(100, EVERY_10_MS * 2, |since| {
        let stands = since >= Duration::from_millis(300);
        Some(if stands { LONG_WAY + (goes_on - since) } else { LONG_WAY })
    });
    assert!(delivered.into_iter().eq(0..100));
    assert_eq!(again, 0);
}
