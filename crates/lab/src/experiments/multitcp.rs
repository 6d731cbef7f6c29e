//! Figures 8.2 to 8.5 and 8.7 with real programs: nginx, the kernel's Reno, and the program that streams.

use std::ops::Range;

use anabranch_units::Duration;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Trial};
use crate::scheme::{ADVANCED, AUTO, N1, N2, N4, N5, N8, Scheme};
use crate::statistics::mean;

/// Seconds for a point of a course.
const BIN: usize = 5;
/// How often the testbed looks at connections in so many seconds.
const LOOKS_IN_A_BIN: usize = BIN * 5;

/// A figure with real programs.
struct Figure {
    /// The folder of its plan in `papers/multitcp`.
    folder: &'static str,
    /// The simulated runs that the real ones stand beside.
    setting: &'static str,
    schemes: &'static [Scheme],
    /// The thesis's parameters.
    table: &'static str,
    seconds: u64,
    /// Phases as the plan names them, when they are counted, and the flows that cross then.
    phases: &'static [(&'static str, Range<f64>, &'static [&'static str])],
    /// Whether the run is as long as the simulated one, so that what a player did is comparable.
    is_whole: bool,
    /// In what its runs differ besides.
    differs: &'static [&'static str],
}

/// The bursts of 8.2 and 8.3 are one, and stand for the second.
const BURST_AND_TCPS: &[(&str, Range<f64>, &[&str])] = &[
    ("alone", 18.5..25.5, &[]),
    ("second burst", 27.5..45.5, &["burst"]),
    ("after the second burst", 45.5..50.5, &[]),
    ("15 TCPs", 63.5..90.5, &["tcps"]),
    ("20 TCPs", 98.5..129.5, &["tcps", "more"]),
];

const SOME_AND_MORE: &[(&str, Range<f64>, &[&str])] = &[
    ("alone", 20.5..35.5, &[]),
    ("some FTPs", 45.5..75.5, &["some"]),
    ("more FTPs", 85.5..114.5, &["some", "more"]),
];

const BUFFER: &str = "the player takes what it plays, and 12 s ahead";
const WHOLE: &str = "the player takes all that it gets";
const SHORTER: &str =
    "shorter: 130 s in place of 1000 s, with one burst of 20 s, which stands for the second one";
const DROPTAIL: &str =
    "the queue is DropTail, which the testbed has in place of RED; so are the runs beside it";
const SHORTER_FTPS: &str = "shorter: 115 s in place of 1000 s";

const FIGURE_8_2: Figure = Figure {
    folder: "fig8.2",
    setting: "DropTail",
    schemes: &[N2, N5, AUTO],
    table: "table8.1",
    seconds: 130,
    phases: BURST_AND_TCPS,
    is_whole: false,
    differs: &[SHORTER, DROPTAIL, BUFFER],
};

const FIGURE_8_3: Figure = Figure { folder: "fig8.3", ..FIGURE_8_2 };

const FIGURE_8_4: Figure = Figure {
    folder: "fig8.4",
    setting: "",
    schemes: &[N1, N4, N8, AUTO],
    table: "table8.2",
    seconds: 115,
    phases: SOME_AND_MORE,
    is_whole: false,
    differs: &[SHORTER_FTPS, BUFFER],
};

const FIGURE_8_5: Figure =
    Figure { folder: "fig8.5", schemes: &[N1, ADVANCED, AUTO], table: "table8.3", ..FIGURE_8_4 };

const FIGURE_8_7: Figure = Figure {
    folder: "fig8.7",
    setting: "",
    schemes: &[N1, N5],
    table: "table8.1",
    seconds: 200,
    phases: &[("9 TCPs", 10.5..200.5, &["tcps"])],
    is_whole: true,
    differs: &[WHOLE],
};

