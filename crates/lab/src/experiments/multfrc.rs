//! Figures of sections II to IV over QUIC: `anabranch send` and `receive` over a link that loses packets.

use std::ops::Range;

use anabranch_units::Duration;

use crate::case::{Case, Measured};
use crate::real::{self, Observed, Real, TestbedError, Traffic, Trial};
use crate::scheme::{AIO_TFRC, AUTO, MULTFRC, Scheme, TFRC};
use crate::statistics::{mean, variation};

/// The longest that the programs take to end after the media.
const LONGER: u64 = 10;
/// They get so much more than the media in the scenario.
const RUN_LONGER: u64 = 60;
/// Seconds of a bin in figure 8.
const BIN_S: f64 = 30.0;
/// What a datagram of the paper has, in bytes of the network layer.
const PAPER_BYTES: f64 = 1000.0;

/// A figure with real programs.
struct Figure {
    /// The folder of its plan in `papers/multfrc`.
    folder: &'static str,
    schemes: &'static [(Scheme, &'static [f64])],
    /// The link.
    kbps: f64,
    delay_ms: f64,
    queue: &'static str,
    /// The media, which is more than the link carries.
    media_kbps: f64,
    latency_ms: u64,
    seconds: u64,
    /// What does not count at the beginning.
    warm_up_s: f64,
    /// The figures that its plan has.
    reading: Reading,
    differs: &'static [&'static str],
}

/// Which figures are read.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// Means, over losses.
    Means,
    /// Those of bins of 30 s at one loss.
    Bins,
    /// The constant of equation (1).
    K,
}

const LOSSES: &[f64] = &[0.0, 0.04, 0.08];
const WIRELESS: &str = "90 s in place of 9,000 s, of which the first 30 do not count";

const FIGURE_7I: Figure = Figure {
    folder: "fig7i",
    schemes: &[(MULTFRC, LOSSES), (AUTO, &[0.04])],
    kbps: 1000.0,
    delay_ms: 80.0,
    queue: "36 packets",
    media_kbps: 1300.0,
    latency_ms: 672,
    seconds: 90,
    warm_up_s: 30.0,
    reading: Reading::Means,
    differs: &[WIRELESS, "the queue has 36 packets, as many bytes as 50; the stream has 1.3 Mbps"],
};

const FIGURE_7II: Figure = Figure {
    folder: "fig7ii",
    kbps: 100.0,
    delay_ms: 336.8,
    media_kbps: 130.0,
    latency_ms: 3030,
    seconds: 110,
    warm_up_s: 50.0,
    differs: &[
        "110 s in place of 9,000 s, of which the first 50 do not count",
        "the queue has 36 packets, as many bytes as 50; the stream has 130 kbps",
    ],
    ..FIGURE_7I
};

const FIGURE_8: Figure = Figure {
    folder: "fig8",
    schemes: &[(MULTFRC, &[0.0]), (AUTO, &[0.0])],
    seconds: 180,
    reading: Reading::Bins,
    differs: &[
        "180 s in place of 9,000 s: five bins of 30 s, the first 30 s not counted; the variation of so few says little",
        "the queue has 36 packets, as many bytes as 50; the stream has 1.3 Mbps",
    ],
    ..FIGURE_7I
};

const FIGURE_10: Figure = Figure {
    folder: "fig10",
    schemes: &[(MULTFRC, &[0.02]), (AIO_TFRC, &[0.02, 0.08]), (AUTO, &[0.02])],
    ..FIGURE_7I
};

const EQUATION_3: Figure = Figure {
    folder: "eq3",
    schemes: &[(TFRC, &[0.005, 0.01, 0.02, 0.04])],
    kbps: 100_000.0,
    delay_ms: 84.0,
    queue: "3600 packets",
    media_kbps: 2000.0,
    reading: Reading::K,
    differs: &[
        "90 s in place of 2,000 s, of which the first 30 do not count",
        "the stream has 2 Mbps, which no connection reaches; k is reckoned with the datagrams that were sent",
    ],
    ..FIGURE_7I
};

/// The real runs of a figure by the folder of its plan, if it has some.
pub(super) fn figure(folder: &str) -> Option<Real> {
    let all = [&FIGURE_7I, &FIGURE_7II, &FIGURE_8, &FIGURE_10, &EQUATION_3];
    let figure: &'static Figure = all.into_iter().find(|figure| figure.folder == folder)?;
    let common = [
        "QUIC datagrams of live media ('anabranch send' and 'receive') with about 1,380 bytes in place of \
         1000; what is too late at the sender is dropped there. There are retransmissions, and no parity. The \
         paper's schemes reckon as they were published (--as-published)",
        "the path is emulated; the round trip is the sender's estimate, and the least is that of the path and \
         the time of a packet on the link. How many connections auto stands for is not told",
    ];
    Some(Real {
        differs: figure.differs.iter().chain(&common).map(|text| (*text).into()).collect(),
        needs: &["ip", "ss", "unshare", "ffmpeg", "openssl", "sha256sum"],
        trials: Box::new(move |seed| {
            let points =
                figure.schemes.iter().flat_map(|(scheme, points)| points.iter().map(|at| (*scheme, *at)));
            points.map(|(scheme, point)| trial(figure, scheme, point, seed)).collect()
        }),
    })
}

