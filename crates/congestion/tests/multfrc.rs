//! The number of connections under MULTFRC's control, in whole connections and in one that stands for all.

use anabranch_congestion::aggregate::{Aggregate, Scheme};
use anabranch_congestion::multfrc::{Decision, Law, Least, MulTfrc, Parameters, Reason, Usage};
use anabranch_congestion::tfrc;
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};
use proptest::prelude::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A path whose round-trip time is chosen by hand, with a report in each of them.
struct Path {
    now: Time,
    controller: MulTfrc,
}

impl Path {
    fn new(parameters: Parameters) -> Self {
        Self { now: Time::ZERO, controller: MulTfrc::new(parameters) }
    }

    /// Round trips of these lengths in turn, until a decision comes.
    fn until_decision(&mut self, rtts: &[u64]) -> Decision {
        for rtt in rtts.iter().cycle().take(10_000) {
            self.now += millis(*rtt);
            if let Some(decision) = self.controller.rtt(self.now, millis(*rtt)) {
                return decision;
            }
        }
        panic!("no decision in 10000 round trips");
    }
}

#[test]
fn the_papers_law_step_by_step() {
    let mut path = Path::new(Parameters::PAPER);
    let first = path.until_decision(&[100]);
    assert_eq!((first.connections, first.target, first.reason), (2, 2.0, Reason::RoomLeft));
    assert_eq!((first.average, first.least), (millis(100), millis(100)));
    // 2 + 1/2 is 2.5, which rounds to 3; then 2.9.
    assert_eq!(path.until_decision(&[100]).connections, 3);
    let third = path.until_decision(&[119]);
    assert!((third.target - 2.9).abs() < 1e-12);
    // Beyond 120 ms one falls away, and never the last.
    let fourth = path.until_decision(&[121]);
    assert_eq!((fourth.connections, fourth.reason), (2, Reason::Queue));
    assert_eq!(path.until_decision(&[130]).target, 1.0);
    assert_eq!(path.until_decision(&[130]).target, 1.0);
    // A shorter average is the new least one.
    assert_eq!(path.until_decision(&[80]).least, millis(80));
}

#[test]
fn an_average_takes_m_round_trips_however_many_reports_come() {
    let mut controller = MulTfrc::new(Parameters::PAPER);
    let mut decisions = Vec::new();
    // Five reports a round trip, of 80 to 120 ms, for 200 round trips.
    for report in 0..1000_u64 {
        let now = Time::ZERO + millis(20 * report);
        decisions.extend(controller.rtt(now, millis(80 + 10 * (report % 5))).map(|decision| (now, decision)));
    }
    // 50 round trips of 100 ms each.
    assert_eq!(decisions.len(), 4, "{decisions:?}");
    let (third, decision) = decisions[2];
    assert!(
        decision.average.as_millis() == 100 && (14_800..=15_000).contains(&(third.as_nanos() / 1_000_000))
    );
}

#[test]
fn presets_are_those_of_the_figures() {
    let law = |parameters: Parameters| match parameters.law {
        Law::InverseIncrease { increase, decrease } => Some((increase, decrease)),
        Law::Proportional { .. } => None,
    };
    assert_eq!(law(Parameters::default()), Some((1.0, 1.0)));
    assert_eq!(law(Parameters::FAST), Some((6.0, 2.0)));
    assert_eq!((Parameters::PAPER.round_trips, Parameters::PAPER.tolerance), (50, Ratio::new(1, 5)));
}

#[test]
fn the_published_control_takes_a_longer_route_for_a_queue() {
    let mut path = Path::new(Parameters::PAPER);
    path.until_decision(&[100]);
    for _ in 0..100 {
        let decision = path.until_decision(&[200]);
        assert_eq!((decision.least, decision.connections), (millis(100), 1));
    }
}

