//! The BPF code against the core, event by event, on the core's own traces and on traces drawn here.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use anabranch_congestion::control::{Ack, Loss, Start, Timeout};
use anabranch_congestion::joint::{JointWindow, MemberReport};
use anabranch_congestion::tfwc::Tuning;
use anabranch_congestion::trace::{Event, Trace, Windows};
use anabranch_kernel::replay::{Replay, ReplayGroup};
use anabranch_kernel::{Error, Setting, Weight};
use anabranch_testkit::Random;
use anabranch_units::{Bytes, Duration, Time};

/// The BPF code for a flow that begins; `None`, and a line that says why, where this machine cannot run it.
fn replay(setting: Setting, start: &Start) -> Option<Replay> {
    match Replay::new(setting, start) {
        Ok(replay) => Some(replay),
        Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_))) => {
            anabranch_testkit::skipped(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn packets(bytes: Bytes, segment: Bytes) -> f64 {
    bytes.as_f64() / segment.as_f64()
}

/// Within a packet. Windows beyond any path are not compared: the kernel's numbers end at 2^31 packets.
fn agree(kernel: Windows, core: Windows, segment: Bytes, place: &str) {
    let near = |a: Bytes, b: Bytes| a == b || (packets(a, segment) - packets(b, segment)).abs() <= 1.0;
    assert!(
        near(kernel.cwnd, core.cwnd),
        "{place}: the kernel's cwnd is {}, the core's {}",
        kernel.cwnd,
        core.cwnd
    );
    assert!(
        near(kernel.ssthresh, core.ssthresh),
        "{place}: the kernel's ssthresh is {}, the core's {}",
        kernel.ssthresh,
        core.ssthresh
    );
}

fn setting(algorithm: &str) -> Option<Setting> {
    match algorithm.split_once(':') {
        None if algorithm == "tfwc" => Some(Setting::Tfwc),
        Some(("ttfwc", tuning)) => Some(Setting::Ttfwc(tuning.parse().ok()?)),
        Some(("multcp", flows)) => Some(Setting::MulTcp(flows.parse().ok()?)),
        _ => None,
    }
}

#[test]
fn windows_agree_on_the_traces_of_the_core() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../congestion/tests/traces");
    let mut compared = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let trace = Trace::read(&fs::read_to_string(&path).unwrap()).unwrap();
        let Some(setting) = setting(&trace.algorithm) else { continue };
        let Some(mut replay) = replay(setting, &trace.start) else { return };
        for (number, step) in trace.steps.iter().enumerate() {
            let place = format!("{}, event {}", trace.algorithm, number + 1);
            agree(replay.event(&step.event).unwrap(), step.windows, trace.start.segment, &place);
            compared += 1;
        }
    }
    println!("{compared} events");
    assert!(compared > 2000, "the traces have {compared} events");
}

#[test]
fn windows_agree_whatever_happens() {
    let tuning = |tp| Setting::Ttfwc(Tuning::new(tp).unwrap());
    let settings =
        [Setting::Tfwc, tuning(0.4), tuning(0.9), tuning(1.0), Setting::MulTcp(1.0), Setting::MulTcp(7.5)];
    for (seed, setting) in (0..24).zip(settings.into_iter().cycle()) {
        let mut draws = Random::new(seed);
        let segment = Bytes::new(1448);
        let start = Start {
            segment,
            initial_window: segment * 10,
            initial_ssthresh: (seed % 3 == 0).then_some(segment * 64),
            seed: 0,
        };
        let mut core = setting.algorithm().unwrap().controller(&start);
        let Some(mut replay) = replay(setting, &start) else { return };
        // Losses from one in ten packets to one in ten thousand.
        let loss_every = 10u64.pow(1 + (seed % 4) as u32);
        for number in 0..4000u64 {
            // Whole packets are in flight.
            let flight = segment * (core.cwnd().get() / segment.get());
            let now = Time::ZERO + Duration::from_millis(number);
            let event = match draws.below(loss_every) {
                0 if draws.below(20) == 0 => {
                    Event::Timeout(Timeout { now, flight, is_repeated: draws.below(5) == 0 })
                }
                0 => Event::Loss(Loss { now, flight }),
                _ if draws.below(500) == 0 => Event::Idle(now),
                _ => Event::Ack(Ack {
                    now,
                    acked: segment * (1 + draws.below(2)),
                    flight,
                    rtt: None,
                    srtt: Duration::from_millis(50),
                    is_cwnd_limited: draws.below(10) != 0,
                }),
            };
            event.tell(core.as_mut());
            let place = format!("seed {seed}, {setting}, event {} ({event:?})", number + 1);
            agree(replay.event(&event).unwrap(), Windows::of(core.as_ref()), segment, &place);
        }
    }
}

