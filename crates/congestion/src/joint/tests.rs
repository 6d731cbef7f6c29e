use anabranch_units::Bytes;
use proptest::prelude::*;

use super::*;
use crate::control::{Ack, Controller, Loss, Start, Timeout};
use crate::multcp::MulTcp;

fn weight(number: f64) -> Weight {
    Weight::new(number).unwrap()
}

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// A member whose window is what holds it back.
fn limited(now: Time, srtt_ms: u64, window: u32) -> MemberReport {
    MemberReport {
        now,
        delivered: 1,
        lost: 0,
        has_timed_out: false,
        srtt: Duration::from_millis(srtt_ms),
        used: window,
        is_limited: true,
    }
}

/// The windows of all virtual flows, whether they count or not.
fn windows(group: &JointWindow) -> f64 {
    group.members.iter().flatten().map(|member| member.cwnd).sum()
}

/// A group of members that all have something to send, after some seconds of acknowledgements: round trips in
/// ms, weights.
fn running(members: &[(u64, f64)]) -> (JointWindow, u64) {
    let mut group = JointWindow::new(10);
    for (_, each) in members {
        group.join(weight(*each), at(0)).unwrap();
    }
    let mut millis = 0;
    for _ in 0..400 {
        millis += 1;
        for (place, (srtt, _)) in members.iter().enumerate() {
            let window = group.window(place, at(millis));
            group.heard(place, &limited(at(millis), *srtt, window));
        }
        if millis % 100 == 0 {
            let heard =
                MemberReport { lost: 3, ..limited(at(millis), members[0].0, group.window(0, at(millis))) };
            group.heard(0, &heard);
        }
    }
    (group, millis)
}

#[test]
fn rates_stand_as_the_weights() {
    for members in [&[(40, 4.0), (40, 2.0), (40, 1.0)][..], &[(20, 1.0), (80, 4.0), (160, 8.0)]] {
        let (group, millis) = running(members);
        let now = at(millis);
        let total: f64 = members.iter().map(|(srtt, weight)| *srtt as f64 * weight).sum();
        for (place, (srtt, weight)) in members.iter().enumerate() {
            let part = group.total(now) * *srtt as f64 * weight / total;
            let window = f64::from(group.window(place, now));
            assert!((window - part).abs() <= 0.6, "member {place}: {window} in place of {part}");
        }
    }
}

#[test]
fn what_one_leaves_goes_to_the_others_by_their_weights() {
    let (mut group, millis) = running(&[(40, 4.0), (40, 2.0), (40, 1.0)]);
    let now = at(millis + 1);
    // Five packets are all that the first one has to send.
    for _ in 0..5 {
        let idle = MemberReport { used: 5, is_limited: false, ..limited(now, 40, 5) };
        group.heard(0, &idle);
        group.heard(1, &limited(now, 40, 10));
    }
    let rest = group.total(now) - 5.0;
    assert!((f64::from(group.window(1, now)) - rest * 2.0 / 3.0).abs() <= 0.6);
    assert!((f64::from(group.window(2, now)) - rest / 3.0).abs() <= 0.6);
    // It may come back, and as slow start would.
    assert_eq!(group.window(0, now), 10);
    let before = group.window(1, now);
    for _ in 0..200 {
        group.heard(0, &limited(now, 40, 10));
    }
    assert!(group.window(1, now) < before);
    let part = group.total(now) * 4.0 / 7.0;
    assert!((f64::from(group.window(0, now)) - part).abs() <= 0.6, "{} of {part}", group.window(0, now));
}

#[test]
fn a_member_that_is_silent_or_gone_hands_over() {
    let (mut group, millis) = running(&[(40, 4.0), (40, 1.0)]);
    let later = at(millis + 300);
    for place in (0..300).step_by(50) {
        group.heard(1, &limited(at(millis + place), 40, 10));
    }
    // Its window comes to all of it as in slow start.
    for _ in 0..100 {
        group.heard(1, &limited(later, 40, 10));
    }
    assert!(
        (f64::from(group.window(1, later)) - group.total(later)).abs() <= 0.5,
        "silent, and its flow counts"
    );
    group.leave(0, later);
    group.heard(1, &limited(later, 40, 10));
    assert!((f64::from(group.window(1, later)) - group.total(later)).abs() <= 0.5, "gone with its flow");
    assert_eq!(group.counted(later).count(), 1);
    // Nobody counts for ever.
    let much_later = at(millis + 60_000);
    assert!(group.total(much_later) == 0.0);
    assert_eq!(group.window(1, much_later), 10);
}

