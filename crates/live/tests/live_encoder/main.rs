//! An encoder that follows the rate that the sender tells, over links whose capacity changes, in virtual time.

mod additive;
#[path = "../live_link/link.rs"]
mod link;
mod plot;
mod world;

use anabranch_testkit::Random;
use anabranch_units::{Bytes, Duration, Rate, Ratio};

use additive::Additive;
use world::{HEADERS, Outcome, PAYLOAD, Path, Rule, Told, run};

const SECOND: Duration = Duration::from_secs(1);
const END: Duration = Duration::from_secs(60);
const HALVES: Duration = Duration::from_secs(20);
const RETURNS: Duration = Duration::from_secs(40);

/// A link that halves and comes back, each time a little later with another seed.
fn halving(kbps: u64, rtt: u64, queue: usize, loss: f64, seed: u64) -> Path {
    let later = Duration::from_millis(700) * (seed - 1);
    let (whole, half) = (Rate::from_kbps(kbps), Rate::from_kbps(kbps / 2));
    Path {
        rtt: Duration::from_millis(rtt),
        queue,
        loss,
        capacity: vec![(Duration::ZERO, whole), (HALVES + later, half), (RETURNS + later, whole)],
        most: Rate::from_mbps(100),
    }
}

/// What became of a halving.
#[derive(Debug)]
struct Halved {
    /// What the encoder made a second and a half after it, as a part of what fits then.
    after: f64,
    /// The part of the packets of the next ten seconds that is missing.
    missing: f64,
    /// How long after the return nine tenths of the mean of the ten seconds before the halving were made again.
    back: Option<Duration>,
    /// What came of what the link carried, from 10 s on.
    used: f64,
}

fn halved(path: &Path, outcome: &Outcome) -> Halved {
    let [_, (halves, half), (returns, _)] = path.capacity[..] else { panic!("it halves once") };
    let (count, gone) = outcome.missing(halves, halves + SECOND * 10);
    let media = Bytes::of(PAYLOAD).as_f64() / (Bytes::of(PAYLOAD) + HEADERS).as_f64();
    let before = outcome.made(halves - SECOND * 10, halves);
    let back = outcome.rates.iter().find(|(at, rate)| *at >= returns && *rate >= before * Ratio::new(9, 10));
    Halved {
        after: outcome.rate_at(halves + Duration::from_millis(1500)).as_f64() / (half.as_f64() * media),
        missing: gone as f64 / count as f64,
        back: back.map(|(at, _)| *at - returns),
        used: used(path, outcome, END),
    }
}

/// What came of what the link carried, with headers, from 10 s on.
fn used(path: &Path, outcome: &Outcome, end: Duration) -> f64 {
    outcome.came(SECOND * 10, end).as_f64() / path.carries(SECOND * 10, end).as_f64()
}

/// A link that fades: its rate wanders about a mean of some ten seconds, and from one tenth of a second to the
/// next (Ornstein-Uhlenbeck), and breaks down to three tenths for up to two seconds, three times in a hundred seconds.
fn fading(mean: Rate, seed: u64, length: Duration) -> Path {
    const STEP: Duration = Duration::from_millis(100);
    let mut random = Random::new(seed);
    let mut normal = move || (0..12).map(|_| random.draw()).sum::<f64>() - 6.0;
    let mut fades = Random::new(seed + 1000);
    let (mut slow, mut fast, mut fade) = (0.0, 0.0, 0);
    let mut capacity = Vec::new();
    for number in 0..length.as_nanos() / STEP.as_nanos() {
        slow += -slow * 0.01 + 0.5 * 0.02f64.sqrt() * normal();
        fast += -fast * 0.15 + 0.2 * 0.3f64.sqrt() * normal();
        if fade == 0 && fades.draw() < 0.003 {
            fade = 5 + fades.below(20);
        }
        fade = fade.saturating_sub(1);
        let factor = (slow + fast - 0.145_f64).exp() * if fade > 0 { 0.3 } else { 1.0 };
        capacity.push((STEP * number, mean * Ratio::from_f64(factor.clamp(0.05, 4.0))));
    }
    Path { rtt: Duration::from_millis(70), queue: 100, loss: 0.0, capacity, most: Rate::from_mbps(12) }
}

/// The part of a fading link that is used, and the part of the packets that is missing.
fn over_fading(rule: &mut dyn Rule, latency: Duration, seed: u64) -> (f64, f64) {
    let path = fading(Rate::from_mbps(4), seed, END);
    let outcome = run(&path, latency, rule, END, seed);
    let (count, gone) = outcome.missing(SECOND * 10, END);
    (used(&path, &outcome, END), gone as f64 / count as f64)
}

