//! The scheduler by itself. A world is drawn as one character a KiB: `#` received, `0`-`9` the connection
//! that was asked last, `.` nobody.

use proptest::prelude::*;

use super::*;

const KIB: u64 = 1024;
const READER: ReaderId = ReaderId(0);

/// A coordinator over `kib` KiB for a film of 8 kbps x `kib_per_second`, with 1 KiB as the smallest segment.
fn coordinator(kib: u64, kib_per_second: u64) -> Coordinator {
    let policy = Policy {
        segment_size: (Bytes::kib(1), Bytes::kib(64)),
        first_segment: Bytes::kib(2),
        segment_time: Duration::from_millis(1000),
        ..Policy::expected(Bytes::mib(1))
    };
    let mut coordinator = Coordinator::new(policy, Some(kib * KIB), RangeSet::new());
    coordinator.set_media_rate(Rate::from_bps(kib_per_second * KIB * 8));
    coordinator.add_reader(READER, 0..kib * KIB);
    coordinator
}

fn connect(coordinator: &mut Coordinator, id: u32, kib_per_second: u64) -> ConnectionId {
    let connection = ConnectionId(id);
    coordinator.add_connection(connection, Duration::from_millis(100), Time::ZERO);
    coordinator.estimate(connection, Rate::from_bps(kib_per_second * KIB * 8), Duration::from_millis(100));
    connection
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn draw(coordinator: &Coordinator) -> String {
    let kib = coordinator.size.unwrap() / KIB;
    let mut picture: Vec<char> = vec!['.'; kib as usize];
    for (id, segment) in &coordinator.segments {
        assert!(coordinator.by_start.contains(&(segment.range.start, *id)));
        let name = char::from_digit(segment.connection.0 % 10, 10).unwrap();
        for position in segment.next() / KIB..segment.range.end.div_ceil(KIB) {
            picture[position as usize] = name;
        }
    }
    for range in coordinator.have.iter() {
        for position in range.start / KIB..range.end / KIB {
            picture[position as usize] = '#';
        }
    }
    picture.into_iter().collect()
}

fn ask(coordinator: &mut Coordinator, connection: ConnectionId, now: Time) -> Request {
    coordinator.next_request(connection, now).expect("there is something to ask for")
}

#[test]
fn segments_are_in_proportion_to_what_connections_deliver() {
    let mut world = coordinator(16, 4);
    let (fast, slow) = (connect(&mut world, 1, 6), connect(&mut world, 2, 2));
    ask(&mut world, fast, at(0));
    ask(&mut world, slow, at(0));
    assert_eq!(draw(&world), "11111122........");
    ask(&mut world, fast, at(0));
    assert_eq!(draw(&world), "11111122111111..");
    assert!(world.next_request(slow, at(0)).is_some());
    assert!(world.next_request(slow, at(0)).is_none(), "two requests in flight are the bound");
}

#[test]
fn the_segment_needed_now_is_left_to_the_connection_that_makes_it() {
    let mut world = coordinator(64, 8);
    let (fast, slow) = (connect(&mut world, 1, 16), connect(&mut world, 2, 1));
    let request = ask(&mut world, slow, at(0));
    assert_eq!(request.why, "the first that this connection brings in time");
    assert!(request.range.start >= 8 * KIB, "{request:?}");
    assert_eq!(ask(&mut world, fast, at(0)).range.start, 0);
}

#[test]
fn a_lost_connections_bytes_are_asked_for_again() {
    let mut world = coordinator(8, 4);
    let (one, two) = (connect(&mut world, 1, 4), connect(&mut world, 2, 4));
    let first = ask(&mut world, one, at(0));
    world.arrived(first.id, 2 * KIB, at(500));
    assert_eq!(draw(&world), "##11....");
    world.remove_connection(one);
    assert_eq!(draw(&world), "##......");
    assert_eq!(ask(&mut world, two, at(500)).range.start, 2 * KIB);
}

#[test]
fn a_silent_connections_segment_is_handed_over() {
    let mut world = coordinator(8, 4);
    let (dead, live) = (connect(&mut world, 1, 4), connect(&mut world, 2, 4));
    let stuck = ask(&mut world, dead, at(0));
    assert_eq!(world.reassign_late(at(0)), None);
    let handed = world.reassign_late(at(1_500)).expect("silent for 1.5 s, due now");
    assert_eq!((handed.from, handed.to), (dead, live));
    assert_eq!(handed.request.range, stuck.range);
    assert_eq!(world.reassign_late(at(1_500)), None, "asked once, not again and again");
    // Both copies arrive: the bytes count once.
    assert_eq!(
        world.arrived(handed.request.id, 4 * KIB, at(1_900)),
        Arrival { fresh: 4 * KIB, duplicate: 0, complete: true }
    );
    assert_eq!(
        world.arrived(stuck.id, 4 * KIB, at(2_000)),
        Arrival { fresh: 0, duplicate: 4 * KIB, complete: true }
    );
}

#[test]
fn the_papers_rule_looks_at_the_round_trip_time() {
    let policy = Policy { requests_in_flight: 2, ..Policy::rome(Bytes::kib(1), Bytes::mib(1)) };
    let mut world = Coordinator::new(policy, Some(8 * KIB), RangeSet::new());
    world.set_media_rate(Rate::from_bps(4 * KIB * 8));
    world.add_reader(READER, 0..8 * KIB);
    let (far, near) = (connect(&mut world, 1, 4), connect(&mut world, 2, 4));
    world.estimate(far, Rate::from_kbps(100), Duration::from_millis(400));
    let requests = [ask(&mut world, far, at(0)), ask(&mut world, far, at(0))];
    // Play times 0 ms and 250 ms: both nearer than 400 ms.
    for request in &requests {
        let again = world.reassign_late(at(0)).expect("missing");
        assert_eq!((again.to, &again.request.range), (near, &request.range));
    }
    assert_eq!(world.reassign_late(at(0)), None);
}

#[test]
fn at_the_end_an_idle_connection_helps_the_slow_one() {
    let mut world = coordinator(16, 4);
    let (slow, fast) = (connect(&mut world, 1, 4), connect(&mut world, 2, 32));
    let last = ask(&mut world, slow, at(0));
    while let Some(more) = world.next_request(fast, at(0)) {
        world.arrived(more.id, more.range.end - more.range.start, at(300));
    }
    let help = world.help_at_the_end(fast, at(300)).expect("the slow one needs a second");
    assert_eq!(help.from, slow);
    assert_eq!(help.request.range.end, last.range.end);
    assert_eq!(world.help_at_the_end(fast, at(300)), None, "it has work now");
}

#[test]
fn what_is_released_stays_assigned_to_its_copy() {
    let mut world = coordinator(8, 4);
    let (dead, live) = (connect(&mut world, 1, 4), connect(&mut world, 2, 4));
    ask(&mut world, dead, at(0));
    world.reassign_late(at(1_500)).expect("handed over");
    world.remove_connection(dead);
    assert_eq!(draw(&world), "2222....");
    world.remove_connection(live);
    assert_eq!(draw(&world), "........");
}

#[test]
fn two_readers_are_served_by_need() {
    let mut world = coordinator(64, 4);
    let one = connect(&mut world, 1, 4);
    world.move_reader(READER, 0, 0);
    world.add_reader(ReaderId(1), 60 * KIB..64 * KIB);
    let first = ask(&mut world, one, at(0));
    let second = ask(&mut world, one, at(0));
    assert_eq!((first.range, second.range), (0..4 * KIB, 60 * KIB..64 * KIB));
}

#[test]
fn forgotten_bytes_are_asked_for_again_but_not_twice() {
    let mut world = coordinator(8, 4);
    let one = connect(&mut world, 1, 4);
    let first = ask(&mut world, one, at(0));
    world.arrived(first.id, 4 * KIB, at(500));
    let second = ask(&mut world, one, at(500));
    world.forget(0..6 * KIB);
    assert_eq!(draw(&world), "....1111");
    assert_eq!(second.range, 4 * KIB..8 * KIB);
    assert_eq!(ask(&mut world, one, at(500)).range, 0..4 * KIB);
}

proptest! {
    /// Whatever connections do, nothing is lost, the tables agree, and in the end everything is there.
    #[test]
    fn every_byte_comes_in_the_end(
        seed_steps in prop::collection::vec((0u8..6, 0u32..4, 1u64..6), 0..200),
        unhurried_from in prop::option::of(1u64..4),
    ) {
        let mut world = coordinator(64, 8);
        world.policy.unhurried_from = unhurried_from.map(Duration::from_secs);
        for id in 0..4 {
            connect(&mut world, id, u64::from(id) * 3 + 1);
        }
        let mut now = Time::ZERO;
        let mut last_id = 3;
        for (step, which, amount) in seed_steps {
            now += Duration::from_millis(amount * 150);
            let ids: Vec<_> = world.pipes.keys().copied().collect();
            let connection = ids[which as usize % ids.len()];
            match step {
                0 | 1 => { world.next_request(connection, now); }
                2 => if let Some((request, _)) = world.answering(connection) {
                    world.arrived(request, amount * KIB / 2, now);
                }
                3 => { world.reassign_late(now); }
                4 => { world.help_at_the_end(connection, now); }
                _ => {
                    world.remove_connection(connection);
                    last_id += 1;
                    connect(&mut world, last_id, amount);
                }
            }
            check(&world);
        }
        for round in 0..10_000 {
            now += Duration::from_millis(100);
            let ids: Vec<_> = world.pipes.keys().copied().collect();
            for id in ids {
                while world.next_request(id, now).is_some() {}
                if let Some((request, _)) = world.answering(id) {
                    world.arrived(request, KIB, now);
                }
            }
            if world.is_complete() && world.outstanding() == 0 { break; }
            prop_assert!(round < 9_999, "never complete: {}", draw(&world));
        }
        check(&world);
    }
}

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

/// What must hold at any time.
fn check(world: &Coordinator) {
    let mut claimed = world.have.clone();
    for (id, segment) in &world.segments {
        assert!(segment.range.start <= segment.next() && segment.next() < segment.range.end, "{segment:?}");
        assert!(segment.missing.iter().all(|missing| missing.end <= segment.range.end), "{segment:?}");
        if world.pipes[&segment.connection].members == 0 {
            assert_eq!(segment.missing.total(), segment.range.end - segment.next(), "in order");
        }
        assert!(world.pipes[&segment.connection].queue.contains(id));
        assert!(world.by_start.contains(&(segment.range.start, *id)));
        segment.missing.iter().for_each(|missing| {
            claimed.insert(missing);
        });
    }
    let queued: usize = world.pipes.values().map(|pipe| pipe.queue.len()).sum();
    assert_eq!((queued, world.by_start.len()), (world.segments.len(), world.segments.len()));
    assert_eq!(claimed, world.claimed, "claimed is what is there or assigned");
    for pipe in world.pipes.values() {
        let rest: u64 =
            pipe.queue.iter().map(|id| &world.segments[id]).map(|segment| segment.missing.total()).sum();
        assert_eq!(pipe.asked - pipe.arrived, rest);
    }
}

#[test]
fn misses_count_in_a_row() {
    let mut world = coordinator(64, 4);
    let connection = connect(&mut world, 0, 8);
    for _ in 0..world.policy.abandon_after - 1 {
        world.pipes.get_mut(&connection).unwrap().misses += 1;
    }
    // A segment that nobody had to help with is brought.
    let request = ask(&mut world, connection, at(0));
    world.arrived(request.id, request.range.end - request.range.start, at(100));
    world.pipes.get_mut(&connection).unwrap().misses += 1;
    assert!(!world.keeps_missing(connection));
}

#[test]
fn after_a_short_seek_what_was_left_behind_does_not_hide_what_is_late() {
    let mut world = coordinator(256, 4);
    let (slow, fast) = (connect(&mut world, 0, 1), connect(&mut world, 1, 64));
    world.policy.requests_in_flight = 64;
    world.policy.segment_size = (Bytes::kib(1), Bytes::kib(1));
    for _ in 0..40 {
        ask(&mut world, slow, at(0));
    }
    // Ten and more of its answers are of no use any more; those behind them are late.
    world.remove_reader(READER);
    world.add_reader(ReaderId(1), 12 * KIB..256 * KIB);
    let late = world.reassign_late(at(100)).expect("a late segment");
    assert_eq!((late.from, late.to), (slow, fast));
    assert!(late.request.range.start >= 12 * KIB);
}

#[test]
fn a_fresh_reader_is_asked_for_beyond_what_is_queued_for_another() {
    let mut world = coordinator(256, 4);
    let connection = connect(&mut world, 0, 4);
    ask(&mut world, connection, at(0));
    ask(&mut world, connection, at(0));
    assert_eq!(world.next_request(connection, at(0)), None);
    world.add_reader(ReaderId(1), 200 * KIB..256 * KIB);
    let request = ask(&mut world, connection, at(0));
    assert_eq!(request.range.start, 200 * KIB);
    assert!(world.brings_first_bytes(connection));
    assert_eq!(world.next_request(connection, at(0)), None);
}

/// A coordinator for a film of 8 Mbps, of which the reader has so many seconds before it.
fn buffered(seconds: u64, look_ahead: Bytes) -> Coordinator {
    let size = 1 << 30;
    let policy = Policy { unhurried_from: Some(Duration::from_secs(5)), ..Policy::expected(look_ahead) };
    let mut have = RangeSet::new();
    have.insert(0..seconds * 1_000_000);
    let mut coordinator = Coordinator::new(policy, Some(size), have);
    coordinator.set_media_rate(Rate::from_mbps(8));
    coordinator.add_reader(READER, 0..size);
    coordinator
}

proptest! {
    #[test]
    fn a_long_request_takes_a_quarter_of_its_play_time_at_most_and_ends_at_a_boundary_where_it_can(
        seconds in 5u64..60, rate in 100u64..50_000, others in 0u32..5
    ) {
        let mut world = buffered(seconds, Bytes::mib(512));
        for other in 0..others {
            connect(&mut world, other + 1, 1000);
        }
        let rate = Rate::from_kbps(rate);
        let connection = connect(&mut world, 0, 1);
        world.estimate(connection, rate, Duration::from_millis(100));
        let short = rate.amount_in(Duration::from_millis(400)).max(Bytes::kib(32)).get();
        let Range { start, end } = ask(&mut world, connection, at(0)).range;
        let most = rate.amount_in(Duration::from_secs(seconds) / 4).get();
        prop_assert!(end - start <= most.max(short), "{} of {most}", end - start);
        prop_assert!(end % (1 << 20) == 0 || most < 2 << 20 || end - start <= short, "{start}..{end}");
        prop_assert!(end - start >= short.min(most));
    }
}

#[test]
fn a_connection_is_asked_again_when_little_of_a_long_request_is_left() {
    let mut world = buffered(20, Bytes::mib(512));
    let connection = connect(&mut world, 0, 1000);
    let long = ask(&mut world, connection, at(0));
    let length = long.range.end - long.range.start;
    assert!(length >= 1 << 20, "{long:?}");
    assert!(world.next_request(connection, at(0)).is_none());
    world.arrived(long.id, length - 400 * KIB, at(1000));
    assert!(world.can_be_asked(connection));
    assert_eq!(ask(&mut world, connection, at(1000)).range.start, long.range.end);
}

#[test]
fn what_is_asked_for_at_the_end_of_the_memory_is_whole() {
    let mut world = buffered(11, Bytes::mib(12));
    let connection = connect(&mut world, 0, 1000);
    let first = ask(&mut world, connection, at(0));
    world.arrived(first.id, first.range.end - first.range.start, at(100));
    assert_eq!(first.range.end, 12 << 20, "all that there is room for");
    assert!(!world.has_work() && !world.is_wanting());
    world.move_reader(READER, 2 << 20, 0);
    assert!(world.next_request(connection, at(200)).is_none(), "room for less than a request");
    world.move_reader(READER, 3 << 20, 0);
    assert_eq!(ask(&mut world, connection, at(300)).range, 12 << 20..13 << 20);
}

/// Its end would be in time at the rate that the connection had.
#[test]
fn a_long_request_that_hangs_is_handed_over_before_its_beginning_is_late() {
    let mut world = buffered(10, Bytes::mib(512));
    let dead = connect(&mut world, 0, 4000);
    let long = ask(&mut world, dead, at(0));
    let live = connect(&mut world, 1, 4000);
    assert!(long.range.end - long.range.start > 4 << 20, "{long:?}");
    assert_eq!(world.reassign_late(at(1_000)), None);
    world.move_reader(READER, 10_000_000, 8_000_000);
    let handed = world.reassign_late(at(5_000)).expect("silent for five seconds, needed in two");
    assert_eq!((handed.to, handed.request.range), (live, long.range));
}