#[test]
fn who_is_silent_for_two_seconds_counts_for_nothing() {
    let (mut group, mut millis) = running(&[(40, 1.0), (40, 1.0), (40, 1.0)]);
    let own = group.members[2].unwrap().cwnd;
    // Two rest, and one goes on with what its part is.
    for _ in 0..40 {
        millis += 50;
        let window = group.window(2, at(millis));
        group.heard(2, &MemberReport { delivered: 0, ..limited(at(millis), 40, window) });
    }
    assert!((group.total(at(millis)) - own).abs() < 1.0, "{} of {own}", group.total(at(millis)));
    // One comes back, as a flow that begins.
    let cwnd = group.members[0].unwrap().cwnd;
    assert!(cwnd > 10.0, "{cwnd}");
    group.heard(0, &limited(at(millis), 40, 1));
    assert!(group.members[0].unwrap().cwnd <= 11.0);
}

#[test]
fn members_that_send_a_packet_a_second_bring_nothing_to_the_one_that_wants_more() {
    let mut group = JointWindow::new(10);
    (0..11).for_each(|_| assert!(group.join(Weight::ONE, at(0)).is_some()));
    for second in 0..20 {
        for place in 1..11 {
            let trickle = MemberReport { used: 1, is_limited: false, ..limited(at(second * 1000), 100, 10) };
            group.heard(place, &trickle);
        }
        for step in 1..10 {
            let now = at(second * 1000 + step * 100);
            let window = group.window(0, now);
            group.heard(0, &MemberReport { delivered: 0, ..limited(now, 100, window) });
        }
    }
    // Ten packets of its own flow, and nothing of ten flows' hundred.
    assert!(group.total(at(20_000)) < 15.0, "{}", group.total(at(20_000)));
    // What they could send at once as plain flows they still may.
    assert_eq!(group.window(3, at(20_000)), 10);
}

#[test]
fn what_one_loses_is_not_of_flows_of_which_their_members_use_little() {
    let mut group = JointWindow::new(10);
    (0..11).for_each(|_| assert!(group.join(Weight::ONE, at(0)).is_some()));
    for tenth in 0..200 {
        let now = at(tenth * 100);
        if tenth % 10 == 0 {
            let trickle = MemberReport { used: 1, is_limited: false, ..limited(now, 100, 10) };
            (1..11).for_each(|place| group.heard(place, &trickle));
        }
        let window = group.window(0, now);
        group.heard(0, &limited(now, 100, window));
    }
    let windows =
        |group: &JointWindow| -> Vec<f64> { group.members.iter().flatten().map(|one| one.cwnd).collect() };
    let before = windows(&group);
    let heard = limited(at(20_000), 100, group.window(0, at(20_000)));
    group.heard(0, &MemberReport { delivered: 0, lost: 8, ..heard });
    let after = windows(&group);
    assert!(after[0] < 0.6 * before[0], "{before:?} {after:?}");
    assert_eq!(after[1..], before[1..]);
}

#[test]
fn an_older_loss_that_a_farther_member_sees_later_does_not_halve_again() {
    let (mut group, millis) = running(&[(20, 1.0), (200, 1.0)]);
    let windows = |group: &JointWindow| [0, 1].map(|place| group.members[place].unwrap().cwnd);
    let now = at(millis + 1000);
    group.heard(0, &MemberReport { delivered: 1000, ..limited(now, 20, 10) });
    group.heard(1, &MemberReport { delivered: 1000, ..limited(now, 200, 10) });
    group.heard(0, &MemberReport { delivered: 0, lost: 20, ..limited(now, 20, 10) });
    let halved = windows(&group);
    // The near one hears of all that was in flight and more, 50 ms later; the far one now sees losses of what
    // was sent before.
    let later = at(millis + 1050);
    group.heard(0, &MemberReport { delivered: 1000, is_limited: false, ..limited(later, 20, 10) });
    group.heard(1, &MemberReport { delivered: 0, lost: 20, ..limited(later, 200, 10) });
    assert!(windows(&group) >= halved, "{:?} {halved:?}", windows(&group));
    // A round trip of its own later they are losses of what was sent since.
    let later = at(millis + 1250);
    let before = windows(&group);
    group.heard(1, &MemberReport { delivered: 0, lost: 20, ..limited(later, 200, 10) });
    assert!(windows(&group)[1] < 0.6 * before[1], "{:?} {before:?}", windows(&group));
}

