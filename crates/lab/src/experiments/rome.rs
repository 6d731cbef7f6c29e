//! Figure 8 with real programs: three nginx behind unequal links, and the program that streams.

use anabranch_units::Duration;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Traffic, Trial};
use crate::scheme::{AUTO, ROME, SINGLE, Scheme};

/// Name, from and to in seconds.
const PHASES: [(&str, u64, u64); 4] =
    [("alone", 3, 10), ("one TCP", 15, 40), ("two TCPs", 42, 70), ("three TCPs", 72, 100)];

// Figures and series, as `papers/rome/fig8` names them.
const THROUGHPUT: &str = "throughput";
const CROSS: &str = "cross traffic";
const STALLS: &str = "stalls";
const STALLED: &str = "stall time";
const MEAN_CONNECTIONS: &str = "mean connections";
const MOST_CONNECTIONS: &str = "most connections";
const CONNECTION: [&str; 3] = ["connection 1", "connection 2", "connection 3"];

const SECONDS: u64 = 100;

pub(super) fn figure_8() -> Real {
    Real {
        differs: [
            "nginx, the kernel's Reno with SACK, iperf3 as cross traffic; the paths are emulated, each by \
             itself. Packets have 1448 bytes in place of \
             1000, so that queues have 35 of them: as many bytes as 50",
            "the kernel has delayed acknowledgements, an initial window of 10 and timestamps; nothing waits \
             for a random time",
            "TCP-ROME and auto are 'anabranch play' with a player that holds all that it gets, the single \
             flow is curl at the film's rate; every \
             connection is asked for two ranges ahead",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg", "curl"],
        trials: Box::new(|seed| [ROME, SINGLE, AUTO].into_iter().map(|scheme| trial(scheme, seed)).collect()),
    }
}

fn trial(scheme: Scheme, seed: u64) -> Result<Trial, TestbedError> {
    let changes = [("run.seed", real::seed(seed)), ("client.stream.command", command(scheme).into())];
    Ok(Trial {
        case: Case::new(scheme, 0.0),
        scenario: real::scenario("rome/fig8/real.toml", changes)?,
        files: Vec::new(),
        kernel: Vec::new(),
        programs: None,
        duration: Duration::from_secs(SECONDS),
        reading: Box::new(read),
    })
}

/// What stands for a scheme of the figure.
fn command(scheme: Scheme) -> Vec<&'static str> {
    if scheme == SINGLE {
        // 3 Mbps in bytes.
        return vec!["curl", "-sS", "--limit-rate", "375000", "{url3}"];
    }
    let mut command = vec!["{anabranch}", "play", "--quiet", "--no-stripe", "--rate", "{rate}"];
    command.extend(["--player", "curl -sS {}", "--algorithm"]);
    command.extend(if scheme == ROME {
        ["rome", "--connections", "3", "--per-host", "1"]
    } else {
        ["auto", "--connections", "15", "--per-host", "5"]
    });
    command.extend(["{url1}", "{url2}", "{url3}"]);
    command
}

fn read(observed: &Observed) -> Result<Measured, String> {
    let summary = observed.summary()?;
    let stream = observed.traffic("film")?;
    let of_path = |number: usize| {
        let name = format!("path{number}");
        stream.iter().filter(|row| row.path == name).cloned().collect::<Vec<_>>()
    };
    let links: Vec<Vec<Traffic>> = (0..CONNECTION.len()).map(of_path).collect();
    let mut cross = Vec::new();
    for number in 0..CONNECTION.len() {
        cross.extend(observed.traffic(&format!("tcp{number}"))?);
    }
    let mut measured = Measured::default();
    for (phase, from, to) in PHASES {
        let within = from as f64 + 0.5..to as f64 + 0.5;
        // Rows are of a second each: their sum over all paths, by the seconds.
        let mbps = |rows: &[Traffic], value: fn(&Traffic) -> f64| {
            let sum: f64 = rows.iter().filter(|row| within.contains(&row.time_s)).map(value).sum();
            sum / (to - from) as f64 / 1e6
        };
        measured = measured
            .figure(&during(THROUGHPUT, phase), mbps(&stream, |row| row.payload_bps), "Mbps")
            .figure(&during(CROSS, phase), mbps(&cross, |row| row.payload_bps), "Mbps");
        for (name, link) in CONNECTION.iter().zip(&links) {
            measured = measured.figure(&during(name, phase), mbps(link, |row| row.network_bps), "Mbps");
        }
    }
    measured = measured
        .figure(STALLS, summary.playback.stalls, "")
        .figure(STALLED, summary.playback.stall_s, "s")
        .figure(MEAN_CONNECTIONS, summary.connections_mean, "")
        .figure(MOST_CONNECTIONS, summary.connections_max, "");
    // The testbed looks every second, a little late each time; the last look is at the end, and of no whole
    // second.
    let by_second = |values: Vec<f64>| {
        values
            .into_iter()
            .take(SECONDS as usize)
            .enumerate()
            .map(|(index, value)| (index as f64 + 1.0, value))
    };
    for (name, link) in CONNECTION.iter().zip(&links) {
        measured = measured.series(name, by_second(link.iter().map(|row| row.network_bps / 1e6).collect()));
    }
    let seconds = links.iter().map(Vec::len).min().unwrap_or(0);
    let total =
        (0..seconds).map(|second| links.iter().map(|link| link[second].payload_bps).sum::<f64>() / 1e6);
    Ok(measured.series(THROUGHPUT, by_second(total.collect())))
}

fn during(quantity: &str, phase: &str) -> String {
    format!("{quantity}, {phase}")
}
