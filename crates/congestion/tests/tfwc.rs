//! TFWC and TTFWC against the thesis's chapter 3, driven packet by packet.

use anabranch_congestion::control::{Ack, Controller, Loss, Start, Timeout};
use anabranch_congestion::tfwc::{Addition, Parameters, Tfwc, Tuning, Update, interval, window};
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

fn tuning(tp: f64) -> Tuning {
    Tuning::new(tp).expect("between 0 and 1")
}

/// A controller whose flow has always something to send.
struct Driver {
    controller: Tfwc,
    now: Time,
}

impl Driver {
    fn new(parameters: Parameters) -> Self {
        Self { controller: Tfwc::new(&start(10, None), parameters), now: Time::ZERO }
    }

    fn tuned(tp: f64) -> Self {
        Self::new(Parameters::tuned(tuning(tp)))
    }

    /// The window in packets.
    fn cwnd(&self) -> f64 {
        self.controller.cwnd().as_f64() / SEGMENT as f64
    }

    fn acknowledge(&mut self, packets: u64) {
        for _ in 0..packets {
            self.now += Duration::from_millis(10);
            let srtt = Duration::from_millis(100);
            self.controller.on_ack(&Ack {
                now: self.now,
                acked: Bytes::new(SEGMENT),
                flight: self.controller.cwnd(),
                rtt: Some(srtt),
                srtt,
                is_cwnd_limited: true,
            });
        }
    }

    fn lose(&mut self) {
        self.controller.on_loss(&Loss { now: self.now, flight: self.controller.cwnd() });
    }

