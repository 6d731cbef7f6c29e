//! Reno and CUBIC against the equations of their RFCs, driven round by round on a path that never loses by
//! itself.

use anabranch_congestion::control::{Ack, Controller, Loss, Start, Timeout};
use anabranch_congestion::cubic::Cubic;
use anabranch_congestion::multcp::MulTcp;
use anabranch_congestion::tfwc::{Parameters, Tfwc, Tuning, Update};
use anabranch_units::{Bytes, Duration, Time};
use proptest::prelude::*;

const SEGMENT: u64 = 1000;

fn start(initial_window: u64, initial_ssthresh: Option<u64>) -> Start {
    Start {
        segment: Bytes::new(SEGMENT),
        initial_window: Bytes::new(initial_window * SEGMENT),
        initial_ssthresh: initial_ssthresh.map(|segments| Bytes::new(segments * SEGMENT)),
        seed: 0,
    }
}

/// A controller, and a path on which every segment is acknowledged on its own, a round trip after it was
/// sent.
struct Driver<C> {
    controller: C,
    now: Time,
    rtt: Duration,
}

impl<C: Controller> Driver<C> {
    fn new(controller: C, rtt_ms: u64) -> Self {
        Self { controller, now: Time::ZERO, rtt: Duration::from_millis(rtt_ms) }
    }

    /// The window in segments.
    fn cwnd(&self) -> f64 {
        self.controller.cwnd().as_f64() / SEGMENT as f64
    }

    fn acknowledge(&mut self, segments: u64, after: Duration, is_cwnd_limited: bool) {
        self.now += after;
        self.controller.on_ack(&Ack {
            now: self.now,
            acked: Bytes::new(segments * SEGMENT),
            flight: self.controller.cwnd(),
            rtt: Some(self.rtt),
            srtt: self.rtt,
            is_cwnd_limited,
        });
    }

    /// One round trip: the acknowledgements of all segments of a window, evenly spread.
    fn round(&mut self) {
        let segments = self.cwnd() as u64;
        for _ in 0..segments {
            self.acknowledge(1, self.rtt / segments, true);
        }
    }

    fn rounds_until(&mut self, until: Time) {
        while self.now < until {
            self.round();
        }
    }

    fn lose(&mut self) {
        self.controller.on_loss(&Loss { now: self.now, flight: self.controller.cwnd() });
    }

    fn time_out(&mut self, is_repeated: bool) {
        let flight = self.controller.cwnd();
        self.controller.on_timeout(&Timeout { now: self.now, flight, is_repeated });
    }
}

fn reno(initial_window: u64, initial_ssthresh: Option<u64>) -> Driver<MulTcp> {
    Driver::new(MulTcp::reno(&start(initial_window, initial_ssthresh)), 100)
}

fn cubic(initial_window: u64, initial_ssthresh: Option<u64>, rtt_ms: u64) -> Driver<Cubic> {
    Driver::new(Cubic::new(&start(initial_window, initial_ssthresh)), rtt_ms)
}

