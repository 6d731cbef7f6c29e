//! What a connection makes of reports, and of silence.

use anabranch_protocol::live::wire::RateReport;

use super::*;

const LATENCY: Duration = Duration::from_millis(400);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn connection() -> Connection {
    Connection::new(UplinkId(0), Duration::from_millis(20), false)
}

/// A datagram with this media packet leaves, and more waits. Answers with what is taken for lost since.
fn send(connection: &mut Connection, media: u64, now: Time) -> Option<u64> {
    connection.send(0, Load::Media(media), Width::Narrow, true, now, |_| vec![0; 1329]).1
}

fn probe(connection: &mut Connection, now: Time) {
    connection.send(0, Load::Probe, Width::Narrow, false, now, |_| vec![0; 9]);
}

fn report(arrived: &[(u32, u16)]) -> Report {
    Report { arrived: arrived.to_vec(), ..Report::default() }
}

#[test]
fn a_later_datagram_shows_a_loss() {
    let mut connection = connection();
    for media in 0..4 {
        send(&mut connection, media, at(media));
    }
    assert!(connection.report(&report(&[(1, 2)]), false, LATENCY, at(10)).0.is_empty());
    assert_eq!(connection.report(&report(&[(3, 1), (1, 2)]), false, LATENCY, at(12)).0, [2]);
    assert_eq!(connection.totals(), (4, 1));
}

#[test]
fn where_one_was_overtaken_three_later_datagrams_or_a_long_time_show_a_loss() {
    let mut connection = connection();
    send(&mut connection, 100, at(0));
    send(&mut connection, 101, at(0));
    send(&mut connection, 2, at(1));
    assert_eq!(connection.report(&report(&[(1, 1)]), false, LATENCY, at(1)).0, [100]);
    assert!(connection.report(&report(&[(1, 2)]), false, LATENCY, at(1)).0.is_empty());
    for media in 3..8 {
        send(&mut connection, media, at(media));
    }
    assert!(connection.report(&report(&[(4, 2), (2, 1)]), false, LATENCY, at(10)).0.is_empty());
    assert!(connection.report(&report(&[(6, 1), (4, 2), (2, 1)]), false, LATENCY, at(12)).0.is_empty());
    // 5 and 7 are out, 3 arrived; 5 is lost when 22.5 ms have passed since it left.
    assert_eq!(connection.report(&report(&[(6, 1)]), false, LATENCY, at(28)).0, [5]);
    send(&mut connection, 8, at(29));
    send(&mut connection, 9, at(29));
    send(&mut connection, 10, at(29));
    assert_eq!(connection.report(&report(&[(10, 3)]), false, LATENCY, at(29)).0, [7]);
    assert_eq!(connection.totals(), (11, 3));
}

/// The newest two have arrived and are not waited for any more when a report tells of all four.
#[test]
fn while_the_stream_pauses_a_late_datagram_counts_as_arrived() {
    let mut connection = connection();
    send(&mut connection, 0, at(0));
    send(&mut connection, 1, at(0));
    send(&mut connection, 2, at(0));
    // One overtook another: from now on three later ones show a loss.
    assert_eq!(connection.report(&report(&[(1, 1)]), false, LATENCY, at(1)).0, [0]);
    assert!(connection.report(&report(&[(1, 2)]), false, LATENCY, at(1)).0.is_empty());
    send(&mut connection, 3, at(1));
    assert!(connection.report(&report(&[(3, 1)]), false, LATENCY, at(10)).0.is_empty());
    assert!(connection.report(&report(&[(3, 4)]), false, LATENCY, at(12)).0.is_empty());
    assert!(connection.outstanding.is_empty() && connection.lost_at() == Time::NEVER);
    assert!(connection.tick(at(1000)).is_empty());
}

#[test]
fn a_silent_connection_is_told_within_a_second_and_comes_back() {
    let mut connection = connection();
    send(&mut connection, 1, at(0));
    send(&mut connection, 2, at(10));
    assert!(connection.take_overdue(at(99)).is_empty());
    assert!(connection.deadline() <= at(100));
    assert!(connection.tick(at(99)).is_empty() && !connection.is_silent());
    assert_eq!(connection.tick(at(100)), [1, 2]);
    assert!(connection.is_silent());
    // A probe, and one packet behind it: the rate has nothing to say.
    assert!(connection.probe_at() <= at(100) && connection.next_send() > Time::ZERO);
    connection.probed(at(100));
    assert_eq!((connection.next_send(), connection.probe_at()), (Time::ZERO, at(350)));
    send(&mut connection, 3, at(101));
    assert!(connection.next_send() > Time::ZERO);
    connection.probed(at(350));
    connection.report(&report(&[]), false, LATENCY, at(400));
    assert!(!connection.is_silent() && connection.next_send() > Time::ZERO);
}