#[test]
fn a_queue_far_beyond_the_goal_is_drained_for_two_averages() {
    // What comes at once and does not vary would be taken for another route.
    let mut path = Path::new(Parameters { tells_jitter: false, ..Parameters::AUTO });
    while path.controller.target() < 4.0 {
        path.until_decision(&[100]);
    }
    let before = path.controller.target();
    let drained = path.until_decision(&[150]);
    assert_eq!(drained.reason, Reason::Draining);
    assert!((drained.target - 0.9 * before / 1.5).abs() < 1e-9, "{drained:?}");
    assert_eq!(path.until_decision(&[150]).target, drained.target);
    // Then it goes on where an ordinary step down had led.
    let after = path.until_decision(&[100]);
    assert!((after.target - (before - 0.3)).abs() < 1e-9, "{after:?}");
    assert_eq!(path.until_decision(&[100]).reason, Reason::RoomLeft);
}

/// Draws from 0 to 1, the same ones each time.
fn draws() -> impl FnMut() -> f64 {
    let mut state = 1_u32;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24)
    }
}

/// A report in each of so many round trips, of these lengths: how often another route was found, and after how many of
/// them at first.
fn reports(path: &mut Path, round_trips: u32, mut rtt: impl FnMut(u32) -> Duration) -> (u32, Option<u32>) {
    let (mut found, mut first) = (0, None);
    for number in 0..round_trips {
        let sample = rtt(number);
        path.now += sample;
        if path
            .controller
            .rtt(path.now, sample)
            .is_some_and(|decision| decision.reason == Reason::RouteChanged)
        {
            found += 1;
            first.get_or_insert(number);
        }
    }
    (found, first)
}

#[test]
fn jitter_is_no_queue() {
    for longest in [0, 20, 40, 60] {
        let (mut path, mut draw) = (Path::new(Parameters::AUTO), draws());
        let jitter = millis(longest);
        // Each way has a jitter of its own.
        let found = reports(&mut path, 600, |_| {
            millis(100) + jitter * Ratio::from_f64(draw()) + jitter * Ratio::from_f64(draw())
        });
        // 40 means: without jitter it grows to 6.4.
        let target = path.controller.target();
        assert!(found.0 == 0 && target > 5.0, "{longest} ms: {target}, {found:?}");
    }
    // The paper's rule, and one that compares means with the shortest round trip, take it for one.
    let (mut path, mut draw) = (Path::new(Parameters { tells_jitter: false, ..Parameters::AUTO }), draws());
    reports(&mut path, 600, |_| millis(100) + millis(120) * Ratio::from_f64(draw()));
    assert_eq!(path.controller.connections(), 1);
}

#[test]
fn a_longer_route_is_found_within_fifty_round_trips_in_spite_of_jitter() {
    for longest in [0, 6, 20] {
        let (mut path, mut draw) = (Path::new(Parameters::AUTO), draws());
        let mut rtt = |route: u64| millis(route) + millis(longest) * Ratio::from_f64(draw());
        assert_eq!(reports(&mut path, 300, |_| rtt(168)).0, 0);
        let before = path.controller.target();
        let (found, first) = reports(&mut path, 100, |_| rtt(218));
        assert!(found == 1 && first.is_some_and(|first| first < 50), "{longest} ms: {found}, {first:?}");
        let after = path.controller.target();
        assert!(before > 3.0 && after >= before, "{longest} ms: {before} and {after}");
    }
}

#[test]
fn a_queue_that_grows_and_falls_is_no_route_however_it_began() {
    for (least, most, round_trips) in [(220, 420, 9), (300, 400, 20), (500, 700, 60)] {
        let (mut path, mut draw) = (Path::new(Parameters::AUTO), draws());
        assert_eq!(reports(&mut path, 300, |_| millis(168) + millis(6) * Ratio::from_f64(draw())).0, 0);
        // It begins within a round trip.
        let tooth =
            |number: u32| least + (most - least) * u64::from(number % round_trips) / u64::from(round_trips);
        let (found, _) =
            reports(&mut path, 600, |number| millis(tooth(number)) + millis(6) * Ratio::from_f64(draw()));
        assert_eq!((found, path.controller.connections()), (0, 1), "{least} to {most} ms in {round_trips}");
    }
}