    /// Loss events that are `packets` apart, each of which ends at once: nothing is in flight.
    fn lose_each(&mut self, packets: u64, times: usize) {
        for _ in 0..times {
            self.acknowledge(packets);
            self.controller.on_loss(&Loss { now: self.now, flight: Bytes::ZERO });
        }
    }
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

#[test]
fn by_the_listings_a_loss_event_adds_a_part_of_what_is_above_half_of_renos_window() {
    let listing = Parameters { addition: Addition::Listing, ..Parameters::tuned(tuning(0.9)) };
    let mut driver = Driver::new(listing);
    driver.lose_each(1000, 12);
    let before = window(1000.0);
    near(driver.cwnd(), before, 0.01);
    // Reno's window has grown from the middle of the flat period on, and so was above the window.
    driver.lose_each(700, 1);
    let (base, reno) = (window(950.0), (500..=700).fold(before, |reno, _| reno + 1.0 / reno));
    near(driver.cwnd(), base, 0.01);
    // The flat period lasts for 1000 packets again; then a packet is added for each.
    driver.acknowledge(999);
    near(driver.cwnd(), base, 0.01);
    driver.acknowledge(40);
    near(driver.cwnd(), window((700.0 + 4000.0 + 1040.0) / 6.0) + 0.9 * (base - reno / 2.0), 0.1);
}

#[test]
fn by_the_listings_losses_before_reno_has_come_to_the_window_leave_what_is_added() {
    let listing = Parameters { addition: Addition::Listing, ..Parameters::tuned(tuning(0.9)) };
    let mut driver = Driver::new(listing);
    driver.lose_each(1000, 12);
    driver.lose_each(700, 1);
    let reno = (500..=700).fold(window(1000.0), |reno, _| reno + 1.0 / reno);
    let added = 0.9 * (window(950.0) - reno / 2.0);
    driver.lose_each(100, 1);
    let base = driver.cwnd();
    driver.acknowledge(3000);
    assert!(driver.cwnd() > base + added, "{} of {base} and {added}", driver.cwnd());
}

#[test]
fn the_first_loss_event_halves_and_stands_for_the_history() {
    let mut driver = Driver::tuned(0.0);
    driver.acknowledge(54);
    assert_eq!(driver.cwnd(), 64.0);
    driver.lose();
    assert_eq!(driver.cwnd(), 32.0);
    assert_eq!(driver.controller.ssthresh(), Bytes::new(32 * SEGMENT));
    near(driver.controller.loss_event_rate(), 1.0 / interval(32.0), 1e-9);
    // Flat until the open interval is longer than the assumed one: the 64 in flight count, and the lost one.
    let flat = interval(32.0) as u64;
    driver.acknowledge(flat - 66);
    assert_eq!(driver.cwnd(), 32.0);
    driver.acknowledge(200);
    near(driver.cwnd(), window((flat + 200 - 2 + 1) as f64), 0.02);
}

#[test]
fn the_window_follows_the_equation_over_sixteen_intervals() {
    let mut driver = Driver::tuned(0.0);
    driver.lose_each(200, 20);
    near(driver.cwnd(), window(200.0), 1e-3);
    // One short interval weighs a twelfth: (11 * 200 + 20) / 12.
    driver.lose_each(20, 1);
    near(driver.cwnd(), window(185.0), 1e-3);
}

#[test]
fn the_responsive_mode_averages_eight() {
    let mut driver = Driver::tuned(0.9);
    driver.lose_each(200, 20);
    near(driver.cwnd(), window(200.0), 1e-3);
    // (5 * 200 + 20) / 6.
    driver.lose_each(20, 1);
    near(driver.cwnd(), window(170.0), 1e-3);
}

#[test]
fn the_window_is_flat_and_then_increases_with_the_mean() {
    let mut driver = Driver::tuned(0.0);
    driver.lose_each(200, 20);
    let base = driver.cwnd();
    driver.acknowledge(198);
    assert_eq!(driver.cwnd(), base);
    // An open interval of 200 + 120 makes the mean ten longer.
    driver.acknowledge(121);
    near(driver.cwnd(), window(210.0), 1e-3);
}

/// Twenty intervals of 200 packets, then the window in the middle of the next increasing period.
fn in_the_increasing_period(tp: f64) -> (f64, f64) {
    let mut driver = Driver::tuned(tp);
    driver.lose_each(200, 20);
    let base = driver.cwnd();
    driver.acknowledge(240);
    (base, driver.cwnd())
}

#[test]
fn the_tuning_parameter_adds_its_share_of_the_distance_to_reno() {
    // Reno's window is the flat one in the middle of the flat period and grows by 1/cwnd each packet.
    let base = window(200.0);
    let mut reno = base;
    // From an open interval of 100 (the lost packet is one of them) to one of 200, the end of the flat
    // period.
    for _ in 0..101 {
        reno += 1.0 / reno;
    }
    let distance = reno - base;
    assert!(distance > 2.0, "{distance}");
    for (tp, share, weights) in [(0.0, 0.0, 12.0), (0.4, 0.16, 12.0), (0.5, 0.5, 6.0), (0.9, 0.9, 6.0)] {
        let (flat, increased) = in_the_increasing_period(tp);
        near(flat, base, 1e-3);
        near(increased, window(200.0 + 41.0 / weights) + share * distance, 0.05);
    }
}

#[test]
fn nothing_is_added_after_a_fall_beyond_what_one_interval_can_do() {
    let after = |intervals| {
        let mut driver = Driver::tuned(0.9);
        driver.lose_each(200, 1);
        driver.lose_each(10_000, 1);
        driver.lose_each(200, intervals);
        driver.acknowledge(240);
        driver.cwnd()
    };
    // The last interval takes the place of that of 10,000, of whose sum it had a fifth of a weight: more than
    // equation (3.1) lets it.
    near(after(8), window(200.0 + 41.0 / 6.0), 1e-3);
    assert!(after(9) > window(200.0 + 41.0 / 6.0) + 2.0, "{}", after(9));
}

#[test]
fn the_addition_comes_packet_by_packet() {
    let mut driver = Driver::tuned(1.0);
    driver.lose_each(2000, 20);
    for _ in 0..2400 {
        let before = driver.cwnd();
        driver.acknowledge(1);
        assert!(driver.cwnd() <= before + 1.001, "{before} {}", driver.cwnd());
    }
}

#[test]
fn the_approximate_mean_stays_near_the_accurate_one() {
    for tp in [0.0, 0.4, 0.9] {
        let mut accurate = Driver::tuned(tp);
        let mut approximate =
            Driver::new(Parameters { update: Update::Approximate, ..Parameters::tuned(tuning(tp)) });
        for packets in [200, 350, 80, 500, 120, 260, 900, 40, 300] {
            for driver in [&mut accurate, &mut approximate] {
                driver.lose_each(packets, 3);
                driver.acknowledge(600);
            }
            // Until there are all intervals, a sum of weights may be far from the next whole number.
            near(approximate.cwnd(), accurate.cwnd(), 0.02 * accurate.cwnd());
            assert!(approximate.cwnd() <= accurate.cwnd() + 0.001);
        }
    }
}

#[test]
fn below_two_packets_it_is_reno() {
    let mut driver = Driver::tuned(0.4);
    driver.lose_each(5, 20);
    assert!(window(5.0) < 2.0);
    assert_eq!(driver.cwnd(), 2.0);
    // A packet for each window acknowledged.
    driver.acknowledge(2);
    near(driver.cwnd(), 2.9, 0.05);
    driver.acknowledge(12);
    assert!(driver.cwnd() > 5.0, "{}", driver.cwnd());
    // Long intervals end it.
    driver.lose_each(400, 3);
    assert!(driver.cwnd() > 5.0, "{}", driver.cwnd());
    let base = driver.cwnd();
    // Reno would add 20/cwnd, the mean of the intervals grows by 20/12.
    driver.acknowledge(20);
    near(driver.cwnd(), base, 0.15);
}

#[test]
fn a_time_out_is_a_loss_event_with_slow_start() {
    let mut driver = Driver::tuned(0.0);
    driver.lose_each(200, 20);
    driver.acknowledge(200);
    let timeout = |is_repeated| Timeout { now: Time::ZERO, flight: Bytes::ZERO, is_repeated };
    driver.controller.on_timeout(&timeout(false));
    assert_eq!(driver.cwnd(), 1.0);
    near(driver.controller.ssthresh().as_f64() / SEGMENT as f64, window(200.0), 1e-3);
    driver.controller.on_timeout(&timeout(true));
    driver.controller.on_timeout(&timeout(false));
    near(driver.controller.ssthresh().as_f64() / SEGMENT as f64, window(200.0), 1e-3);
    driver.acknowledge(3);
    assert_eq!(driver.cwnd(), 4.0);
    driver.acknowledge(30);
    near(driver.cwnd(), window(200.0), 1.0);
}

#[test]
fn an_interval_goes_from_loss_to_loss() {
    // A window of 20 is in flight at each loss event and is acknowledged during recovery, of which nothing is
    // told.
    let mut driver = Driver::tuned(0.0);
    for _ in 0..20 {
        driver.acknowledge(180);
        driver.controller.on_loss(&Loss { now: driver.now, flight: Bytes::new(20 * SEGMENT) });
    }
    near(driver.cwnd(), window(200.0), 1e-3);
    // A time-out in recovery tells of them again.
    driver.controller.on_timeout(&Timeout { now: driver.now, flight: Bytes::ZERO, is_repeated: false });
    driver.acknowledge(200);
    driver.lose();
    near(driver.controller.loss_event_rate(), 1.0 / 200.0, 1e-6);
}

#[test]
fn tuning_changes_while_it_runs() {
    let mut driver = Driver::tuned(0.0);
    driver.lose_each(200, 20);
    driver.controller.set_tuning(tuning(0.9));
    assert_eq!(driver.controller.tuning(), tuning(0.9));
    driver.lose_each(20, 1);
    near(driver.cwnd(), window(170.0), 1e-3);
    driver.controller.set_tuning(Tuning::SMOOTHEST);
    driver.lose_each(200, 20);
    near(driver.cwnd(), window(200.0), 1e-3);
}

/// Mean window and variation of a flow that loses one packet in 300 at random.
fn with_random_losses(tp: f64) -> (f64, f64) {
    let mut driver = Driver::tuned(tp);
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    let mut state = 9u64;
    for packet in 0..400_000u32 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        driver.acknowledge(1);
        if (state >> 33).is_multiple_of(300) {
            driver.controller.on_loss(&Loss { now: driver.now, flight: Bytes::ZERO });
        }
        if packet > 20_000 {
            // Each packet stands for 1/cwnd of a round trip.
            let (weight, cwnd) = (1.0 / driver.cwnd(), driver.cwnd());
            sum += cwnd * weight;
            squares += cwnd * cwnd * weight;
            count += weight;
        }
    }
    let mean: f64 = sum / count;
    (mean, (squares / count - mean * mean).sqrt() / mean)
}