/// The group against the core's: members that come and go, some of which send little and seldom, with
/// changing weights, losses, time-outs, and pauses after which flows count still and no more.
#[test]
fn the_windows_of_a_group_agree_whatever_happens() {
    let (mut compared, mut apart) = (0, 0);
    for seed in 0..16 {
        let mut draws = Random::new(100 + seed);
        let mut core = JointWindow::new(10);
        let mut kernel = match ReplayGroup::new() {
            Ok(kernel) => kernel,
            Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_))) => {
                anabranch_testkit::skipped(error);
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let mut members: Vec<(usize, u64, bool)> = Vec::new();
        let mut windows = [10u32; 32];
        let mut now = Time::ZERO + Duration::from_secs(1);
        let loss_every = [30, 100, 1000][seed as usize % 3];
        for number in 0..4000u64 {
            now += Duration::from_micros(draws.below(4000));
            let weight = |draws: &mut Random| {
                Weight::new([0.25, 1.0, 2.0, 4.0, 8.0][draws.below(5) as usize]).unwrap()
            };
            if members.len() < 2 || (members.len() < 6 && draws.below(300) == 0) {
                let weight = weight(&mut draws);
                // Every third was on its own before, and brings what it has.
                let (place, window) = if draws.below(3) == 0 {
                    let (cwnd, ssthresh) = (2 + draws.below(60) as u32, 2 + draws.below(60) as u32);
                    let place = core.join_late(weight, cwnd, ssthresh, now).unwrap();
                    assert_eq!(kernel.join_late(weight, cwnd, ssthresh, now).unwrap(), Some(place));
                    (place, cwnd)
                } else {
                    let place = core.join(weight, now).unwrap();
                    assert_eq!(kernel.join(weight, now).unwrap(), Some(place));
                    (place, 10)
                };
                members.push((place, 10_000 + 5_000 * draws.below(20), draws.below(4) == 0));
                windows[place] = window;
                continue;
            }
            if draws.below(600) == 0 {
                let (place, ..) = members.swap_remove(draws.below(members.len() as u64) as usize);
                core.leave(place, now);
                kernel.leave(place, now).unwrap();
                continue;
            }
            let (place, srtt_us, is_quiet) = members[draws.below(members.len() as u64) as usize];
            if is_quiet && draws.below(40) != 0 {
                continue;
            }
            if draws.below(200) == 0 {
                let weight = weight(&mut draws);
                core.set_weight(place, weight);
                kernel.set_weight(place, weight);
            }
            if draws.below(1500) == 0 {
                now += Duration::from_millis(if draws.below(3) == 0 { 2200 } else { 400 });
            }
            let (is_lost, is_limited) = (draws.below(loss_every) == 0, !is_quiet && draws.below(30) != 0);
            let heard = MemberReport {
                now,
                delivered: 1 + draws.below(2) as u32,
                lost: if is_lost { 1 + draws.below(4) as u32 } else { 0 },
                has_timed_out: is_lost && draws.below(10) == 0,
                srtt: Duration::from_micros(srtt_us + draws.below(2000)),
                used: if is_limited { windows[place] } else { windows[place] / if is_quiet { 8 } else { 2 } },
                is_limited,
            };
            core.heard(place, &heard);
            let (window, total) = kernel.heard(place, &heard).unwrap();
            let place_told = format!("seed {seed}, event {} of member {place} ({heard:?})", number + 1);
            let ours = core.window(place, now);
            // Rounding alone; what is more is a choice of the other flow.
            if (total - core.total(now)).abs() > 1.0 || window.abs_diff(ours) > 1 {
                apart += 1;
            }
            assert!(
                window >= 1 && f64::from(window) <= total.max(10.0) + 0.5,
                "{place_told}: {window} of {total}"
            );
            windows[place] = ours;
            compared += 1;
        }
    }
    println!("{compared} events, {apart} of them apart");
    assert!(compared > 16 * 2500, "{compared}");
    // Where two flows are alike next in turn to lose, rounding decides, and the two go apart until later
    // losses have halved what is between them.
    assert!(apart * 200 < compared, "{apart} of {compared} events are apart");
}

