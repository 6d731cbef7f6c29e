use super::*;

const PACKET: u64 = 1452;

/// A controller of a connection that is woken, and when its connection began.
fn paced() -> (Paced, Pace, Instant) {
    let now = Instant::now();
    let pace = Pace::new(now);
    pace.begin();
    let factory = PacedFactory {
        algorithm: Algorithm::Bbr,
        seed: 1,
        in_flight: InFlight::default(),
        pace: pace.clone(),
    };
    (Paced::new(factory, 1452), pace, now)
}

fn millis(millis: u64) -> std::time::Duration {
    std::time::Duration::from_millis(millis)
}

/// A flow that knows a round trip of 100 ms and has nothing in flight.
fn begun() -> (Paced, Pace, Instant) {
    let (mut paced, pace, start) = paced();
    paced.on_sent(start, PACKET, 0);
    let now = start + millis(100);
    paced.acknowledged(now, start, Bytes::new(PACKET), Duration::from_millis(100));
    paced.on_end_acks(now, 0, false, Some(0));
    (paced, pace, now)
}

#[test]
fn a_window_opens_for_each_packet_when_it_may_leave() {
    let (mut paced, pace, now) = begun();
    assert_eq!(paced.window(), OPEN);
    paced.on_sent(now, PACKET, 1);
    // Ten packets in a round trip of 100 ms, times 2.77.
    let rate = paced.pacing.unwrap().rate;
    assert!((rate.as_f64() / (2.77 * 10.0 * 1452.0 * 8.0 / 0.1) - 1.0).abs() < 1e-6, "{rate}");
    let gap = std::time::Duration::from_secs_f64(1452.0 * 8.0 / rate.as_f64());
    // What a late wake-up may make up for is two packets here: the third one waits.
    let mut sent = 1;
    while paced.window() == OPEN {
        sent += 1;
        paced.on_sent(now, PACKET, sent);
    }
    assert_eq!(sent, 3);
    let departure = pace.departure().expect("it waits");
    assert!(departure > now && departure <= now + gap, "{:?} {gap:?}", departure - now);
    pace.depart(departure);
    assert_eq!(paced.window(), OPEN);
    paced.on_sent(departure, PACKET, 4);
    // The next ones follow one by one.
    assert_eq!(paced.window(), 0);
    let next = pace.departure().expect("it waits");
    assert!((next - departure).abs_diff(gap) < std::time::Duration::from_micros(1), "{:?}", next - departure);
}

#[test]
fn nothing_is_held_back_before_somebody_wakes_the_connection() {
    let now = Instant::now();
    let pace = Pace::new(now);
    let factory = PacedFactory {
        algorithm: Algorithm::Bbr,
        seed: 1,
        in_flight: InFlight::default(),
        pace: pace.clone(),
    };
    let mut paced = Paced::new(factory, 1452);
    for number in 0..9 {
        paced.on_sent(now, PACKET, number);
        assert_eq!(paced.window(), OPEN);
    }
    paced.on_sent(now, PACKET, 9);
    assert_eq!((paced.window(), pace.departure()), (PACKET + 1, None), "ten packets are the initial window");
}

#[test]
fn a_closed_window_does_not_wait_for_a_departure() {
    let (mut paced, pace, mut now) = begun();
    let mut sent = 1;
    while paced.has_room() {
        pace.depart(now);
        paced.on_sent(now, PACKET, sent);
        now += millis(50);
        sent += 1;
    }
    // quinn lets one go where nothing is in flight by its own count.
    assert_eq!((paced.window(), pace.departure()), (PACKET + 1, None));
    assert!(paced.records.in_flight() <= paced.cwnd);
}

#[test]
fn what_was_sent_before_a_loss_event_is_one_event_and_a_mark_is_one() {
    let (mut paced, _, now) = begun();
    for number in 1..9 {
        paced.on_sent(now, PACKET, number);
    }
    let later = now + millis(100);
    paced.acknowledged(later, now, Bytes::new(PACKET), Duration::from_millis(100));
    paced.on_end_acks(later, 7 * PACKET, false, Some(8));
    paced.on_congestion_event(later, now, false, 2 * PACKET);
    let first = paced.recovery.expect("it recovers");
    assert_eq!(paced.records.in_flight(), Bytes::new(5 * PACKET));
    paced.on_congestion_event(later + millis(10), now, false, PACKET);
    assert_eq!(paced.recovery, Some(first));
    // Something sent later arrives: it is over, and a mark begins the next one and loses nothing.
    paced.on_sent(later + millis(20), PACKET, 9);
    paced.acknowledged(
        later + millis(120),
        later + millis(20),
        Bytes::new(PACKET),
        Duration::from_millis(100),
    );
    paced.on_end_acks(later + millis(120), 4 * PACKET, false, Some(9));
    assert_eq!(paced.recovery, None);
    paced.on_congestion_event(later + millis(120), later + millis(20), false, 0);
    assert!(paced.recovery.is_some());
    assert_eq!(paced.records.in_flight(), Bytes::new(4 * PACKET));
}