#[test]
fn what_was_taken_for_a_route_and_becomes_shorter_was_a_queue_and_the_next_needs_more() {
    let mut path = Path::new(Parameters::AUTO);
    reports(&mut path, 100, |_| millis(100));
    let mut queue = |round_trips| {
        let (found, first) = reports(&mut path, round_trips, |_| millis(200));
        // A quarter of it goes, and comes back.
        let shorter = path.until_decision(&[160, 160, 200]);
        (found, first, shorter.least)
    };
    let (found, first, least) = queue(60);
    assert!(found == 1 && least == millis(100), "{found}, {least}");
    reports(&mut path, 60, |_| millis(100));
    let (again, later) = reports(&mut path, 60, |_| millis(200));
    assert!(again == 1 && later > first.map(|first| first + 10), "{first:?} and {later:?}");
}

#[test]
fn a_scheme_opens_connections_or_lets_one_stand_for_all() {
    let all = [Scheme::Fixed(4), Scheme::Fixed(0), Scheme::MULTFRC, Scheme::AIO_TFRC];
    let mut aggregates = all.map(Aggregate::new);
    let sender = tfrc::Sender::new(tfrc::Parameters::RFC5348, Bytes::new(1000));
    for round_trip in 1..=100 {
        let now = Time::ZERO + millis(100 * round_trip);
        let decisions = aggregates
            .each_mut()
            .map(|aggregate| aggregate.report(now, millis(100), &sender.usage(None)).is_some());
        let is_due = round_trip % 50 == 0;
        assert_eq!(decisions, [false, false, is_due, is_due]);
    }
    // Two averages: 1 + 1 + 1/2.
    let decided = aggregates.each_ref().map(|aggregate| (aggregate.connections(), aggregate.flows()));
    assert_eq!(decided, [(4, 1.0), (1, 1.0), (3, 1.0), (1, 2.5)]);
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let step = || prop_oneof![4 => 0.0f64..5.0, 1 => any::<f64>(), 1 => Just(f64::NAN)];
    (any::<bool>(), step(), step(), 0u32..6, 0u32..300, 0u32..20).prop_map(
        |(is_paper, increase, decrease, round_trips, percent, most_connections)| Parameters {
            law: if is_paper {
                Law::InverseIncrease { increase, decrease }
            } else {
                Law::Proportional { increase, decrease }
            },
            round_trips,
            tolerance: Ratio::new(percent, 100),
            least: if is_paper { Least::Average } else { Least::Sample },
            most_connections,
            startup: !is_paper,
            tells_jitter: !is_paper,
        },
    )
}

/// What a sender of a link of this capacity is told, without a queue and without losses but the link's own.
fn usage(allowed: Rate, capacity: Rate, wanted: Option<Rate>) -> Usage {
    Usage {
        allowed,
        equation: allowed,
        delivered: allowed.min(capacity).min(wanted.unwrap_or(Rate::MAX)),
        loss_event_rate: 0.05,
        is_limited: wanted.is_none_or(|wanted| wanted > allowed),
        wanted,
        has_links_beside: false,
        one: None,
    }
}

/// A link that a stream uses: each connection is allowed 100 kbit/s.
struct Link {
    now: Time,
    rtt: Duration,
    controller: MulTfrc,
}

impl Link {
    fn new(parameters: Parameters) -> Self {
        Self { now: Time::ZERO, rtt: millis(100), controller: MulTfrc::new(parameters) }
    }

    /// A report in each of so many round trips.
    fn run(&mut self, round_trips: u64, capacity: Rate, wanted: Option<Rate>) {
        for _ in 0..round_trips {
            self.now += self.rtt;
            let allowed = Rate::from_bps_f64(1e5 * self.controller.target());
            self.controller.report(self.now, self.rtt, &usage(allowed, capacity, wanted));
        }
    }
}

#[test]
fn while_no_queue_stands_the_number_grows_by_a_part_of_it() {
    let mut link = Link::new(Parameters::AUTO);
    // Three steps of a half in two round trips each; after the second one comes a look at the route: two round trips, and
    // two that answer to another rate.
    link.run(3 * 2 + 5, Rate::from_mbps(100), None);
    assert!((link.controller.target() - 1.5f64.powi(3)).abs() < 1e-9, "{}", link.controller.target());
    // A queue of 60 % ends it.
    let before = link.controller.target();
    link.rtt = millis(160);
    link.run(2, Rate::from_mbps(100), None);
    assert!((link.controller.target() - before / 1.6).abs() < 1e-9, "{}", link.controller.target());
    // From then on it goes by the law.
    link.rtt = millis(100);
    let before = link.controller.target();
    link.run(15, Rate::from_mbps(100), None);
    assert!(link.controller.target() - before <= 0.5 / before + 1e-9);
    // Not in the paper.
    let mut paper = Link::new(Parameters::PAPER);
    paper.run(12, Rate::from_mbps(100), None);
    assert_eq!(paper.controller.target(), 1.0);
}

