//! What a flow does in the course of time: states, bandwidth, queue.

use anabranch_congestion::bbr::State;
use anabranch_congestion::control::{Controller, Timeout};
use anabranch_units::Bytes;

use crate::path::{Path, SEGMENT, Source};

#[test]
fn startup_ends_on_a_plateau_and_drain_empties_the_queue() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(1000);
    let order: Vec<_> = path.states.iter().map(|(_, state)| *state).take(3).collect();
    // Drained: the first phase down is over with the acknowledgement that begins it.
    assert_eq!(order, [State::Startup, State::Drain, State::ProbeBwCruise]);
    // Ten segments double each round trip to fifty: three round trips, and three without growth; each of them
    // is longer by the queue. The draft's test wants the bandwidth within 2 %.
    assert!((250..600).contains(&path.first(State::Drain, 0)), "{:?}", path.states);
    assert!((path.bandwidth() / 1000.0 - 1.0).abs() < 0.02, "{}", path.bandwidth());
    // A window of two products leaves one of them in the queue.
    assert!(path.longest_wait <= 65_000_000, "{}", path.longest_wait);
    path.longest_wait = 0;
    path.run(1800);
    assert!(path.longest_wait < 5_000_000, "{}", path.longest_wait);
    assert_eq!(path.bbr.longterm_inflight(), None);
}

#[test]
fn startup_ends_on_losses_where_the_queue_is_short() {
    let mut path = Path::new(10_000, 50, 50);
    path.run(2000);
    let longterm = path.bbr.longterm_inflight().expect("a bound").as_f64() / SEGMENT as f64;
    // The path holds 500 segments and 50 in the queue.
    assert!((450.0..700.0).contains(&longterm), "{longterm}");
    assert!((path.bandwidth() / 10_000.0 - 1.0).abs() < 0.02, "{}", path.bandwidth());
}

#[test]
fn bandwidth_is_probed_every_two_to_three_seconds_or_as_reno_would() {
    let mut path = Path::new(5000, 100, 2000);
    path.run(20_000);
    let ups: Vec<_> =
        path.states.iter().filter(|(_, state)| *state == State::ProbeBwUp).map(|(at, _)| *at).collect();
    assert!(ups.len() >= 4, "{:?}", path.states);
    // Two to three seconds from one phase down to the next refill, and a few round trips for the probe. A
    // probe for the round trip begins a new wait, however much of the last one was over.
    for pair in ups.windows(2) {
        let between = (pair[1] - pair[0]) as f64 * 1e-9;
        assert!((2.0..6.8).contains(&between), "{between}");
    }
    assert!(ups.windows(2).any(|pair| pair[1] - pair[0] < 3_800_000_000), "{ups:?}");
    // Twenty segments of 10 ms: Reno would need twenty round trips of 10 ms and some to ask again.
    let mut path = Path::new(2000, 10, 1000);
    path.run(4000);
    let ups = path.states.iter().filter(|(_, state)| *state == State::ProbeBwUp).count();
    assert!((6..=16).contains(&ups), "{ups}");
}

#[test]
fn the_round_trip_is_probed_every_five_seconds_for_a_fifth_of_one() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(30_000);
    let probes: Vec<_> = path
        .states
        .windows(2)
        .filter(|pair| pair[0].1 == State::ProbeRtt)
        .map(|pair| (pair[0].0, pair[1].0))
        .collect();
    assert!((5..=6).contains(&probes.len()), "{probes:?}");
    for (begin, end) in &probes {
        let took = (end - begin) / 1_000_000;
        assert!((200..400).contains(&took), "{took}");
    }
    for pair in probes.windows(2) {
        let between = (pair[1].0 - pair[0].1) as f64 * 1e-9;
        assert!((5.0..5.3).contains(&between), "{between}");
    }
    let rtt = path.bbr.min_rtt().expect("a round trip").as_secs_f64();
    assert!((0.05..0.053).contains(&rtt), "{rtt}");
    assert!(path.delivered > 30 * 1000 * SEGMENT * 95 / 100, "{}", path.delivered);
}