fn multcp(initial_window: u64, initial_ssthresh: Option<u64>, flows: f64) -> Driver<MulTcp> {
    Driver::new(MulTcp::new(&start(initial_window, initial_ssthresh), flows), 100)
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

/// RFC 5681, equation 2, and what it makes of delayed acknowledgements.
fn slow_start_doubles<C: Controller>(mut driver: Driver<C>) {
    for expected in [20.0, 40.0, 80.0] {
        driver.round();
        assert_eq!(driver.cwnd(), expected);
    }
    // Two segments acknowledged at once add one.
    driver.acknowledge(2, Duration::from_millis(1), true);
    assert_eq!(driver.cwnd(), 81.0);
}

#[test]
fn slow_start_doubles_each_round_trip() {
    slow_start_doubles(reno(10, None));
    slow_start_doubles(cubic(10, None, 100));
    slow_start_doubles(Driver::new(Tfwc::new(&start(10, None), Parameters::TFWC), 100));
}

/// RFC 7661: an acknowledgement while the application was the limit adds nothing.
fn unfilled_windows_do_not_grow<C: Controller>(mut driver: Driver<C>) {
    for _ in 0..1000 {
        driver.acknowledge(1, Duration::from_millis(10), false);
    }
    assert_eq!(driver.cwnd(), 10.0);
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    unfilled_windows_do_not_grow(reno(10, None));
    unfilled_windows_do_not_grow(reno(10, Some(5)));
    unfilled_windows_do_not_grow(cubic(10, None, 100));
    unfilled_windows_do_not_grow(cubic(10, Some(5), 100));
    unfilled_windows_do_not_grow(multcp(10, Some(5), 4.0));
    unfilled_windows_do_not_grow(Driver::new(Tfwc::new(&start(10, Some(5)), Parameters::TFWC), 100));
}

#[test]
fn reno_adds_a_segment_each_round_trip() {
    let mut driver = reno(10, Some(10));
    for round in 1..=50u32 {
        driver.round();
        // Equation 3 adds slightly less than a segment, because the window grows within the round trip.
        near(driver.cwnd(), 10.0 + 0.95 * f64::from(round), 0.05 * f64::from(round));
    }
}

#[test]
fn reno_halves_and_times_out() {
    let mut driver = reno(64, None);
    driver.lose();
    assert_eq!(driver.cwnd(), 32.0);
    assert_eq!(driver.controller.ssthresh(), Bytes::new(32 * SEGMENT));
    driver.time_out(false);
    assert_eq!(driver.cwnd(), 1.0);
    assert_eq!(driver.controller.ssthresh(), Bytes::new(16 * SEGMENT));
    // The same segment again: ssthresh stays. Another one: two segments are the least.
    driver.time_out(true);
    assert_eq!(driver.controller.ssthresh(), Bytes::new(16 * SEGMENT));
    driver.time_out(false);
    assert_eq!(driver.controller.ssthresh(), Bytes::new(2 * SEGMENT));
}

#[test]
fn reno_averages_the_square_root_law() {
    // AIMD(1, 1/2) averages sqrt(3/(2p)): 38.7 segments when one in 1000 is lost.
    near(mean_window(reno(10, Some(10)), 1000), (1.5f64 * 1000.0).sqrt(), 1.5);
}

/// The mean window over many cycles in which one segment in `spacing` is lost.
fn mean_window<C: Controller>(mut driver: Driver<C>, spacing: u64) -> f64 {
    let (mut sent, mut next_loss, mut sum, mut rounds) = (0, spacing, 0.0, 0.0);
    while sent < 300 * spacing {
        if sent > 50 * spacing {
            sum += driver.cwnd();
            rounds += 1.0;
        }
        sent += driver.cwnd() as u64;
        driver.round();
        if sent >= next_loss {
            driver.lose();
            next_loss += spacing;
        }
    }
    sum / rounds
}

#[test]
fn less_than_one_flow_is_one() {
    assert_eq!(MulTcp::new(&start(10, None), f64::NAN).flows(), 1.0);
    assert_eq!(MulTcp::new(&start(10, None), 0.3).flows(), 1.0);
}

#[test]
fn multcp_counts_for_its_flows() {
    let mut driver = multcp(10, Some(40), 4.0);
    while driver.cwnd() < 40.0 {
        driver.round();
    }
    let before = driver.cwnd();
    for _ in 0..5 {
        driver.round();
    }
    // Four more each round trip, and slightly less because the window grows within one.
    near(driver.cwnd() - before, 19.5, 0.6);
    let before = driver.cwnd();
    driver.lose();
    near(driver.cwnd(), 7.0 / 8.0 * before, 0.01);
    driver.controller.set_flows(1.0);
    driver.lose();
    near(driver.cwnd(), 7.0 / 16.0 * before, 0.01);
}

#[test]
fn multcp_starts_as_so_many_flows_would() {
    // Four flows that begin with ten segments each have 40 2^k; three for each acknowledgement is there when
    // 3^k = 4 2^k, at 3.42 round trips and 10 4^(ln 3 / ln 1.5) = 427 segments.
    let mut driver = multcp(10, None, 4.0);
    for expected in [30.0, 90.0, 270.0] {
        driver.round();
        assert_eq!(driver.cwnd(), expected);
    }
    driver.round();
    near(driver.cwnd(), 427.5 + (270.0 - 157.5 / 2.0), 2.0);
    let before = driver.cwnd();
    driver.round();
    near(driver.cwnd(), 2.0 * before, 1.0);
}

#[test]
fn multcp_averages_as_so_many_flows() {
    // AIMD that adds a each round trip and takes the part b averages sqrt(a (2 - b) / (2 b p)); here a = N
    // and b = 1/(2N).
    for (flows, spacing) in [(2.0, 500), (4.0, 500), (8.0, 1000)] {
        let (increase, decrease): (f64, f64) = (flows, 0.5 / flows);
        let expected = (increase * (2.0 - decrease) / (2.0 * decrease) * spacing as f64).sqrt();
        near(mean_window(multcp(10, Some(10), flows), spacing), expected, 0.06 * expected);
    }
}

#[test]
fn cubic_keeps_seven_tenths() {
    let mut driver = cubic(100, None, 200);
    driver.lose();
    assert_eq!(driver.cwnd(), 70.0);
    assert_eq!(driver.controller.ssthresh(), Bytes::new(70 * SEGMENT));
    let mut small = cubic(2, None, 200);
    small.lose();
    assert_eq!(small.cwnd(), 2.0);
}

#[test]
fn cubic_is_back_at_the_plateau_after_k() {
    // K = cbrt((100 - 70) / 0.4) = cbrt(75) = 4.217 s (equation 2).
    let k = Duration::from_micros(4_217_163);
    let mut driver = cubic(100, None, 200);
    driver.lose();
    let begin = driver.now;
    // Halfway: 100 - 0.4 (K/2)^3 = 100 - 30/8 = 96.25.
    driver.rounds_until(begin + k / 2);
    near(driver.cwnd(), 96.25, 1.5);
    // It is flat around K: less than half a segment in a second, and convex after it: 0.4 K^3 = 30 above at 2
    // K.
    driver.rounds_until(begin + k - Duration::from_millis(500));
    let before = driver.cwnd();
    driver.rounds_until(begin + k + Duration::from_millis(500));
    near(driver.cwnd(), 100.0, 0.5);
    assert!(driver.cwnd() - before < 0.5);
    driver.rounds_until(begin + k * 2);
    near(driver.cwnd(), 130.0, 5.0);
}

#[test]
fn cubic_converges_fast_below_the_last_plateau() {
    let mut driver = cubic(100, None, 200);
    driver.lose();
    driver.round();
    let lower = driver.cwnd();
    assert!(lower < 100.0);
    // The plateau is 1.7/2 of where it lost, so K = cbrt(0.15 lower / 0.4) instead of cbrt(0.3 lower / 0.4).
    driver.lose();
    let begin = driver.now;
    driver.rounds_until(begin + Duration::from_secs_f64((0.15 * lower / 0.4).cbrt()));
    near(driver.cwnd(), 0.85 * lower, 0.5);
}

#[test]
fn cubic_begins_again_after_a_time_out() {
    let mut driver = cubic(100, None, 200);
    driver.time_out(false);
    assert_eq!((driver.cwnd(), driver.controller.ssthresh()), (1.0, Bytes::new(70 * SEGMENT)));
    while driver.cwnd() < 70.0 {
        driver.round();
    }
    // The plateau is here (K = 0): 0.4 t^3 above it, looking a round trip ahead and in steps of one.
    let (begin, from) = (driver.now, driver.cwnd());
    driver.rounds_until(begin + Duration::from_secs(3));
    let seconds = driver.now.since(begin).as_secs_f64();
    near(driver.cwnd(), from + 0.4 * (seconds + 0.2).powi(3), 3.0);
}

#[test]
fn cubic_does_not_count_time_without_data() {
    let mut busy = cubic(100, None, 200);
    busy.lose();
    busy.round();
    let mut quiet = Driver { controller: busy.controller.clone(), ..busy };
    // Ten minutes in which the application sends little, then as before.
    for _ in 0..600 {
        quiet.acknowledge(1, Duration::from_secs(1), false);
    }
    for _ in 0..10 {
        busy.round();
        quiet.round();
    }
    near(quiet.cwnd(), busy.cwnd(), 0.01);
}

#[test]
fn cubic_restarts_after_idleness_from_the_restart_window() {
    let mut driver = cubic(10, Some(80), 200);
    while driver.cwnd() < 80.0 {
        driver.round();
    }
    driver.now += Duration::from_secs(60);
    driver.controller.on_idle(driver.now);
    assert_eq!(driver.cwnd(), 10.0);
    driver.round();
    assert_eq!(driver.cwnd(), 20.0);
}

#[test]
fn cubic_averages_as_reno_where_that_is_more() {
    // Section 4.3: AIMD(alpha, beta) averages sqrt(alpha (1 + beta) / (2 (1 - beta) p)), with its alpha
    // sqrt(3/(2p)).
    let expected = (1.5f64 * 400.0).sqrt();
    near(mean_window(cubic(10, Some(10), 10), 400), expected, 0.06 * expected);
}

#[test]
fn cubic_averages_the_cubic_law_where_that_is_more() {
    // Section 5.1, equation 6: (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4) with RTT = 0.1 s, p =
    // 1e-5: 1054 segments, against Reno's 387.
    let expected = (0.4f64 * 3.7 / (4.0 * 0.3)).powf(0.25) * (0.1f64 * 1e5).powf(0.75);
    near(mean_window(cubic(10, Some(10), 100), 100_000), expected, 0.05 * expected);
}

/// What a driver can tell, however absurd.
#[derive(Clone, Debug)]
enum Event {
    Ack { acked: u64, srtt: u64, is_cwnd_limited: bool },
    Loss { flight: u64 },
    Timeout { flight: u64, is_repeated: bool },
    Idle,
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..100_000, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (amount(), amount(), any::<bool>())
            .prop_map(|(acked, srtt, is_cwnd_limited)| Event::Ack { acked, srtt, is_cwnd_limited }),
        2 => amount().prop_map(|flight| Event::Loss { flight }),
        1 => (amount(), any::<bool>()).prop_map(|(flight, is_repeated)| Event::Timeout { flight, is_repeated }),
        1 => Just(Event::Idle),
    ]
}