/// The real runs of a figure by the folder of its plan, if it has some.
pub(super) fn figure(folder: &str) -> Option<Real> {
    let all = [&FIGURE_8_2, &FIGURE_8_3, &FIGURE_8_4, &FIGURE_8_5, &FIGURE_8_7];
    let figure: &'static Figure = all.into_iter().find(|figure| figure.folder == folder)?;
    let common = [
        "nginx, the kernel's Reno with SACK, iperf3 as cross traffic; the path is emulated. Packets have \
         1448 bytes in place of 1000, so that the queue has 35 of them: as many bytes as 50",
        "the kernel has delayed acknowledgements, an initial window of 10 and timestamps; nothing waits for a \
         random time",
        "the thesis's algorithms are 'anabranch fetch --rate', auto is 'anabranch play'; the player of section 8.3 \
         is modelled behind what arrives",
    ];
    Some(Real {
        differs: common.iter().chain(figure.differs).map(|text| (*text).into()).collect(),
        needs: &["ip", "ss", "unshare", "nginx", "iperf3", "ffmpeg", "curl"],
        trials: Box::new(move |seed| {
            figure.schemes.iter().map(|scheme| trial(figure, *scheme, seed)).collect()
        }),
    })
}

fn trial(figure: &'static Figure, scheme: Scheme, seed: u64) -> Result<Trial, TestbedError> {
    let changes = [("run.seed", real::seed(seed)), ("client.stream.command", command(figure, scheme).into())];
    Ok(Trial {
        case: Case { setting: figure.setting.into(), ..Case::new(scheme, 0.0) },
        scenario: real::scenario(&format!("multitcp/{}/real.toml", figure.folder), changes)?,
        files: Vec::new(),
        kernel: Vec::new(),
        programs: None,
        duration: Duration::from_secs(figure.seconds),
        reading: Box::new(move |observed| read(observed, figure, scheme)),
    })
}

/// What stands for a scheme of a figure.
fn command(figure: &Figure, scheme: Scheme) -> Vec<&'static str> {
    let mut command = vec!["{anabranch}"];
    match scheme {
        AUTO => {
            command.extend(["play", "--algorithm", "auto", "--connections", "15", "--player", "curl -sS {}"]);
        }
        ADVANCED => command.extend(["fetch", "--preset", figure.table, "--algorithm", "advanced", "-o", "-"]),
        // 'N = 5'.
        basic => {
            command.extend(["fetch", "--preset", figure.table, "--algorithm", "basic", "-o", "-"]);
            command.extend(["--connections", basic.name.rsplit(' ').next().unwrap_or_default()]);
        }
    }
    command.extend(["--quiet", "--no-stripe", "--rate", "{rate}", "{url1}"]);
    command
}

/// The figures by the names that the plan gives them. The thesis's algorithms have a player beside them,
/// `auto` has its own.
fn read(observed: &Observed, figure: &Figure, scheme: Scheme) -> Result<Measured, String> {
    let summary = observed.summary()?;
    let looks = observed.connections()?;
    let mut measured = Measured::default();
    for (phase, within, others) in figure.phases {
        let kbps = |flow| Ok::<_, String>(observed.mean(flow, within, |row| row.payload_bps)? / 1e3);
        let crossing: f64 = others.iter().map(|flow| kbps(flow)).sum::<Result<f64, String>>()?;
        let connections = looks.iter().filter(|look| within.contains(&look.time_s));
        let connections: Vec<f64> = connections.map(|look| look.established).collect();
        measured = measured.figure(&format!("throughput, {phase}"), kbps("film")?, "kbps").figure(
            &format!("connections, {phase}"),
            mean(&connections).unwrap_or(f64::NAN),
            "",
        );
        if !others.is_empty() {
            measured = measured.figure(&format!("cross traffic, {phase}"), crossing, "kbps");
        }
    }
    if figure.is_whole {
        let (stalls, stalled) = match scheme {
            AUTO => ("stalls", "stall time"),
            _ => ("stops of the player beside it", "time that it stands still"),
        };
        let stream = observed.traffic("film")?;
        let stream = stream.iter().map(|row| (row.time_s, row.payload_bps / 1e3)).collect::<Vec<_>>();
        let looks = looks.iter().map(|look| (look.time_s, look.established)).collect::<Vec<_>>();
        measured = measured
            .figure(stalls, summary.playback.stalls, "")
            .figure(stalled, summary.playback.stall_s, "s")
            .figure("mean connections", summary.connections_mean, "")
            .series("throughput", binned(&stream, BIN))
            .series("connections", binned(&looks, LOOKS_IN_A_BIN));
    }
    Ok(measured.figure("most connections", summary.connections_max, ""))
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
