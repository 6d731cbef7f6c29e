//! Traces: they are read as they were written, and the recorded ones still give the windows they gave.
//!
//! `ANABRANCH_WRITE_TRACES=1 cargo test -p anabranch-congestion --test trace` writes the recorded ones again,
//! after a change that is meant.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::control::{Ack, Controller, Loss, Pacing, Start, Timeout};
use anabranch_congestion::trace::{Recorder, Trace};
use anabranch_units::{Bytes, Duration, Time};
use proptest::prelude::*;

const SEGMENT: u64 = 1448;
const ALGORITHMS: [&str; 7] =
    ["reno", "cubic", "multcp:4", "tfwc", "ttfwc:0.4", "ttfwc:0.9", "ttfwc-approximate:0.9"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

fn file(algorithm: &str) -> PathBuf {
    folder().join(format!("{}.jsonl", algorithm.replace(':', "-")))
}

fn start() -> Start {
    Start {
        segment: Bytes::new(SEGMENT),
        initial_window: Bytes::new(10 * SEGMENT),
        initial_ssthresh: None,
        seed: 0,
    }
}

/// Repeatable numbers without a library: a linear congruential generator (Knuth's MMIX).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A path of 80 ms that loses one packet in `spacing` on average; one loss event in eight ends with a
/// time-out. Round by round: what was sent in a round trip is acknowledged in the next, two packets at a
/// time, unless a loss event is among them.
fn drive(controller: &mut dyn Controller, rounds: u32, spacing: u64, seed: u64) {
    let rtt = Duration::from_millis(80);
    let (mut now, mut numbers) = (Time::ZERO, Numbers(seed));
    let mut flight: VecDeque<u64> = VecDeque::new();
    for round in 0..rounds {
        let window = (controller.cwnd().get() / SEGMENT).max(1);
        flight.extend((0..window).map(|_| SEGMENT));
        let in_flight = Bytes::new(window * SEGMENT);
        let is_lost = (0..window).any(|_| numbers.below(spacing) == 0);
        let is_limited = round % 40 != 39;
        if is_lost && numbers.below(8) == 0 {
            now += Duration::from_millis(400);
            controller.on_timeout(&Timeout { now, flight: in_flight, is_repeated: false });
            if numbers.below(3) == 0 {
                now += Duration::from_millis(800);
                controller.on_timeout(&Timeout { now, flight: in_flight, is_repeated: true });
            }
            flight.clear();
        } else if is_lost {
            now += rtt;
            controller.on_loss(&Loss { now, flight: in_flight });
            flight.clear();
            now += rtt;
        }
        while let Some(first) = flight.pop_front() {
            let acked = Bytes::new(first + flight.pop_front().unwrap_or(0));
            now += rtt / window.max(1);
            controller.on_ack(&Ack {
                now,
                acked,
                flight: in_flight,
                rtt: Some(rtt),
                srtt: rtt,
                is_cwnd_limited: is_limited,
            });
        }
        if round % 60 == 59 {
            now += Duration::from_secs(5);
            controller.on_idle(now);
        }
    }
}

fn record(name: &str, rounds: u32, spacing: u64, seed: u64) -> Trace {
    let algorithm: Algorithm = name.parse().expect("a name");
    let recorder = Recorder::new(name, start(), Wrapped(algorithm.controller(&start())));
    let mut recorder = recorder.expect("a control without a rate");
    drive(&mut recorder, rounds, spacing, seed);
    recorder.into_trace()
}

/// A box is no controller by itself.
#[derive(Debug)]
struct Wrapped(Box<dyn Controller>);

impl Controller for Wrapped {
    fn on_ack(&mut self, ack: &Ack) {
        self.0.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.0.on_loss(loss);
    }
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.0.on_timeout(timeout);
    }
    fn on_idle(&mut self, now: Time) {
        self.0.on_idle(now);
    }
    fn pacing(&self) -> Option<Pacing> {
        self.0.pacing()
    }
    fn cwnd(&self) -> Bytes {
        self.0.cwnd()
    }
    fn ssthresh(&self) -> Bytes {
        self.0.ssthresh()
    }
}

#[test]
fn recorded_traces_give_the_windows_that_they_gave() {
    for name in ALGORITHMS {
        if std::env::var_os("ANABRANCH_WRITE_TRACES").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(file(name), record(name, 80, 100, 7).write()).unwrap();
        }
        let trace = Trace::read(&std::fs::read_to_string(file(name)).unwrap()).unwrap();
        assert_eq!(trace.algorithm, name);
        assert!(trace.steps.len() > 300, "{name}: {}", trace.steps.len());
        let mut controller = name.parse::<Algorithm>().unwrap().controller(&trace.start);
        for (number, (windows, step)) in trace.replay(controller.as_mut()).zip(&trace.steps).enumerate() {
            // Within a byte: processors may round the last bit of a logarithm differently.
            let (answered, recorded) = (windows.cwnd.get(), step.windows.cwnd.get());
            assert!(answered.abs_diff(recorded) <= 1, "{name}, line {}: {answered}, {recorded}", number + 2);
        }
    }
}

#[test]
fn a_paced_control_has_no_trace() {
    let bbr = Wrapped(Algorithm::Bbr.controller(&start()));
    let told = "a paced control has no trace";
    assert!(Recorder::new("bbr", start(), bbr).unwrap_err().to_string().starts_with(told));
    let text = record("reno", 2, 50, 1).write().replace("\"reno\"", "\"bbr\"");
    let error = Trace::read(&text).unwrap_err().to_string();
    assert!(error.starts_with(&format!("line 1: 'bbr': {told}")), "{error}");
}

#[test]
fn a_broken_line_is_told_with_its_number() {
    let text = record("reno", 10, 250, 1).write();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[3] = "{\"event\":\"ack\"}";
    let error = Trace::read(&lines.join("\n")).unwrap_err().to_string();
    assert!(error.starts_with("line 4: missing field"), "{error}");
    assert_eq!(Trace::read("").unwrap_err().to_string(), "line 1: the trace is empty");
    let other = text.replace("anabranch-window-1", "anabranch-window-9");
    assert!(Trace::read(&other).unwrap_err().to_string().contains("not 'anabranch-window-1'"));
}

proptest! {
    #[test]
    fn traces_are_read_as_they_were_written(
        number in 0..ALGORITHMS.len(), rounds in 1u32..60, spacing in 2u64..500, seed in any::<u64>(),
    ) {
        let trace = record(ALGORITHMS[number], rounds, spacing, seed);
        prop_assert_eq!(&Trace::read(&trace.write()).unwrap(), &trace);
    }

    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,200}", line in "[{}\":,a-z0-9 ]{0,80}") {
        let _ = Trace::read(&text);
        let whole = record("reno", 2, 50, 1).write();
        let _ = Trace::read(&(whole + &line));
    }
}
