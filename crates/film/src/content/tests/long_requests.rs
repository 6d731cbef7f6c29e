//! What a connection is asked for while nobody waits.

use super::*;

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