#[test]
fn a_member_that_dies_halves_a_flow_for_each_window_that_it_had_in_flight_and_not_everybodys() {
    let (mut group, millis) = running(&[(40, 1.0), (40, 1.0), (40, 1.0), (40, 1.0)]);
    let now = at(millis + 100);
    group.heard(1, &MemberReport { delivered: 1000, ..limited(now, 40, 10) });
    let windows = |group: &JointWindow| [0, 1, 2, 3].map(|place| group.members[place].unwrap().cwnd);
    let before = windows(&group);
    let lost = before[0] as u32;
    let dead = MemberReport { delivered: 0, lost, has_timed_out: true, ..limited(now, 40, lost) };
    group.heard(0, &dead);
    let after = windows(&group);
    let halved = before.iter().zip(after).filter(|(before, after)| *after < 0.6 * **before).count();
    let kept = before.iter().zip(after).filter(|(before, after)| after == *before).count();
    assert!(halved == 1 && kept == 3, "{before:?} {after:?}");
}

#[test]
fn a_burst_of_losses_halves_as_many_flows_as_it_has_packets() {
    let (group, millis) = running(&[(40, 8.0), (40, 4.0), (40, 1.0)]);
    let now = at(millis + 100);
    let after = |lost: u32| {
        let mut group = group.clone();
        // Every recovery is over.
        group.heard(0, &MemberReport { delivered: 1000, ..limited(now, 40, 1000) });
        let before = group.total(now);
        group.heard(0, &MemberReport { delivered: 0, lost, ..limited(now, 40, 1000) });
        group.total(now) / before
    };
    assert!(after(1) > 0.6 && after(1) < 0.9, "{}", after(1));
    assert!((after(20) - 0.5).abs() < 0.01, "{}", after(20));
    assert!((after(20) - after(1000)).abs() < 1e-9);
}

#[test]
fn a_burst_of_one_that_sends_seldom_halves_its_own_flow_alone() {
    let (mut group, millis) = running(&[(40, 1.0), (40, 1.0)]);
    let now = at(millis + 100);
    // Every recovery is over.
    group.heard(1, &MemberReport { delivered: 1000, ..limited(now, 40, 1000) });
    let rest = group.total(now) as u32 - 10;
    group.heard(1, &MemberReport { delivered: 0, ..limited(now, 40, rest) });
    let idle = MemberReport { used: 10, is_limited: false, ..limited(now, 40, 10) };
    group.heard(0, &idle);
    let after = |loser: usize, heard: &MemberReport| {
        let mut group = group.clone();
        let windows = |group: &JointWindow| [0, 1].map(|place| group.members[place].unwrap().cwnd);
        let before = windows(&group);
        group.heard(loser, heard);
        [0, 1].map(|place| windows(&group)[place] / before[place])
    };
    let [own, other] = after(0, &MemberReport { delivered: 0, lost: 10, ..idle });
    assert!(own < 0.51 && other == 1.0, "{own} {other}");
    let [own, other] = after(1, &MemberReport { delivered: 0, lost: 10, ..limited(now, 40, rest) });
    assert!(own < 0.51 && other < 0.51, "{own} {other}");
}

#[test]
fn a_window_that_nobody_fills_does_not_grow() {
    let mut group = JointWindow::new(10);
    group.join(Weight::ONE, at(0)).unwrap();
    group.join(Weight::ONE, at(0)).unwrap();
    for millis in 1..1000 {
        for place in 0..2 {
            let heard = MemberReport { used: 3, is_limited: false, ..limited(at(millis), 40, 3) };
            group.heard(place, &heard);
        }
    }
    assert!(group.total(at(1000)) <= 22.0, "{}", group.total(at(1000)));
}

#[test]
fn a_full_group_takes_nobody_and_a_place_is_used_again() {
    let mut group = JointWindow::new(10);
    for _ in 0..MOST_MEMBERS {
        assert!(group.join(Weight::ONE, at(0)).is_some());
    }
    assert_eq!(group.join(Weight::ONE, at(0)), None);
    group.leave(7, at(0));
    assert_eq!(group.join(Weight::ONE, at(0)), Some(7));
}

