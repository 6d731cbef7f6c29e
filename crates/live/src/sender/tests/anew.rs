//! How a stream begins, and begins again with a receiver that knows nothing of it.

use super::*;

/// Nobody waits for a report: the handshake has shown the round trip.
#[test]
fn media_leave_at_once_as_many_as_a_window_has_in_a_round_trip() {
    let mut world = World::new(settings(true, Fec::Off), 1, |_, _, _, _| Some(WAY));
    let begins = world.now;
    for number in 0..30 {
        world.sender.push(&payload(number), begins);
    }
    world.run(begins + WAY * 2 - Duration::from_millis(1));
    let left = world.sender.status().media;
    assert!((9..=11).contains(&left), "{left}");
    world.finish();
    assert!(numbers(&world.delivered).into_iter().eq(0..30), "{:?}", world.sender.status());
}

/// The receiver was killed, and another one takes its place at once: of the half second of latency that it had with
/// it all comes again that can come in time.
#[test]
fn a_new_receiver_gets_what_the_one_before_had_with_it() {
    let mut world = World::new(settings(true, Fec::Off), 1, |_, _, _, _| Some(WAY));
    world.stream(0, 200, EVERY_10_MS);
    let before = numbers(&world.delivered);
    world.sender.connection_down(ConnectionId(0), world.now);
    world.sender.receiver_is_new(world.now);
    world.flying = Events::default();
    world.receiver = Receiver::new(LATENCY, world.sender.first_media());
    assert!(world.receiver.connection_up(ConnectionId(1)));
    world.stream(200, 5, EVERY_10_MS);
    assert!(world.sender.connection_up(ConnectionId(1), UplinkId(0), WAY * 2));
    world.delivered.clear();
    world.stream(205, 100, EVERY_10_MS);
    world.finish();
    let after = numbers(&world.delivered);
    // 50 ms, a round trip, and what the rate takes to grow.
    assert!(after[0] <= before.len() as u64 + 15, "{} after {}", after[0], before.len());
    assert!(after.iter().copied().eq(after[0]..305), "{after:?}");
}

/// The first window carries no more than the stream has. What is dropped is older than all that comes: there is one gap.
#[test]
fn what_a_new_receiver_gets_has_no_gap() {
    const HALF: Duration = Duration::from_millis(84);
    const FRAME: Duration = Duration::from_micros(17_200);
    let settings = Settings { latency: HALF * 8, ..settings(true, Fec::Off) };
    let dies = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + FRAME * 200;
    let mut world =
        World::new(settings, 1, move |id, _, _, now| (id == ConnectionId(1) || now < dies).then_some(HALF));
    world.stream(0, 270, FRAME);
    world.sender.connection_down(ConnectionId(0), world.now);
    world.sender.receiver_is_new(world.now);
    world.receiver = Receiver::new(settings.latency, world.sender.first_media());
    assert!(world.receiver.connection_up(ConnectionId(1)));
    world.stream(270, 10, FRAME);
    assert!(world.sender.connection_up(ConnectionId(1), UplinkId(0), HALF * 2));
    world.delivered.clear();
    world.stream(280, 100, FRAME);
    world.finish();
    let after = numbers(&world.delivered);
    // Three round trips of the latency; one is left for what is lost.
    assert!(after[0] <= 280 - 27 && after.iter().copied().eq(after[0]..380), "{after:?}");
}

/// A link that was dead answers the next probe: what is late by then is a quarter of a second, a round trip, and the time
/// in which a packet could be sent again; a tenth of a second is for the rate, which begins anew.
#[test]
fn after_an_outage_no_more_is_late_than_until_the_next_probe() {
    for phase in 0..10 {
        let begins = Time::ZERO + Duration::from_micros((1 << 32) - 2_000_000) + Duration::from_secs(2);
        let ends = begins + Duration::from_secs(10) + Duration::from_millis(50 * phase);
        let mut world = World::new(settings(true, Fec::Off), 1, move |_, _, _, now| {
            (now < begins || now >= ends).then_some(WAY)
        });
        world.stream(0, 1600, EVERY_10_MS);
        world.finish();
        let gone = 1600 - world.delivered.len() as u64;
        let outage = 1000 + 5 * phase - 50;
        assert!(gone <= outage + 50, "{gone} of {outage}");
    }
}

/// A link that carries so many bits per second, whole datagrams one after the other, with a queue without end.
fn serial(rate: Rate) -> impl FnMut(Time) -> Duration {
    let mut free = Time::ZERO;
    move |now| {
        free = free.max(now) + rate.time_for(packet_size());
        free.since(now)
    }
}

/// Both have the same round trip in their handshakes, the weak one by chance a shorter one: that says nothing of what they
/// carry, and 0.7 s of a queue would be too late.
#[test]
fn a_weak_link_shows_itself_before_its_queue_makes_anything_late() {
    let mut rates = [serial(Rate::from_mbps(5)), serial(Rate::from_kbps(150))];
    let mut world = World::new(settings(true, Fec::Off), 2, |id, to_receiver, _, now| {
        let queue = if to_receiver { rates[id.0 as usize](now) } else { Duration::ZERO };
        Some(Duration::from_micros(500) + queue)
    });
    world.sender = Sender::new(settings(true, Fec::Off));
    for (link, rtt) in [(0, 1100), (1, 1000)] {
        assert!(world.sender.connection_up(ConnectionId(link), UplinkId(link), Duration::from_micros(rtt)));
    }
    world.stream(0, 1000, Duration::from_millis(4));
    let weak = world.sender.status().connections[1].sent;
    assert!(weak > 0, "{weak}");
    world.finish();
    assert!(numbers(&world.delivered).into_iter().eq(0..1000), "{:?}", world.receiver.status());
    assert_eq!(world.receiver.status().counts.late, 0);
}

/// The handshake was short, and the way carries little: nobody sends on for as long as nothing is heard of the first window.
#[test]
fn no_more_than_a_window_leaves_before_the_first_report() {
    let mut rate = serial(Rate::from_kbps(150));
    let mut world = World::new(settings(true, Fec::Off), 1, |_, to_receiver, _, now| {
        Some(Duration::from_micros(500) + if to_receiver { rate(now) } else { Duration::ZERO })
    });
    world.sender = Sender::new(settings(true, Fec::Off));
    assert!(world.sender.connection_up(ConnectionId(0), UplinkId(0), Duration::from_millis(1)));
    for number in 0..100 {
        world.sender.push(&payload(number), world.now);
    }
    world.run(world.now + Duration::from_millis(39));
    assert_eq!(world.sender.status().media, 10);
}
