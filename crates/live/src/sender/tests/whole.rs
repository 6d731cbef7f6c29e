//! A path that carries in one piece less than what was cut for it.

use super::*;

#[test]
fn what_was_cut_before_is_sent_again_as_it_is_and_what_comes_is_shorter() {
    // Some packets before the path is known to carry less.
    let lost_from = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + Duration::from_millis(500);
    let lost_until = lost_from + Duration::from_millis(60);
    let path = |_, to_receiver: bool, _, now: Time| {
        let is_lost = to_receiver && (lost_from..lost_until).contains(&now);
        (!is_lost).then_some(WAY)
    };
    let mut world = World::new(settings(true, Fec::Off), 1, path);
    world.stream(0, 56, EVERY_10_MS);
    world.sender.set_whole(Some(1166));
    let shorter = world.sender.payload();
    assert_eq!(shorter, 1125);
    world.stream(56, 100, EVERY_10_MS);
    world.finish();
    assert_eq!(world.delivered.concat(), (0..156).map(payload).collect::<Vec<_>>().concat());
    assert!(world.delivered[56..].iter().all(|part| part.len() <= shorter));
    world.sender.set_whole(None);
    assert!(world.sender.payload() > shorter);
}