/// A map of root's can be written to by whatever root runs. Then a window is wrong, but no number overflows.
#[test]
fn windows_grow_by_a_thousand_flows_at_the_most_whatever_the_parameters_are() {
    let segment = Bytes::new(1448);
    let start = Start { segment, initial_window: segment * 10, initial_ssthresh: None, seed: 0 };
    for seed in 0..60 {
        let mut draws = Random::new(1000 + seed);
        let Some(mut replay) = replay(Setting::MulTcp(2.0), &start) else { return };
        let mut cwnd = 10.0;
        for number in 0..500 {
            if number % 100 == 0 {
                let extremes = [0, 1, 8, 1 << 20, 1 << 31, u32::MAX];
                let mut words = [0; 8].map(|_| extremes[draws.below(6) as usize]);
                words[0] = 1 + draws.below(3) as u32;
                replay.garble(words).unwrap();
            }
            let acked = 1 + draws.below(40);
            let event = if draws.below(30) == 0 {
                Event::Loss(Loss { now: Time::ZERO, flight: segment * cwnd as u64 })
            } else {
                Event::Ack(Ack {
                    now: Time::ZERO,
                    acked: segment * acked,
                    flight: segment * cwnd as u64,
                    rtt: None,
                    srtt: Duration::from_millis(50),
                    is_cwnd_limited: true,
                })
            };
            let windows = replay.event(&event).unwrap();
            let next = packets(windows.cwnd, segment);
            let most = (cwnd + 1000.0 * acked as f64 + 1.0).min(f64::from(1 << 19));
            assert!(
                (1.0..=most).contains(&next),
                "seed {seed}, event {number} ({event:?}): from {cwnd} to {next} packets"
            );
            cwnd = next;
        }
    }
}

/// What of a window is still lost belongs to its loss event: the kernel may ask for a threshold again before
/// anything is acknowledged.
#[test]
fn a_threshold_asked_for_twice_is_one_loss_event() {
    let segment = Bytes::new(1448);
    let start =
        Start { segment, initial_window: segment * 100, initial_ssthresh: Some(segment * 100), seed: 0 };
    let ack = Event::Ack(Ack {
        now: Time::ZERO,
        acked: segment,
        flight: segment * 50,
        rtt: None,
        srtt: Duration::from_millis(50),
        is_cwnd_limited: true,
    });
    let Some(mut tfwc) = replay(Setting::Tfwc, &start) else { return };
    let first = tfwc.threshold(segment * 100).unwrap();
    assert!(first.ssthresh < segment * 60, "{}", first.ssthresh);
    assert_eq!(tfwc.threshold(segment * 50).unwrap(), first);
    tfwc.event(&ack).unwrap();
    assert_ne!(tfwc.threshold(segment * 50).unwrap().ssthresh, first.ssthresh);
    // MulTCP has no history that a loss would count in twice.
    let mut multcp = replay(Setting::MulTcp(2.0), &start).unwrap();
    let first = multcp.threshold(segment * 100).unwrap();
    assert_ne!(multcp.threshold(segment * 50).unwrap(), first);
}
