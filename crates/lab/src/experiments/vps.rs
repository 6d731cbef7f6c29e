//! Figures 3, 4, 5 and 7 over HTTP/3: `anabranch serve --weights` beside the kernel's Reno.

mod measure;

use anabranch_units::Duration;
use toml::Value;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Trial};
use crate::scheme::VPS;
use measure::{early_accuracies, metrics_of};

/// Those of the simulated runs, in `papers/vps`.
const WEIGHTS: [f64; 3] = [1.0, 4.0, 8.0];
/// The files of the weights 1, 4 and 8.
const FILES: [&str; 3] = ["one", "four", "eight"];
/// What does not count of a run, seconds.
const WARM_UP: u64 = 20;
/// What counts, behind the warm-up: two bins of the longest time scale.
const COUNTED: u64 = 120;
/// The same where only the whole is looked at.
const COUNTED_SHORT: u64 = 60;
/// How much longer than what counts the clients take, and the run.
const CLIENTS_LONGER: u64 = 5;
const LONGER: u64 = 15;
/// How far the weights of figure 7 are apart.
const DISTANCES: [f64; 3] = [0.0, 4.0, 10.0];
/// What figure 4 shows.
const SHOWN: usize = 100;

const TWO_BINS: &str = "140 s in place of 600 s, of which the first 20 do not count: two bins of 60 s, so that their \
                        variation says little";

fn real(
    first: &str,
    trials: impl Fn(u64) -> Result<Vec<Trial>, TestbedError> + Send + Sync + 'static,
) -> Real {
    let common = [
        "VPS weighs responses over HTTP/3 (anabranch serve --weights, QUIC) by their paths, each to a \
         connection of its own; MulTCP has no real run. The plain flows are \
         the kernel's Reno, over TCP: headers, packets and acknowledgements differ from those of QUIC",
        "the path is emulated: 12 Mbps, a round trip of 140 ms, a queue of 70 packets of up to 1500 \
         bytes, as many bytes as 100 of 1040; the background \
         is a constant 240 kbps, the mean of what is on and off in the simulation. All flows \
         begin at once",
        "what a client got in a second is counted by its own clock, what the plain flows got by the testbed's",
    ];
    Real {
        differs: [first].into_iter().chain(common).map(Into::into).collect(),
        needs: &["ip", "ss", "unshare", "iperf3", "openssl", "timeout"],
        trials: Box::new(trials),
    }
}

/// Accuracy over time scales.
pub(super) fn figure_3() -> Real {
    real(TWO_BINS, |seed| {
        let read = |seconds: &[Vec<f64>]| metrics_of(seconds, &WEIGHTS, WARM_UP as usize);
        Ok(vec![trial(0.0, WEIGHTS, COUNTED, seed, read)?])
    })
}

/// Throughput over time.
pub(super) fn figure_4() -> Real {
    real("140 s in place of 600 s", |seed| Ok(vec![trial(0.0, WEIGHTS, COUNTED, seed, course)?]))
}

fn course(seconds: &[Vec<f64>]) -> Measured {
    let mut measured = early_accuracies(seconds, &WEIGHTS);
    for (index, weight) in WEIGHTS.iter().enumerate() {
        let course = seconds.iter().take(SHOWN).enumerate();
        let course = course.map(|(second, rates)| ((second + 1) as f64, rates[index]));
        measured = measured.series(&format!("weight {weight}"), course.collect::<Vec<_>>());
    }
    measured
}

/// Fairness over time scales.
pub(super) fn figure_5() -> Real {
    real(TWO_BINS, |seed| {
        let read = |seconds: &[Vec<f64>]| {
            let all = metrics_of(seconds, &WEIGHTS, WARM_UP as usize);
            only(all, &[measure::FAIRNESS, measure::FAIRNESS_VARIATION])
        };
        Ok(vec![trial(0.0, WEIGHTS, COUNTED, seed, read)?])
    })
}

/// Weights further apart.
pub(super) fn figure_7() -> Real {
    real("80 s in place of 300 s, of which the first 20 do not count; d of 0, 4 and 10 alone", |seed| {
        let of = |distance: f64| {
            let weights = [1.0, 1.0 + distance, 1.0 + 2.0 * distance];
            trial(distance, weights, COUNTED_SHORT, seed, move |seconds: &[Vec<f64>]| {
                let all = metrics_of(seconds, &weights, WARM_UP as usize);
                only(all, &[measure::ACCURACY, measure::FAIRNESS])
            })
        };
        DISTANCES.into_iter().map(of).collect()
    })
}

/// What a figure of the paper shows of all.
fn only(mut measured: Measured, names: &[&str]) -> Measured {
    measured.figures.retain(|(name, ..)| names.contains(&name.as_str()));
    measured.series.retain(|(name, _)| names.contains(&name.as_str()));
    measured
}

fn trial(
    point: f64,
    weights: [f64; 3],
    counted: u64,
    seed: u64,
    read: impl Fn(&[Vec<f64>]) -> Measured + Send + Sync + 'static,
) -> Result<Trial, TestbedError> {
    let seconds = WARM_UP + counted + LONGER;
    let clients = ["sh", "{here}/clients.sh", "{anabranch}", "{address1}"].map(String::from);
    let clients =
        Vec::from_iter(clients.into_iter().chain([(WARM_UP + counted + CLIENTS_LONGER).to_string()]));
    let changes = [
        ("run.seed", real::seed(seed)),
        ("run.duration", format!("{seconds}s").into()),
        ("client.clients.command", clients.into()),
    ];
    let rules = ["rule.1.weight", "rule.2.weight", "rule.3.weight"];
    let rules = rules.into_iter().zip(weights.map(Value::Float));
    let mut files = real::files("vps", &["serve.sh", "clients.sh"])?;
    files.push(("weights.toml", real::scenario("vps/weights.toml", rules)?));
    Ok(Trial {
        case: Case::new(VPS, point),
        scenario: real::scenario("vps/real.toml", changes)?,
        files,
        kernel: Vec::new(),
        programs: None,
        duration: Duration::from_secs(seconds),
        reading: Box::new(move |observed| Ok(read(&rates(observed, (WARM_UP + counted) as usize)?))),
    })
}

/// What each weighted flow got in every second, and the plain ones together, in Mbps.
fn rates(observed: &Observed, wanted: usize) -> Result<Vec<Vec<f64>>, String> {
    let mut columns = Vec::new();
    for file in FILES {
        let lines = observed.lines(&format!("{file}.jsonl"))?;
        let intervals = lines.iter().filter(|line| line["event"] == "interval");
        let rates: Option<Vec<f64>> =
            intervals.map(|line| line["rate_bps"].as_f64().map(|bps| bps / 1e6)).collect();
        columns.push(rates.ok_or_else(|| format!("{file}.jsonl has an interval without a rate"))?);
    }
    columns.push(observed.traffic("reno")?.iter().map(|row| row.payload_bps / 1e6).collect());
    let shortest = columns.iter().map(Vec::len).min().unwrap_or(0);
    if shortest < wanted {
        return Err(format!("{shortest} s were measured in place of {wanted}"));
    }
    Ok((0..wanted).map(|second| columns.iter().map(|column| column[second]).collect()).collect())
}