#[test]
fn more_tuning_gives_more_and_swings_more() {
    let (smooth, middle, fast) = (with_random_losses(0.0), with_random_losses(0.4), with_random_losses(0.9));
    assert!(smooth.0 < middle.0 && middle.0 < fast.0, "{smooth:?} {middle:?} {fast:?}");
    assert!(fast.0 < 1.25 * smooth.0, "{smooth:?} {fast:?}");
    assert!(smooth.1 < fast.1 && fast.1 < 0.35, "{smooth:?} {fast:?}");
}

proptest! {
    /// The equation bounds the window: with an addition it is never beyond what the longest known interval
    /// gives, and Reno's distance.
    #[test]
    fn the_window_stays_between_its_intervals(
        tp in 0.0f64..=1.0, approximate in any::<bool>(), intervals in prop::collection::vec(3u64..600, 1..40),
    ) {
        let update = if approximate { Update::Approximate } else { Update::Accurate };
        let mut driver = Driver::new(Parameters { update, ..Parameters::tuned(tuning(tp)) });
        // Slow start ends here; what stands for the history is part of the bound.
        driver.acknowledge(20);
        driver.lose();
        let mut longest = interval(driver.cwnd()).max(60.0);
        for packets in intervals {
            driver.acknowledge(packets);
            longest = longest.max(packets as f64 + 60.0);
            prop_assert!(driver.cwnd() <= 1.5 * window(longest).max(6.0) + 2.0, "{} {longest}", driver.cwnd());
            driver.controller.on_loss(&Loss { now: driver.now, flight: Bytes::ZERO });
            prop_assert!(driver.cwnd() >= 2.0);
        }
    }
}