#[test]
fn a_rest_stands_for_a_probe_of_the_round_trip() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(4000);
    path.source = Source::Nothing;
    path.run(7000);
    path.source = Source::Endless;
    let before = path.bandwidth();
    path.run(8500);
    // Five seconds were over at 5 s, and what came after the rest was as good as a probe.
    assert_eq!(path.first(State::ProbeRtt, 0), u64::MAX, "{:?}", path.states);
    assert!((path.bandwidth() / before - 1.0).abs() < 0.05, "{} {before}", path.bandwidth());
}

#[test]
fn a_rate_that_falls_or_rises_is_found() {
    let mut path = Path::new(4000, 40, 200);
    path.run(8000);
    path.slow_down(2.0);
    // Two cycles of up to three seconds forget what was.
    path.run(15_000);
    assert!((path.bandwidth() / 2000.0 - 1.0).abs() < 0.05, "{}", path.bandwidth());
    path.slow_down(0.25);
    // Four times as much, at 1.25 a round trip in one phase up or more.
    path.run(25_000);
    assert!((path.bandwidth() / 8000.0 - 1.0).abs() < 0.05, "{}", path.bandwidth());
}

#[test]
fn a_route_that_becomes_longer_is_found_by_a_probe_of_the_round_trip() {
    let mut path = Path::new(5000, 40, 100_000);
    path.run(5300);
    path.rtt = 100_000_000;
    let (from, before) = (path.now, path.delivered);
    while path.bbr.min_rtt().is_some_and(|rtt| rtt.as_secs_f64() < 0.09) {
        path.run(path.now / 1_000_000 + 100);
        assert!(path.now < 40_000_000_000);
    }
    let used = (path.delivered - before) as f64 / SEGMENT as f64 / ((path.now - from) as f64 * 1e-9) / 5000.0;
    println!("found after {} ms, {used:.3} used until then", (path.now - from) / 1_000_000);
    // The filter remembers the old one for ten seconds, and the window is of two of the old products: 0.8 of
    // the new one.
    assert!(path.now - from < 11_000_000_000 && used > 0.7, "{used}");
    let before = path.delivered;
    path.run(path.now / 1_000_000 + 10_000);
    let used = (path.delivered - before) as f64 / SEGMENT as f64 / 50_000.0;
    println!("{used:.3} used afterwards");
    assert!(used > 0.93, "{used}");
}

#[test]
fn less_than_a_packet_on_the_way_keeps_four() {
    // Ten segments a second at 10 ms.
    let mut path = Path::new(10, 10, 50);
    path.run(60_000);
    let cwnd = path.bbr.cwnd().get() / SEGMENT;
    assert!((4..=9).contains(&cwnd), "{cwnd}");
    assert!(path.delivered > 60 * 10 * SEGMENT * 95 / 100, "{}", path.delivered);
}

#[test]
fn an_application_that_sends_little_says_nothing_of_the_path() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(3000);
    let before = path.bandwidth();
    // A tenth, for twenty seconds.
    path.source = path.steady(100);
    path.run(23_000);
    assert!((path.bandwidth() / before - 1.0).abs() < 0.3, "{} {before}", path.bandwidth());
}

#[test]
fn the_same_seed_gives_the_same_course() {
    let course = || {
        let mut path = Path::new(3000, 30, 60);
        path.run(20_000);
        path.states
    };
    assert_eq!(course(), course());
}

#[test]
fn a_time_out_leaves_a_segment_and_its_end_brings_the_window_back() {
    let mut path = Path::new(1000, 50, 1000);
    path.run(3000);
    let before = path.bbr.cwnd();
    let now = path.time();
    path.bbr.on_timeout(&Timeout { now, flight: before, is_repeated: false });
    assert_eq!(path.bbr.cwnd(), Bytes::new(SEGMENT));
    // What was in flight arrives after all, and the recovery ends.
    path.run(3200);
    assert!(path.bbr.cwnd() >= Bytes::new(SEGMENT * 50), "{:?} {before:?}", path.bbr.cwnd());
}