/// A report that measures the round trip: 10 ms.
fn measured(at_millis: u64, arrived: &[(u32, u16)]) -> Report {
    let rate = RateReport {
        timestamp: low_bits(micros(at(at_millis - 10))),
        delay: Duration::ZERO,
        receive_rate: Rate::from_bps(1_000_000),
        loss_event_rate: 0.0,
    };
    Report { rate: Some(rate), ..report(arrived) }
}

#[test]
fn after_a_silence_probes_go_between_the_others_until_one_of_these_arrives() {
    let mut connection = connection();
    send(&mut connection, 0, at(0));
    connection.report(&measured(10, &[(0, 1)]), false, LATENCY, at(10));
    assert_eq!(connection.probe_at(), Time::NEVER);
    send(&mut connection, 1, at(20));
    assert_eq!(connection.tick(at(200)), [1]);
    // One at once, the next a quarter of a second later.
    assert_eq!(connection.probe_at(), Time::ZERO);
    connection.probed(at(200));
    probe(&mut connection, at(200));
    assert_eq!(connection.probe_at(), at(450));
    connection.report(&measured(210, &[(2, 1)]), false, LATENCY, at(210));
    for media in 2..6 {
        assert_eq!(connection.probe_at(), Time::NEVER);
        send(&mut connection, media, at(220));
        if connection.probe_at() == Time::ZERO {
            connection.probed(at(220));
            probe(&mut connection, at(220));
        }
    }
    // 3 and 4 are media, 5 a probe; what carried something arrives.
    connection.report(&measured(230, &[(5, 1)]), false, LATENCY, at(230));
    assert!(connection.trial.is_some());
    connection.report(&measured(232, &[(8, 1), (6, 1)]), false, LATENCY, at(232));
    assert!(connection.trial.is_none());
}

#[test]
fn a_trial_ends_by_itself() {
    let mut connection = connection();
    send(&mut connection, 0, at(0));
    connection.report(&measured(10, &[(0, 1)]), false, LATENCY, at(10));
    send(&mut connection, 1, at(20));
    connection.tick(at(200));
    connection.report(&measured(210, &[]), false, LATENCY, at(210));
    let probes = (0..100).filter(|media| {
        send(&mut connection, 2 + media, at(220));
        let is_due = connection.probe_at() == Time::ZERO;
        if is_due {
            connection.probed(at(220));
            probe(&mut connection, at(220));
        }
        is_due
    });
    assert_eq!(probes.count(), usize::from(MOST_TRIED));
}

#[test]
fn reports_of_what_was_not_sent_change_nothing() {
    let mut connection = connection();
    send(&mut connection, 1, at(0));
    let rate = RateReport {
        timestamp: 4_000_000_000,
        delay: Duration::ZERO,
        receive_rate: Rate::MAX,
        loss_event_rate: 0.0,
    };
    let wrong = Report { rate: Some(rate), ..report(&[(1000, 500), (u32::MAX, 9)]) };
    assert!(connection.report(&wrong, false, LATENCY, at(10)).0.is_empty());
    assert_eq!((connection.round_trips.least(), connection.outstanding.len()), (None, 1));
}

#[test]
fn what_is_under_way_is_bounded() {
    let mut connection = connection();
    for media in 0..MOST_OUTSTANDING as u64 {
        assert_eq!(send(&mut connection, media, at(0)), None);
    }
    assert_eq!(send(&mut connection, 0, at(0)), Some(0));
}

#[test]
fn what_nobody_heard_of_for_a_round_trip_and_a_report_is_overdue_once() {
    let mut connection = Connection::new(UplinkId(0), Duration::from_millis(80), false);
    for media in 0..3 {
        send(&mut connection, media, at(media));
    }
    assert!(connection.report(&report(&[(0, 1)]), false, LATENCY, at(80)).0.is_empty());
    // 80 ms, an eighth of it, and a report after another round trip.
    assert_eq!(connection.overdue_at(), at(171));
    assert!(connection.take_overdue(at(170)).is_empty());
    assert_eq!((connection.take_overdue(at(171)), connection.take_overdue(at(171))), (vec![1], vec![]));
    assert_eq!((connection.take_overdue(at(172)), connection.overdue_at()), (vec![2], Time::NEVER));
    // A later one arrives: what is missing before it is lost.
    send(&mut connection, 3, at(180));
    assert_eq!(connection.report(&report(&[(3, 1), (0, 1)]), false, LATENCY, at(260)).0, [1, 2]);
    assert!(connection.take_overdue(at(1000)).is_empty());
}

/// Over a short way reports are rarer than round trips.
#[test]
fn nothing_is_overdue_within_a_tenth_of_a_second() {
    let mut connection = Connection::new(UplinkId(0), Duration::from_millis(1), false);
    send(&mut connection, 0, at(0));
    assert_eq!(connection.overdue_at(), at(100));
}
