//! Figure 3 over HTTP/3: `anabranch serve --weights` beside the kernel's Reno.

mod measure;

use anabranch_units::Duration;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Trial};
use crate::scheme::VPS;
use measure::metrics_of;

/// Those of the simulated run, in `papers/vps/fig3`.
const WEIGHTS: [f64; 3] = [1.0, 4.0, 8.0];
/// What does not count of a run, seconds.
const WARM_UP: u64 = 20;
/// What counts, behind the warm-up: two bins of the longest time scale.
const COUNTED: u64 = 120;
/// How long all of it takes: the clients end before the run does.
const SECONDS: u64 = WARM_UP + COUNTED + 15;
/// The files of the weights 1, 4 and 8.
const FILES: [&str; 3] = ["one", "four", "eight"];

pub(super) fn figure_3() -> Real {
    Real {
        differs: [
            "140 s in place of 600 s, of which the first 20 do not count: two bins of 60 s, so that their \
             variation says little",
            "VPS weighs responses over HTTP/3 (anabranch serve --weights, QUIC) by their paths, each to a \
             connection of its own; MulTCP has no real run. The plain flows are \
             the kernel's Reno, over TCP: headers, packets and acknowledgements differ from those of QUIC",
            "the path is emulated: 12 Mbps, a round trip of 140 ms, a queue of 140 packets of up to 1500 \
             bytes, as many bytes as 201 of 1040; the background \
             is a constant 240 kbps, the mean of what is on and off in the simulation. All flows \
             begin at once",
            "what a client got in a second is counted by its own clock, what the plain flows got by \
             the testbed's",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "iperf3", "openssl", "timeout"],
        trials: Box::new(|seed| Ok(vec![trial(seed)?])),
    }
}

fn trial(seed: u64) -> Result<Trial, TestbedError> {
    Ok(Trial {
        case: Case::new(VPS, 0.0),
        scenario: real::scenario("vps/fig3/real.toml", [("run.seed", real::seed(seed))])?,
        files: real::files("vps/fig3", &["weights.toml", "serve.sh"])?,
        kernel: Vec::new(),
        duration: Duration::from_secs(SECONDS),
        reading: Box::new(read),
    })
}

fn read(observed: &Observed) -> Result<Measured, String> {
    let mut columns = Vec::new();
    for file in FILES {
        let lines = observed.lines(&format!("{file}.jsonl"))?;
        let intervals = lines.iter().filter(|line| line["event"] == "interval");
        let rates: Option<Vec<f64>> =
            intervals.map(|line| line["rate_bps"].as_f64().map(|bps| bps / 1e6)).collect();
        columns.push(rates.ok_or_else(|| format!("{file}.jsonl has an interval without a rate"))?);
    }
    columns.push(observed.traffic("reno")?.iter().map(|row| row.payload_bps / 1e6).collect());
    let wanted = (WARM_UP + COUNTED) as usize;
    let shortest = columns.iter().map(Vec::len).min().unwrap_or(0);
    if shortest < wanted {
        return Err(format!("{shortest} s were measured in place of {wanted}"));
    }
    let seconds: Vec<Vec<f64>> =
        (0..wanted).map(|second| columns.iter().map(|column| column[second]).collect()).collect();
    Ok(metrics_of(&seconds, &WEIGHTS, WARM_UP as usize))
}