#[test]
fn who_joins_late_brings_the_window_that_it_has() {
    let mut group = JointWindow::new(10);
    group.join(Weight::ONE, at(0)).unwrap();
    let before = group.total(at(0));
    let late = group.join_late(Weight::ONE, 40, 20, at(0)).unwrap();
    assert_eq!(group.total(at(0)) - before, 40.0);
    // Its half of both windows; the other member comes to its own as slow start would.
    group.heard(late, &limited(at(1), 40, 40));
    assert!((25..=42).contains(&group.window(late, at(1))), "{}", group.window(late, at(1)));
    // Beyond its threshold it does not begin with slow start.
    assert!(group.members[late].unwrap().cwnd < 41.0);
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    Acknowledged,
    Lost,
    TimedOut,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        200 => Just(Happens::Acknowledged),
        3 => Just(Happens::Lost),
        1 => Just(Happens::TimedOut),
    ]
}

proptest! {
    /// One member alone is Reno, as it is driven here: full windows, every packet acknowledged by itself.
    #[test]
    fn one_member_is_reno(events in prop::collection::vec(happens(), 1..2000)) {
        let segment = Bytes::new(1000);
        let start = Start { segment, initial_window: segment * 10, initial_ssthresh: None, seed: 0 };
        let mut reno = MulTcp::reno(&start);
        let mut group = JointWindow::new(10);
        let place = group.join(Weight::ONE, at(0)).unwrap();
        // Of what was in flight at a time-out; what is lost of it belongs to the time-out (RFC 6675, section
        // 5.1).
        let mut timed_out = 0;
        // A loss is found by what was sent after it.
        let mut has_acked = true;
        let mut millis = 0;
        for event in events {
            millis += 1;
            let now = at(millis);
            let window = (reno.cwnd().get() / 1000) as u32;
            let flight = segment * u64::from(window);
            let heard = limited(now, 40, window);
            match event {
                Happens::Lost | Happens::TimedOut if timed_out > 0 || !has_acked => {}
                Happens::Acknowledged => {
                    timed_out = u32::saturating_sub(timed_out, 1);
                    has_acked = true;
                    let srtt = Duration::from_millis(40);
                    reno.on_ack(&Ack { now, acked: segment, flight, rtt: None, srtt, is_cwnd_limited: true });
                    group.heard(place, &heard);
                }
                Happens::Lost => {
                    has_acked = false;
                    reno.on_loss(&Loss { now, flight });
                    group.heard(place, &MemberReport { delivered: 0, lost: 1, ..heard });
                    // Its recovery: what was in flight is acknowledged, and grows nothing.
                    group.heard(place, &MemberReport { delivered: window, ..heard });
                    // That takes a round trip.
                    millis += 40;
                }
                Happens::TimedOut => {
                    timed_out = window;
                    reno.on_timeout(&Timeout { now, flight, is_repeated: false });
                    group.heard(place, &MemberReport { delivered: 0, lost: window, has_timed_out: true, ..heard });
                    millis += 40;
                }
            }
            let difference = f64::from(group.window(place, now)) - reno.cwnd().as_f64() / 1000.0;
            prop_assert!(difference.abs() <= 2.0, "{millis}: {} and {}", group.window(place, now), reno.cwnd());
        }
    }

    /// Whatever happens, the windows of those who can use them are the joint window or less, and nothing
    /// grows without bound.
    #[test]
    fn windows_are_bounded(
        weights in prop::collection::vec(0.001..1000.0, 1..=MOST_MEMBERS),
        events in prop::collection::vec((0..MOST_MEMBERS + 1, 0u32..50, 0u32..40, 0u64..500, 0u32..200, any::<bool>(), 0u64..400, 0..60u8), 1..500),
    ) {
        let mut group = JointWindow::new(10);
        for each in &weights {
            group.join(weight(*each), at(0)).unwrap();
        }
        let mut millis = 0;
        for (place, delivered, lost, srtt_ms, used, is_limited, pause, kind) in events {
            millis += pause;
            let now = at(millis);
            if kind == 0 {
                group.leave(place, now);
                continue;
            }
            let srtt = Duration::from_millis(srtt_ms);
            let before = windows(&group);
            group.heard(place, &MemberReport { now, delivered, lost, has_timed_out: kind == 1, srtt, used, is_limited });
            let total = group.total(now);
            prop_assert!(total.is_finite());
            // At the most every flow grows by what was delivered, and what counts is at the most all of each:
            // one that is used again counts in full with the window that it had.
            prop_assert!(windows(&group) <= before + f64::from(delivered) * weights.len() as f64 + 1e-6);
            prop_assert!(total <= windows(&group) + 1e-6);
            for member in 0..weights.len() {
                let window = f64::from(group.window(member, now));
                // What a flow begins with is always its member's.
                prop_assert!(window >= 1.0 && window <= total.max(10.0) + 0.5);
            }
        }
    }
}
