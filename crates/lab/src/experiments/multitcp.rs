//! Figure 8.7 with real programs: nginx, the kernel's Reno, and the program that streams.

use anabranch_units::Duration;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Trial};
use crate::scheme::{ADVANCED, AUTO, N1, N2, N3, N4, N5, Scheme};
use crate::statistics::mean;

const SECONDS: u64 = 200;
/// What the figures are of: behind the first ten seconds, as in the simulated runs.
const COUNTED_S: std::ops::Range<f64> = 10.5..200.5;
/// Seconds for a point of a course.
const BIN: usize = 5;

pub(super) fn figure_8_7() -> Real {
    Real {
        differs: [
            "nginx, the kernel's Reno with SACK, iperf3 as cross traffic; the path is emulated. Packets have \
             1448 bytes in place of 1000, \
             so that the queue has 35 of them: as many bytes as 50",
            "the kernel has delayed acknowledgements, an initial window of 10 and timestamps; nothing waits \
             for a random time",
            "N = 1 to 5 and the advanced algorithm are 'anabranch fetch --rate', auto is 'anabranch play' \
             with a player that holds all that it gets; \
             the player of section 8.3 is modelled behind what arrives",
        ]
        .map(Into::into)
        .into(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg", "curl"],
        trials: Box::new(|seed| {
            [N1, N2, N3, N4, N5, ADVANCED, AUTO].into_iter().map(|scheme| trial(scheme, seed)).collect()
        }),
    }
}

fn trial(scheme: Scheme, seed: u64) -> Result<Trial, TestbedError> {
    let changes = [("run.seed", real::seed(seed)), ("client.stream.command", command(scheme).into())];
    Ok(Trial {
        case: Case::new(scheme, 0.0),
        scenario: real::scenario("multitcp/fig8.7/real.toml", changes)?,
        files: Vec::new(),
        kernel: Vec::new(),
        duration: Duration::from_secs(SECONDS),
        reading: Box::new(move |observed| read(observed, scheme)),
    })
}

/// What stands for a scheme of the figure.
fn command(scheme: Scheme) -> Vec<&'static str> {
    let mut command = vec!["{anabranch}"];
    let basic = ["fetch", "--preset", "table8.1", "--algorithm", "basic", "-o", "-", "--connections"];
    match scheme {
        N1 => command.extend(basic.into_iter().chain(["1"])),
        N2 => command.extend(basic.into_iter().chain(["2"])),
        N3 => command.extend(basic.into_iter().chain(["3"])),
        N4 => command.extend(basic.into_iter().chain(["4"])),
        N5 => command.extend(basic.into_iter().chain(["5"])),
        ADVANCED => command.extend(["fetch", "--preset", "table8.3", "--algorithm", "advanced", "-o", "-"]),
        other => {
            debug_assert_eq!(other, AUTO);
            command.extend(["play", "--algorithm", "auto", "--connections", "15", "--player", "curl -sS {}"]);
        }
    }
    command.extend(["--quiet", "--no-stripe", "--rate", "{rate}", "{url1}"]);
    command
}

/// The figures by the names that the plan of figure 8.7 gives them. The thesis's algorithms have a player
/// beside them, `auto` has its own.
fn read(observed: &Observed, scheme: Scheme) -> Result<Measured, String> {
    let (stalls, stalled) = match scheme {
        AUTO => ("stalls", "stall time"),
        _ => ("stops of the player beside it", "time that it stands still"),
    };
    let summary = observed.summary()?;
    let kbps = |flow: &str| -> Result<Vec<(f64, f64)>, String> {
        let rows = observed.traffic(flow)?;
        Ok(rows.iter().map(|row| (row.time_s, row.payload_bps / 1e3)).collect())
    };
    let (stream, cross) = (kbps("film")?, kbps("tcps")?);
    let connections: Vec<(f64, f64)> =
        observed.connections()?.iter().map(|look| (look.time_s, look.established)).collect();
    let looks_in_a_bin = BIN * 5;
    Ok(Measured::default()
        .figure("throughput, 9 TCPs", counted(&stream), "kbps")
        .figure("cross traffic, 9 TCPs", counted(&cross), "kbps")
        .figure("connections, 9 TCPs", counted(&connections), "")
        .figure(stalls, summary.playback.stalls, "")
        .figure(stalled, summary.playback.stall_s, "s")
        .figure("mean connections", summary.connections_mean, "")
        .figure("most connections", summary.connections_max, "")
        .series("throughput", binned(&stream, BIN))
        .series("connections", binned(&connections, looks_in_a_bin)))
}

/// The mean of what counts.
fn counted(course: &[(f64, f64)]) -> f64 {
    let counted: Vec<f64> =
        course.iter().filter(|(at, _)| COUNTED_S.contains(at)).map(|(_, value)| *value).collect();
    mean(&counted).unwrap_or(f64::NAN)
}

/// Means of so many values each, which make a bin; the testbed looks at equal distances, a little late each
/// time.
fn binned(course: &[(f64, f64)], count: usize) -> Vec<(f64, f64)> {
    let bins = course.chunks_exact(count).enumerate();
    bins.filter_map(|(index, bin)| {
        let values: Vec<f64> = bin.iter().map(|(_, value)| *value).collect();
        Some((((index + 1) * BIN) as f64, mean(&values)?))
    })
    .collect()
}
