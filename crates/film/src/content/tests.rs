//! The scheduler by itself. A world is drawn as one character a KiB: `#` received, `0`-`9` the connection
//! that was asked last, `.` nobody.

mod groups;
mod long_requests;

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
fn a_further_connection_is_asked_for_less_until_it_has_shown_what_it_brings() {
    let mut world = coordinator(16, 4);
    world.policy.first_segment = Bytes::kib(8);
    world.policy.further_segment = Bytes::kib(2);
    let first = ConnectionId(1);
    world.add_connection(first, Duration::from_millis(100), at(0));
    ask(&mut world, first, at(0));
    assert_eq!(draw(&world), "11111111........", "nobody brings anything yet");
    world.estimate(first, Rate::from_bps(4 * KIB * 8), Duration::from_millis(100));
    let second = ConnectionId(2);
    world.add_connection(second, Duration::from_millis(100), at(0));
    ask(&mut world, second, at(0));
    assert_eq!(draw(&world), "1111111122......", "what it has not brought is a hole");
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
    let policy = Policy { in_flight: InFlight::Requests(2), ..Policy::rome(Bytes::kib(1), Bytes::mib(1)) };
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
fn the_printed_rule_asks_only_who_answers_before_the_play_time() {
    let policy = Policy { missing: MissingRule::PlayTime, ..Policy::rome(Bytes::kib(1), Bytes::mib(1)) };
    let mut world = Coordinator::new(policy, Some(8 * KIB), RangeSet::new());
    world.set_media_rate(Rate::from_bps(4 * KIB * 8));
    world.add_reader(READER, 0..8 * KIB);
    let (far, near) = (connect(&mut world, 1, 4), connect(&mut world, 2, 4));
    world.estimate(far, Rate::from_kbps(100), Duration::from_millis(400));
    let requests = [ask(&mut world, far, at(0)), ask(&mut world, far, at(0))];
    // Play times 0 ms and 250 ms, both nearer than 400 ms; the other connection answers after 100 ms.
    let again = world.reassign_late(at(0)).expect("missing");
    assert_eq!((again.to, &again.request.range), (near, &requests[1].range));
    assert_eq!(world.reassign_late(at(0)), None);
}

#[test]
fn requests_by_windows_hold_two_round_trips() {
    let policy = Policy { in_flight: InFlight::Windows, ..Policy::rome(Bytes::kib(1), Bytes::mib(1)) };
    let mut world = Coordinator::new(policy, Some(64 * KIB), RangeSet::new());
    world.add_reader(READER, 0..64 * KIB);
    let (fast, slow) = (connect(&mut world, 1, 40), connect(&mut world, 2, 4));
    for (connection, most) in [(fast, 8), (slow, 2)] {
        let mut asked = 0;
        while world.next_request(connection, at(0)).is_some() {
            asked += 1;
        }
        assert_eq!(asked, most, "{connection}");
    }
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
    world.policy.in_flight = InFlight::Requests(64);
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