#[test]
fn one_of_several_links_is_not_given_more_than_it_has_shown() {
    let after = |has_links_beside| {
        let mut link = Link::new(Parameters::AUTO);
        let mut run = |round_trips: u64, rtt: u64, of_one: f64| {
            for _ in 0..round_trips {
                link.now += millis(rtt);
                let allowed = Rate::from_bps_f64(of_one * link.controller.target());
                let usage = usage(allowed, Rate::from_mbps(1), Some(Rate::from_mbps(3)));
                link.controller.report(link.now, millis(rtt), &Usage { has_links_beside, ..usage });
            }
            of_one * link.controller.target()
        };
        // A queue of its own shows what the link has. It drains, and the equation gives each connection twice as much.
        run(12, 100, 1e5);
        run(6, 200, 1e5);
        run(1, 100, 2e5)
    };
    let (alone, beside) = (after(false), after(true));
    assert!(alone > 1.3e6, "{alone}");
    assert!((0.9e6..1.1e6).contains(&beside), "{beside}");
}

#[test]
fn a_stream_gives_way_to_see_whether_a_queue_stands_and_goes_on_where_none_does() {
    let mut link = Link::new(Parameters::AUTO);
    let mut seen = Vec::new();
    for _ in 0..60 {
        let before = link.controller.target();
        link.run(1, Rate::from_mbps(100), None);
        let now = link.controller.target();
        if now < before {
            seen.push((before, now));
        }
    }
    // At two connections and whenever they have doubled; a quarter stays, and one at least.
    let looks: Vec<f64> = seen.iter().map(|(before, _)| *before).collect();
    let expected = [2, 4, 6, 8].map(|steps| 1.5f64.powi(steps));
    assert_eq!(looks.len(), expected.len(), "{looks:?}");
    assert!(looks.iter().zip(expected).all(|(look, expected)| (look - expected).abs() < 1e-9), "{looks:?}");
    assert!(seen.iter().all(|(before, now)| (now - (before / 4.0).max(1.0)).abs() < 1e-9), "{seen:?}");
    assert_eq!(link.controller.target(), 50.0);
}

#[test]
fn a_stream_that_begins_behind_a_full_queue_does_not_take_it_for_the_route() {
    let mut link = Link::new(Parameters::AUTO);
    let mut most = 0.0f64;
    // The route takes 100 ms. A queue of 100 ms is full, but for three round trips after the stream gave way.
    let falls = [80, 60, 40];
    let mut falling = falls[3..].iter();
    for _ in 0..400 {
        let before = link.controller.target();
        link.rtt = millis(100 + falling.next().unwrap_or(&100));
        link.run(1, Rate::from_mbps(100), None);
        if link.controller.target() < before {
            falling = falls.iter();
        }
        most = most.max(link.controller.target());
    }
    assert!(most < 3.0 && link.controller.target() < 1.1, "{most}, {}", link.controller.target());
}

#[test]
fn a_queue_that_comes_back_at_once_after_it_was_drained_leaves_fewer_connections() {
    let mut path = Path::new(Parameters { tells_jitter: false, ..Parameters::AUTO });
    while path.controller.target() < 8.0 {
        path.until_decision(&[100]);
    }
    let before = path.controller.target();
    let mut drain = || [180, 180, 100].map(|rtt| path.until_decision(&[rtt]).target);
    let [_, _, after] = drain();
    assert!((after - (before - 0.3)).abs() < 1e-9, "{after}");
    let [fewer, _, after] = drain();
    assert!((fewer - 0.9 * (before - 0.3) / 1.8).abs() < 1e-9 && after == fewer, "{fewer}, {after}");
    // Where it did not come back at once the next one is another one.
    path.until_decision(&[100]);
    let before = path.controller.target();
    let mut drain = || [180, 180, 100].map(|rtt| path.until_decision(&[rtt]).target);
    assert!((drain()[2] - (before - 0.3)).abs() < 1e-9);
}

