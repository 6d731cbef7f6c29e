//! The BPF code against the core, event by event, on the core's own traces and on traces drawn here.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use congestion::control::{Ack, Loss, Start, Timeout};
use congestion::tfwc::Tuning;
use congestion::trace::{Event, Trace, Windows};
use kernel::replay::Replay;
use kernel::{Error, Setting};
use units::{Bytes, Duration, Time};

/// The BPF code for a flow that begins; `None`, and a line that says why, where this machine cannot run it.
fn replay(setting: Setting, start: &Start) -> Option<Replay> {
    match Replay::new(setting, start) {
        Ok(replay) => Some(replay),
        Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_))) => {
            println!("SKIPPED: {error}");
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

/// SplitMix64, so that the traces are the same everywhere.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

#[test]
fn windows_agree_whatever_happens() {
    let tuning = |tp| Setting::Ttfwc(Tuning::new(tp).unwrap());
    let settings =
        [Setting::Tfwc, tuning(0.4), tuning(0.9), tuning(1.0), Setting::MulTcp(1.0), Setting::MulTcp(7.5)];
    for (seed, setting) in (0..24).zip(settings.into_iter().cycle()) {
        let mut draws = Draws(seed);
        let segment = Bytes::new(1448);
        let start = Start {
            segment,
            initial_window: segment * 10,
            initial_ssthresh: (seed % 3 == 0).then_some(segment * 64),
        };
        let mut core = setting.algorithm().controller(&start);
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
