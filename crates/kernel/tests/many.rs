//! A group with all its places taken against the core's, which has fewer: those that it lacks are gone, or
//! rest.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use anabranch_congestion::joint::{JointWindow, MOST_MEMBERS, MemberReport};
use anabranch_kernel::replay::ReplayGroup;
use anabranch_kernel::{Error, Setting, Weight};
use anabranch_testkit::Random;
use anabranch_units::{Duration, Time};

const EVENTS: u64 = 20_000;
/// Each of the core's places is so many of the kernel's.
const SPREAD: usize = Setting::MOST_MEMBERS / MOST_MEMBERS;

/// A full group in the kernel, and the core's with every eighth of its members; `None` where this machine
/// cannot run it.
fn groups(now: Time) -> Option<(ReplayGroup, JointWindow)> {
    let mut kernel = match ReplayGroup::new() {
        Ok(kernel) => kernel,
        Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_))) => {
            anabranch_testkit::skipped(error);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let mut core = JointWindow::new(10);
    for place in 0..Setting::MOST_MEMBERS {
        assert_eq!(kernel.join(Weight::ONE, now).unwrap(), Some(place));
    }
    for place in 0..MOST_MEMBERS {
        assert_eq!(core.join(Weight::ONE, now), Some(place));
    }
    assert_eq!(kernel.join(Weight::ONE, now).unwrap(), None);
    Some((kernel, core))
}

/// What one of the core's members hears: it fills its window, or sends little.
fn report(draws: &mut Random, now: Time, place: usize, window: u32) -> MemberReport {
    let is_limited = !place.is_multiple_of(5);
    MemberReport {
        now,
        delivered: 1 + draws.below(2) as u32,
        lost: if draws.below(400) == 0 { 1 + draws.below(3) as u32 } else { 0 },
        has_timed_out: false,
        srtt: Duration::from_millis(20 + place as u64),
        used: if is_limited { window } else { 1 },
        is_limited,
    }
}

/// Lets the same happen to both; answers how many of the windows are apart by more than a packet and this
/// part of them.
fn apart(kernel: &mut ReplayGroup, core: &mut JointWindow, mut now: Time, part: f64) -> u64 {
    let (mut draws, mut apart) = (Random::new(7), 0);
    let weights = [0.5, 1.0, 4.0, 8.0].map(|weight| Weight::new(weight).unwrap());
    for place in 0..MOST_MEMBERS {
        core.set_weight(place, weights[place % 4]);
        kernel.set_weight(SPREAD * place, weights[place % 4]);
    }
    for _ in 0..EVENTS {
        now += Duration::from_micros(draws.below(1500));
        let place = draws.below(MOST_MEMBERS as u64) as usize;
        let heard = report(&mut draws, now, place, core.window(place, now));
        core.heard(place, &heard);
        let (window, total) = kernel.heard(SPREAD * place, &heard).unwrap();
        let differ = |kernel: f64, core: f64| (kernel - core).abs() > 1.0 + part * core;
        if differ(window.into(), core.window(place, now).into()) || differ(total, core.total(now)) {
            apart += 1;
        }
    }
    apart
}

#[test]
fn a_place_that_is_free_again_is_taken_wherever_it_is() {
    let now = Time::ZERO + Duration::from_secs(1);
    let Some((mut kernel, _)) = groups(now) else { return };
    for place in [255, 0, 100, 31] {
        kernel.leave(place, now).unwrap();
        assert_eq!(kernel.join(Weight::ONE, now).unwrap(), Some(place));
        assert_eq!(kernel.join(Weight::ONE, now).unwrap(), None);
    }
    // The first of several.
    for place in [200, 40, 255] {
        kernel.leave(place, now).unwrap();
    }
    for place in [40, 200, 255] {
        assert_eq!(kernel.join(Weight::ONE, now).unwrap(), Some(place));
    }
}

#[test]
fn members_that_are_gone_count_for_nothing() {
    let now = Time::ZERO + Duration::from_secs(1);
    let Some((mut kernel, mut core)) = groups(now) else { return };
    for place in (0..Setting::MOST_MEMBERS).filter(|place| !place.is_multiple_of(SPREAD)) {
        kernel.leave(place, now).unwrap();
    }
    let apart = apart(&mut kernel, &mut core, now, 0.01);
    println!("{apart} of {EVENTS} events apart");
    assert!(apart * 20 < EVENTS, "{apart} of {EVENTS} events are apart");
}

/// With that many members all of them are looked at every 51 ms, or 13 ms in slow start.
#[test]
fn members_that_rest_count_for_nothing() {
    let now = Time::ZERO + Duration::from_secs(1);
    let Some((mut kernel, mut core)) = groups(now) else { return };
    let apart = apart(&mut kernel, &mut core, now + Duration::from_millis(2500), 0.1);
    println!("{apart} of {EVENTS} events apart");
    assert!(apart * 20 < EVENTS, "{apart} of {EVENTS} events are apart");
}