fn check(controller: &mut dyn Controller, events: &[(u64, Event)]) -> Result<(), TestCaseError> {
    let mut now = Time::ZERO;
    for (pause, event) in events {
        now += Duration::from_nanos(*pause);
        let before = controller.cwnd();
        match *event {
            Event::Ack { acked, srtt, is_cwnd_limited } => {
                let (acked, srtt) = (Bytes::new(acked), Duration::from_nanos(srtt));
                let ack = Ack { now, acked, flight: before, rtt: Some(srtt), srtt, is_cwnd_limited };
                controller.on_ack(&ack);
                prop_assert!(controller.cwnd() >= before);
            }
            Event::Loss { flight } => {
                controller.on_loss(&Loss { now, flight: Bytes::new(flight) });
                prop_assert_eq!(controller.cwnd(), controller.ssthresh());
            }
            Event::Timeout { flight, is_repeated } => {
                controller.on_timeout(&Timeout { now, flight: Bytes::new(flight), is_repeated });
                prop_assert_eq!(controller.cwnd(), Bytes::new(SEGMENT));
            }
            Event::Idle => {
                controller.on_idle(now);
                prop_assert!(controller.cwnd() <= before);
            }
        }
        // Not-a-number would show as zero.
        prop_assert!(controller.cwnd() >= Bytes::new(SEGMENT));
        prop_assert!(controller.ssthresh() >= Bytes::new(2 * SEGMENT));
    }
    Ok(())
}

proptest! {
    #[test]
    fn windows_stay_sane_whatever_happens(
        window in 1u64..100, events in prop::collection::vec((amount(), event()), 0..200),
    ) {
        check(&mut MulTcp::reno(&start(window, None)), &events)?;
        check(&mut Cubic::new(&start(window, None)), &events)?;
        check(&mut MulTcp::new(&start(window, None), 4.5), &events)?;
        for (tp, update) in [(0.0, Update::Accurate), (0.4, Update::Approximate), (1.0, Update::Accurate)] {
            let parameters = Parameters { update, ..Parameters::tuned(Tuning::new(tp).unwrap()) };
            check(&mut Tfwc::new(&start(window, None), parameters), &events)?;
        }
    }

    #[test]
    fn growth_is_at_most_half_the_window_a_round_trip(window in 2u64..500, rtt_ms in 1u64..2000, rounds in 1usize..40) {
        let mut driver = cubic(window, Some(2), rtt_ms);
        for _ in 0..rounds {
            let before = driver.cwnd();
            driver.round();
            prop_assert!(driver.cwnd() <= before * 1.5 + 1.0, "{before} {}", driver.cwnd());
        }
    }
}