#[test]
fn an_encoder_follows_a_link_that_halves_and_comes_back() {
    const SEEDS: u64 = 4;
    let mut gone = 0.0;
    for seed in 1..=SEEDS {
        let path = halving(4000, 60, 50, 0.0, seed);
        let Halved { after, missing, back, used } = halved(&path, &run(&path, SECOND, &mut Told, END, seed));
        let told = format!("seed {seed}: {after:.2}, {missing:.4}, {back:?}, {used:.2}");
        assert!(after <= 1.0 && back.is_some() && back <= Some(SECOND * 15) && used >= 0.9, "{told}");
        gone += missing / SEEDS as f64;
    }
    assert!(gone <= 0.005, "{gone:.4} is missing in the mean");
}

#[test]
fn with_four_seconds_of_latency_nothing_is_missing_when_the_link_halves() {
    for (loss, seed) in [(0.0, 1), (0.01, 2)] {
        let path = halving(4000, 60, 50, loss, seed);
        let outcome = run(&path, SECOND * 4, &mut Told, END, seed);
        assert_eq!(outcome.missing(Duration::ZERO, END).1, 0, "loss {loss}, seed {seed}");
        assert!(halved(&path, &outcome).after <= 1.0, "loss {loss}, seed {seed}");
    }
}

#[test]
fn over_a_fading_link_it_gets_more_and_loses_less_than_steps_that_add() {
    let latency = SECOND * 2;
    for seed in 1..=2 {
        let (used, missing) = over_fading(&mut Told, latency, seed);
        let mut additive = Additive::new(latency, Rate::from_mbps(12));
        let (used_by_steps, missing_by_steps) = over_fading(&mut additive, latency, seed);
        let told =
            format!("seed {seed}: {used:.3}, {missing:.4}, not {used_by_steps:.3}, {missing_by_steps:.4}");
        assert!(used >= 0.85 && used > used_by_steps && missing <= missing_by_steps, "{told}");
    }
}

/// `cargo test -p anabranch-live --test live_encoder -- --ignored --nocapture`; with `SEEDS=5` so many seeds, with
/// `PLOT=FILE.svg` also the course of one run as a picture.
#[test]
#[ignore = "prints how an encoder fares: for whoever works on the rule"]
fn explore() {
    let variable = |name: &str| std::env::var(name).ok();
    let seeds: u64 = variable("SEEDS").and_then(|seeds| seeds.parse().ok()).unwrap_or(3);
    if let Some(file) = variable("PLOT") {
        let path = halving(4000, 60, 50, 0.0, 1);
        let outcome = run(&path, SECOND, &mut Told, END, 1);
        std::fs::write(file, plot::svg(&path, &outcome, END)).unwrap();
        return;
    }
    for (kbps, rtt, queue) in [(1000, 168, 25), (4000, 60, 50), (8000, 30, 200)] {
        for (loss, latency) in [(0.0, 1), (0.01, 1), (0.0, 4), (0.01, 4)] {
            let all: Vec<Halved> = (1..=seeds)
                .map(|seed| {
                    let path = halving(kbps, rtt, queue, loss, seed);
                    halved(&path, &run(&path, SECOND * latency, &mut Told, END, seed))
                })
                .collect();
            let mean = |of: fn(&Halved) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
            let most = |of: fn(&Halved) -> f64| all.iter().map(of).fold(0.0, f64::max);
            let back = most(|it| it.back.map_or(99.0, Duration::as_secs_f64));
            eprintln!(
                "{kbps} kbps, {rtt} ms, {queue} packets, loss {loss}, latency {latency} s: after 1.5 s at most {:.2}; \
                 missing {:.4}, at most {:.4}; back after {back:.1} s; used {:.3}",
                most(|it| it.after),
                mean(|it| it.missing),
                most(|it| it.missing),
                mean(|it| it.used)
            );
        }
    }
    for latency in [1, 2, 4] {
        for name in ["told", "additive"] {
            let all: Vec<(f64, f64)> = (1..=seeds)
                .map(|seed| {
                    let mut additive = Additive::new(SECOND * latency, Rate::from_mbps(12));
                    let rule: &mut dyn Rule = if name == "told" { &mut Told } else { &mut additive };
                    over_fading(rule, SECOND * latency, seed)
                })
                .collect();
            let mean = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
            eprintln!(
                "fading, latency {latency} s, {name}: used {:.3}, missing {:.4}",
                mean(|it| it.0),
                mean(|it| it.1)
            );
        }
    }
}
