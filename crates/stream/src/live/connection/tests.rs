//! What a connection makes of reports, and of silence.

use super::super::wire::RateReport;
use super::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn connection() -> Connection {
    Connection::new(LinkId(0), Duration::from_millis(20))
}

fn report(arrived: &[(u32, u16)]) -> Report {
    Report { arrived: arrived.to_vec(), ..Report::default() }
}

#[test]
fn a_later_datagram_shows_a_loss() {
    let mut connection = connection();
    for media in 0..4 {
        connection.send(0, Some(media), true, at(media));
    }
    assert!(connection.report(&report(&[(1, 2)]), false, at(10)).0.is_empty());
    assert_eq!(connection.report(&report(&[(3, 1), (1, 2)]), false, at(12)).0, [2]);
    assert_eq!(connection.totals(), (4, 1));
}

#[test]
fn where_one_was_overtaken_three_later_datagrams_or_a_long_time_show_a_loss() {
    let mut connection = connection();
    connection.send(0, Some(100), true, at(0));
    connection.send(0, Some(101), true, at(0));
    connection.send(0, Some(2), true, at(1));
    assert_eq!(connection.report(&report(&[(1, 1)]), false, at(1)).0, [100]);
    assert!(connection.report(&report(&[(1, 2)]), false, at(1)).0.is_empty());
    for media in 3..8 {
        connection.send(0, Some(media), true, at(media));
    }
    assert!(connection.report(&report(&[(4, 2), (2, 1)]), false, at(10)).0.is_empty());
    assert!(connection.report(&report(&[(6, 1), (4, 2), (2, 1)]), false, at(12)).0.is_empty());
    // 5 and 7 are out, 3 arrived; 5 is lost when 22.5 ms have passed since it left.
    assert_eq!(connection.report(&report(&[(6, 1)]), false, at(28)).0, [5]);
    connection.send(0, Some(8), true, at(29));
    connection.send(0, Some(9), true, at(29));
    connection.send(0, Some(10), true, at(29));
    assert_eq!(connection.report(&report(&[(10, 3)]), false, at(29)).0, [7]);
    assert_eq!(connection.totals(), (11, 3));
}

#[test]
fn a_silent_connection_is_told_within_a_second_and_comes_back() {
    let mut connection = connection();
    connection.send(0, Some(1), true, at(0));
    connection.send(0, Some(2), true, at(10));
    assert_eq!(connection.deadline(), at(100));
    assert!(connection.tick(at(99)).is_empty() && !connection.is_silent());
    assert_eq!(connection.tick(at(100)), [1, 2]);
    assert!(connection.is_silent());
    connection.report(&report(&[]), false, at(400));
    assert!(!connection.is_silent());
}

#[test]
fn reports_of_what_was_not_sent_change_nothing() {
    let mut connection = connection();
    connection.send(0, Some(1), true, at(0));
    let rate = RateReport {
        timestamp: 4_000_000_000,
        delay: Duration::ZERO,
        receive_rate: Rate::MAX,
        loss_event_rate: 0.0,
    };
    let wrong = Report { rate: Some(rate), ..report(&[(1000, 500), (u32::MAX, 9)]) };
    assert!(connection.report(&wrong, false, at(10)).0.is_empty());
    assert!(!connection.is_ready() && connection.outstanding.len() == 1);
}

#[test]
fn what_is_under_way_is_bounded() {
    let mut connection = connection();
    for media in 0..MOST_OUTSTANDING as u64 {
        assert_eq!(connection.send(0, Some(media), true, at(0)).1, None);
    }
    assert_eq!(connection.send(0, Some(0), true, at(0)).1, Some(0));
}
