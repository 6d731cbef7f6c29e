//! Connections that make a stripe group: one pipe, whose bytes come in any order.

use super::*;

fn found(coordinator: &mut Coordinator, id: u32, members: u32, kib_per_second: u64) -> ConnectionId {
    let group = connect(coordinator, id, kib_per_second);
    coordinator.set_members(group, members);
    group
}

#[test]
fn a_group_is_asked_further_when_little_is_missing_wherever_the_holes_are() {
    let mut world = coordinator(32, 4);
    let group = found(&mut world, 1, 3, 4);
    ask(&mut world, group, at(0));
    ask(&mut world, group, at(0));
    assert!(world.next_request(group, at(0)).is_none(), "two segments are in flight");
    for kib in [2, 1, 5, 7] {
        world.block_arrived(group, kib * KIB..(kib + 1) * KIB, at(100));
    }
    assert_eq!(draw(&world), "1##11#1#........................");
    let more = ask(&mut world, group, at(100));
    assert_eq!((more.range.start, more.priority), (8 * KIB, QueueEnd::Back));
    check(&world);
}

#[test]
fn what_a_connection_took_down_with_it_is_asked_for_in_front() {
    let mut world = coordinator(32, 4);
    let group = found(&mut world, 1, 2, 4);
    ask(&mut world, group, at(0));
    ask(&mut world, group, at(0));
    world.block_arrived(group, KIB..4 * KIB, at(100));
    world.unassign(group, &(0..KIB));
    assert_eq!(draw(&world), ".###1111........................");
    let again = ask(&mut world, group, at(100));
    assert_eq!((again.range, again.priority), (0..KIB, QueueEnd::Front));
    check(&world);
}

#[test]
fn a_seek_takes_back_what_nobody_waits_for() {
    let mut world = coordinator(32, 4);
    let group = found(&mut world, 1, 2, 4);
    ask(&mut world, group, at(0));
    ask(&mut world, group, at(0));
    world.remove_reader(READER);
    assert!(world.take_back(group).is_empty(), "the player may go on");
    world.add_reader(ReaderId(1), 6 * KIB..32 * KIB);
    assert_eq!(world.take_back(group).first(), Some(&(0..6 * KIB)));
    assert_eq!(draw(&world), "......11........................");
    // A block that was on its way is welcome.
    assert_eq!(world.block_arrived(group, 0..KIB, at(50)).fresh, KIB);
    check(&world);
}

/// What a group misses is in pieces: only a piece is moved to another path, and the group has it no longer.
#[test]
fn a_late_groups_bytes_are_moved_and_not_shared() {
    let mut world = coordinator(32, 4);
    let (group, live) = (found(&mut world, 1, 2, 4), connect(&mut world, 2, 4));
    ask(&mut world, group, at(0));
    world.block_arrived(group, 2 * KIB..3 * KIB, at(0));
    let moved = world.reassign_late(at(3_000)).expect("silent for three seconds, due now");
    assert_eq!((moved.from, moved.to, moved.request.range), (group, live, 0..2 * KIB));
    assert_eq!(draw(&world), "22#1............................");
    check(&world);
    world.remove_connection(live);
    assert_eq!(draw(&world), "..#1............................");
    check(&world);
}

#[test]
fn a_hole_that_keeps_the_reader_waiting_is_asked_for_again() {
    let mut world = coordinator(32, 4);
    let group = found(&mut world, 1, 2, 4);
    ask(&mut world, group, at(0));
    world.block_arrived(group, KIB..2 * KIB, at(100));
    world.block_arrived(group, 3 * KIB..4 * KIB, at(100));
    assert!(world.take_back_holes(group, at(100)).is_empty(), "it is just overtaken");
    assert_eq!(world.take_back_holes(group, at(600)), [0..KIB, 2 * KIB..3 * KIB]);
    assert_eq!(ask(&mut world, group, at(600)).range, 0..KIB);
    assert!(world.take_back_holes(group, at(700)).is_empty(), "asked once, not again and again");
    check(&world);
}

proptest! {
    /// Two groups and a connection; blocks in any order, lost ones, seeks, late segments, forgotten bytes:
    /// every byte comes in the end, and the tables agree at any time.
    #[test]
    fn groups_lose_nothing(seed_steps in prop::collection::vec((0u8..9, 0u32..3, 0u64..64, 1u64..6), 0..200)) {
        let mut world = coordinator(64, 8);
        found(&mut world, 0, 3, 9);
        found(&mut world, 1, 1, 4);
        connect(&mut world, 2, 3);
        let mut now = Time::ZERO;
        for (step, which, place, amount) in seed_steps {
            now += Duration::from_millis(amount * 100);
            let pipe = ConnectionId(which);
            let range = place * KIB..(place + amount).min(64) * KIB;
            match step {
                0 | 1 => { world.next_request(pipe, now); }
                2 | 3 if which < 2 => { world.block_arrived(pipe, range, now); }
                2 | 3 => if let Some((request, _)) = world.answering(pipe) {
                    world.arrived(request, amount * KIB / 2, now);
                }
                4 if which < 2 => world.unassign(pipe, &range),
                4 => { world.reassign_late(now); }
                5 => {
                    world.remove_reader(READER);
                    world.add_reader(READER, place * KIB..64 * KIB);
                    world.take_back(pipe);
                }
                6 => { world.take_back_holes(pipe, now); }
                7 => world.forget(range),
                _ => {
                    world.remove_connection(pipe);
                    if which < 2 { found(&mut world, which, 2, amount); } else { connect(&mut world, 2, amount); }
                }
            }
            check(&world);
        }
        world.add_reader(READER, 0..64 * KIB);
        for round in 0..10_000 {
            now += Duration::from_millis(100);
            for id in 0..3 {
                let pipe = ConnectionId(id);
                while world.next_request(pipe, now).is_some() {}
                let Some((request, next)) = world.answering(pipe) else { continue };
                if id < 2 {
                    world.block_arrived(pipe, next..next + KIB / 2, now);
                } else {
                    world.arrived(request, KIB, now);
                }
            }
            if world.is_complete() && world.outstanding() == 0 { break; }
            prop_assert!(round < 9_999, "never complete: {}", draw(&world));
        }
        check(&world);
    }
}
