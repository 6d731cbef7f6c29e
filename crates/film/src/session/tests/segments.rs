//! Sessions of segments, whose connections were others' before and will be.

use super::*;
use crate::fixed::Fixed;

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// A segment of so many bytes, of 5 Mbps, over two connections, and what is asked for on each.
fn session(size: u64, share: Rate) -> (Session, Vec<(ConnectionId, u64)>) {
    let pace = Pace::AtLeast { rate: Rate::from_mbps(5), ahead: Duration::from_secs(4) };
    let config = config(size, 1, Box::new(Fixed::new(2, None)), pace);
    let mut session = Session::new(config, Time::ZERO).lending().expecting(share);
    session.start(Time::ZERO);
    session.add_reader(READER, 0..size, Time::ZERO);
    let opened: Vec<_> = std::iter::from_fn(|| session.poll_action())
        .filter_map(|action| match action {
            Action::Open { connection, .. } => Some(connection),
            _ => None,
        })
        .collect();
    for connection in opened {
        session.connected(connection, ROUND_TRIP, Time::ZERO + ROUND_TRIP);
    }
    let asked = asked(&mut session);
    (session, asked)
}

fn asked(session: &mut Session) -> Vec<(ConnectionId, u64)> {
    std::iter::from_fn(|| session.poll_action())
        .filter_map(|action| match action {
            Action::Request { connection, range, .. } => Some((connection, range.end - range.start)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_connection_is_asked_at_first_for_half_of_what_one_brought_before() {
    let (first, second) = (ConnectionId(0), ConnectionId(1));
    let (_, known) = session(2_500_000, Rate::from_mbps(1));
    // The first one is alone then: a second of 500 kbps. The other one 0.4 s of it.
    assert_eq!(known, [(first, 62_500), (first, 62_500), (second, 25_000), (second, 25_000)]);
    let (_, unknown) = session(2_500_000, Rate::ZERO);
    assert!(unknown.iter().all(|(_, length)| *length == 128 << 10), "{unknown:?}");
}

#[test]
fn one_of_several_leaves_while_the_others_bring_what_is_left_and_the_last_one_stays() {
    let (mut session, asked) = session(200_000, Rate::from_mbps(1));
    assert_eq!(asked.iter().map(|(_, length)| length).sum::<u64>(), 175_000);
    let now = Time::ZERO + Duration::from_millis(300);
    assert!(!session.lend(now), "nobody is idle");
    for _ in 0..2 {
        session.arrived(ConnectionId(1), 25_000, now);
    }
    assert!(session.lend(now));
    let actions: Vec<_> = std::iter::from_fn(|| session.poll_action()).collect();
    let leaves = |action: &Action| matches!(action, Action::Close { connection: ConnectionId(1), .. });
    assert!(actions.iter().any(leaves), "{actions:?}");
    assert!(!session.is_complete() && !session.lend(now), "the last one is not idle");
    for length in [62_500, 62_500, 25_000] {
        session.arrived(ConnectionId(0), length, now);
    }
    assert!(session.is_complete());
}