#[test]
fn a_stream_whose_rate_is_known_gets_what_it_needs_and_no_more() {
    let wanted = Some(Rate::from_kbps(800));
    let mut link = Link::new(Parameters::AUTO);
    link.run(30, Rate::from_mbps(100), wanted);
    // 8 connections, and a fifth to spare.
    assert!((link.controller.target() - 9.6).abs() < 0.01, "{}", link.controller.target());
    // It wants less: what is far too much goes.
    link.run(200, Rate::from_mbps(100), Some(Rate::from_kbps(200)));
    assert!((2.4..=4.01).contains(&link.controller.target()), "{}", link.controller.target());
    // After a queue it is back at once.
    link.rtt = millis(140);
    link.run(20, Rate::from_mbps(100), wanted);
    let least = link.controller.target();
    link.rtt = millis(100);
    link.run(20, Rate::from_mbps(100), wanted);
    assert!(link.controller.target() > 9.0 && least < 4.5, "{least} and {}", link.controller.target());
}

#[test]
fn what_a_stream_saved_carries_it_beside_others() {
    let wanted = Rate::from_kbps(200);
    let mut link = Link::new(Parameters::AUTO);
    // The shortest round trip; then a queue stands, and for `seconds` one connection is allowed `one`.
    link.run(1, Rate::from_mbps(1), Some(wanted));
    let mut run = |seconds: u64, one: Rate| {
        for round_trip in 0..seconds * 1000 / 140 {
            link.rtt = millis(130 + 20 * (round_trip / 15 % 2));
            link.now += link.rtt;
            let allowed = Rate::from_bps_f64(one.as_f64() * link.controller.target());
            link.controller.report(link.now, link.rtt, &usage(allowed, Rate::from_mbps(1), Some(wanted)));
        }
        link.controller.target()
    };
    // A connection that sends half of what it may saves the other half.
    assert!(run(10, Rate::from_kbps(400)) < 1.01);
    // Then it may not send enough: 2.4 connections do, for as long as what is missing is no more than what
    // was saved.
    assert!((run(1, Rate::from_kbps(100)) - 2.4).abs() < 0.01);
    assert!((run(17, Rate::from_kbps(100)) - 2.4).abs() < 0.01);
    assert!(run(20, Rate::from_kbps(100)) < 1.5);
}

#[test]
fn a_limit_without_a_queue_ends_the_growth() {
    for wanted in [None, Some(Rate::from_mbps(10))] {
        let mut link = Link::new(Parameters::AUTO);
        // A policer of 400 kbit/s.
        let mut most = 0.0f64;
        for _ in 0..500 {
            link.run(1, Rate::from_kbps(400), wanted);
            most = most.max(link.controller.target());
        }
        // What it lets through takes four connections, and the number may be at fifty.
        assert!(most < 16.0 && link.controller.target() < 12.0, "{most}, {}", link.controller.target());
    }
}

proptest! {
    #[test]
    fn the_number_stays_in_its_bounds_whatever_comes(
        parameters in parameters(),
        samples in prop::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 0..200),
    ) {
        let mut controller = MulTfrc::new(parameters);
        let mut now = Time::ZERO;
        for (time, sample, is_near) in samples {
            // Time may leap, and go backwards.
            now = if is_near { now + Duration::from_nanos(time % 1_000_000_000) } else { Time::from_nanos(time) };
            let sample = Duration::from_nanos(if is_near { sample % 1_000_000_000 } else { sample });
            let decision = controller.rtt(now, sample);
            let most = f64::from(parameters.most_connections.max(1));
            prop_assert!((1.0..=most).contains(&controller.target()), "{}", controller.target());
            prop_assert!((f64::from(controller.connections()) - controller.target()).abs() <= 0.5);
            prop_assert!(decision.is_none_or(|decision| decision.target == controller.target()));
        }
    }
}