impl Figure {
    /// The link's losses at a point of the figure.
    fn loss(&self, point: f64) -> f64 {
        if self.reading == Reading::Bins { 0.04 } else { point }
    }

    fn counted(&self) -> Range<f64> {
        self.warm_up_s + 0.5..self.seconds as f64 - 0.5
    }
}

fn trial(figure: &'static Figure, scheme: Scheme, point: f64, seed: u64) -> Result<Trial, TestbedError> {
    let mut sender = vec!["sh", "{here}/send.sh", "{anabranch}", "{latency}ms", "{address1}"];
    sender.extend(match scheme {
        AUTO => &["auto"][..],
        MULTFRC => &["multfrc", "--as-published"],
        AIO_TFRC => &["aio-tfrc", "--as-published"],
        _ => &["tfrc", "--as-published"],
    });
    let changes = [
        ("run.seed", real::seed(seed)),
        ("run.duration", format!("{}s", figure.seconds + RUN_LONGER).into()),
        ("film.rate", format!("{}k", figure.media_kbps).into()),
        ("film.duration", format!("{}s", figure.seconds).into()),
        ("live.latency", format!("{}ms", figure.latency_ms).into()),
        ("link.main.rate", format!("{}k", figure.kbps).into()),
        ("link.main.delay", format!("{}ms", figure.delay_ms).into()),
        ("link.main.queue", figure.queue.into()),
        ("link.main.loss", figure.loss(point).into()),
        ("client.stream.sender", sender.into()),
    ];
    Ok(Trial {
        case: Case::new(scheme, point),
        scenario: real::scenario("multfrc/real.toml", changes)?,
        files: real::files("multfrc", &["receive.sh", "send.sh"])?,
        kernel: Vec::new(),
        programs: None,
        duration: Duration::from_secs(figure.seconds + LONGER),
        reading: Box::new(move |observed| read(observed, figure, scheme, figure.loss(point))),
    })
}

fn read(observed: &Observed, figure: &Figure, scheme: Scheme, loss: f64) -> Result<Measured, String> {
    let within = figure.counted();
    let of = |value: fn(&Traffic) -> f64| observed.mean("film", &within, value);
    let throughput = of(|row| row.network_bps)? / 1e3;
    let sent = of(|row| row.packets_sent)?;
    let lost = 1.0 - of(|row| row.packets_arrived)? / sent;
    let lines = observed.lines("send.jsonl")?;
    let intervals = lines.iter().filter(|line| line["event"] == "interval");
    let intervals = intervals.filter(|line| line["at_s"].as_f64().is_some_and(|at| within.contains(&at)));
    let intervals: Vec<&serde_json::Value> = intervals.collect();
    let trips: Vec<f64> = intervals.iter().filter_map(|line| Some(line["rtt_s"].as_f64()? * 1e3)).collect();
    let trip = mean(&trips).unwrap_or(f64::NAN);
    let connections: Vec<f64> =
        intervals.iter().filter_map(|line| Some(line["connections"].as_array()?.len() as f64)).collect();
    let bytes = of(|row| row.network_bps)? / 8.0 / of(|row| row.packets_arrived)?;
    let least = 2.0 * figure.delay_ms + 8.0 * bytes / figure.kbps;
    let measured = Measured::default();
    if figure.reading == Reading::K {
        let packets = sent * least / 1e3 * loss.sqrt();
        // What packets as long as the paper's would have carried.
        let throughput = throughput * PAPER_BYTES / bytes;
        return Ok(measured.figure("k", packets, "").figure("throughput", throughput, "kbps"));
    }
    let mut measured = measured.figure("throughput", throughput, "kbps").figure("loss", lost, "").figure(
        "round trip",
        trip,
        "ms",
    );
    if scheme == MULTFRC {
        measured = measured.figure("connections", mean(&connections).unwrap_or(f64::NAN), "");
    }
    if figure.reading == Reading::Bins {
        let varies = variation(&bins(observed, &within)?).unwrap_or(f64::NAN);
        return Ok(measured.figure("variation of the throughput", varies, ""));
    }
    measured = measured.figure("utilization", throughput / (figure.kbps * (1.0 - loss)), "").figure(
        "round trip / least",
        trip / least,
        "",
    );
    Ok(if loss > 0.0 { measured.figure("loss / p_w", lost / loss, "") } else { measured })
}

/// The throughput in bins.
fn bins(observed: &Observed, within: &Range<f64>) -> Result<Vec<f64>, String> {
    let starts = (0..).map(|number| within.start + f64::from(number) * BIN_S);
    let whole = starts.take_while(|start| start + BIN_S <= within.end + 1.0);
    whole.map(|start| observed.mean("film", &(start..start + BIN_S), |row| row.network_bps)).collect()
}
