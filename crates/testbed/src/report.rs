//! The results of a run: a summary and its CSV files.

use std::cmp::Ordering::Equal;
use std::fs;
use std::path::Path;

use anabranch_film::playback::PlaybackReport;
use anabranch_units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::live::{Gap, Latency};

/// What one client did in a scenario; `summary.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The client's name in the scenario.
    pub client: String,
    /// Its command line.
    pub command: String,
    /// How long it ran.
    pub seconds: f64,
    /// Its exit code, `None` when a signal or the end of the run ended it.
    pub exit_code: Option<i32>,
    /// The signal that it died of by itself.
    pub signal: Option<i32>,
    /// Whether the whole film was there.
    pub complete: bool,
    /// Whether what was there was the film's beginning, byte by byte.
    pub right: bool,
    /// Size of the film, as many times as there are copies of the client; zero without one.
    pub film_bytes: u64,
    /// Bytes that were there in order at the end, with all copies.
    pub received_bytes: u64,
    /// What a player would have shown: that of the copy that stood still longest.
    pub playback: Viewing,
    /// What the player of each copy would have shown.
    #[serde(default)]
    pub viewers: Vec<Viewing>,
    /// Most connections that were established at one time.
    pub connections_max: u32,
    /// Mean number of established connections while the client ran.
    pub connections_mean: f64,
    /// TCP payload that arrived at the client beyond what it has in order: HTTP headers, duplicates, what was
    /// fetched and thrown away.
    pub beyond_bytes: u64,
    /// Congestion control that the servers' connections to the client really used (`ss -ti`).
    pub congestion: Vec<String>,
    /// Mean rate of the payload of all cross traffic, while any was meant to run.
    pub cross_bps: f64,
    /// Per path and flow, what arrived.
    pub flows: Vec<Flow>,
    /// The ping beside it.
    pub ping: Option<PingSummary>,
    /// What became of live media.
    #[serde(default)]
    pub live: Option<Live>,
}

/// Live media from its sender's input to its receiver's output, the settling time left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// MPEG-TS packets that were judged: those with pictures or sound.
    pub packets: usize,
    /// Those that never came out.
    pub missing: usize,
    /// When those were fed, a thousand gaps at most.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// Times that one came out again.
    pub repeated: usize,
    /// Packets that came out and are not in the film.
    pub strange: usize,
    /// Gaps and steps back in the continuity counters of what came out.
    pub discontinuities: usize,
    /// Lines that ffmpeg printed when it decoded what came out (`-v error`); `None` when nothing came.
    pub decoder_errors: Option<usize>,
    /// The way's time.
    pub latency: Latency,
    /// Packets whose way took more than 250 ms longer than the latency and the longest path at its beginning.
    #[serde(default)]
    pub late: usize,
    /// When the last packet was fed that is missing or late, from the feed's start; zero without one.
    #[serde(default)]
    pub whole_from_s: f64,
    /// Bytes of the network layer that the sender put into the paths, for each byte of the film that it was
    /// fed.
    pub overhead: f64,
    /// CPU time of the sender.
    pub sender_cpu_s: f64,
    /// CPU time of the receiver.
    pub receiver_cpu_s: f64,
    /// The sender's exit code when it ended before it was asked to.
    pub sender_exit_code: Option<i32>,
    /// How often the sender was started again.
    #[serde(default)]
    pub sender_restarts: usize,
    /// How often the receiver was.
    #[serde(default)]
    pub receiver_restarts: usize,
    /// Whether the run was ended early because too much was missing; what was not fed then counts as missing.
    pub given_up: bool,
}

impl Live {
    /// Whether the film came over without a fault: nothing missing, nothing that a decoder complains of.
    pub fn carried(&self) -> bool {
        self.packets > 0 && self.missing == 0 && self.decoder_errors == Some(0)
    }
}

/// Traffic of the client (`film`) or of a group of cross traffic over a path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    /// The path.
    pub path: String,
    /// `film` or the group.
    pub flow: String,
    /// Congestion control that its senders really used.
    pub congestion: Vec<String>,
    /// Payload that arrived.
    pub payload_bytes: u64,
    /// Mean rate of the payload that arrived while the flow was meant to run.
    pub mean_bps: f64,
    /// Packets that its senders put into the path.
    pub packets_sent: u64,
    /// Packets of these that did not arrive, or not yet.
    pub packets_missing: u64,
}

/// Round-trip times beside the client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PingSummary {
    /// Requests.
    pub sent: usize,
    /// Requests without an answer.
    pub lost: usize,
    /// Smallest.
    pub min_ms: f64,
    /// Mean.
    pub mean_ms: f64,
    /// Largest.
    pub max_ms: f64,
}

/// What the playback model says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Viewing {
    /// Until the first picture, `None` when there never was one.
    pub startup_s: Option<f64>,
    /// How often it stopped.
    pub stalls: u32,
    /// How long it stood still, the start-up not counted.
    pub stall_s: f64,
}

impl Summary {
    /// Reads a run's `summary.json`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn load(directory: &Path) -> Result<Self, Error> {
        let file = directory.join("summary.json");
        let text = fs::read(&file).map_err(Error::io(file.display().to_string()))?;
        serde_json::from_slice(&text).map_err(|error| Error::Scenario(format!("{}: {error}", file.display())))
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, directory: &Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Scenario(error.to_string()))?;
        fs::write(directory.join("summary.json"), text + "\n").map_err(Error::io("summary.json"))
    }

    /// The run in one line.
    pub fn line(&self) -> String {
        if let Some(live) = &self.live {
            return format!(
                "{}: {} of {} packets missing, decoder errors {}, discontinuities {}, latency {:.0} ms (99 \
                 %: {:.0}, most {:.0}), \
                 {:.3} bytes sent for each of the film, cross traffic {:.2} Mbps",
                self.client,
                live.missing,
                live.packets,
                live.decoder_errors.map_or("unknown".into(), |errors| errors.to_string()),
                live.discontinuities,
                live.latency.median_ms,
                live.latency.percentile_99_ms,
                live.latency.most_ms,
                live.overhead,
                self.cross_bps / 1e6
            );
        }
        let startup = self.playback.startup_s.map_or("never".into(), |startup| format!("{startup:.1} s"));
        let wrong = if self.right { "" } else { ", WRONG BYTES" };
        format!(
            "{}: {:.1} s, {} of {} bytes{wrong}, start-up {startup}, {} stalls ({:.1} s), connections {} \
             (mean {:.1}), \
             cross traffic {:.2} Mbps, {} bytes beyond",
            self.client,
            self.seconds,
            self.received_bytes,
            self.film_bytes,
            self.playback.stalls,
            self.playback.stall_s,
            self.connections_max,
            self.connections_mean,
            self.cross_bps / 1e6,
            self.beyond_bytes
        )
    }
}

impl From<PlaybackReport> for Viewing {
    fn from(report: PlaybackReport) -> Self {
        Self {
            startup_s: report.startup.map(Duration::as_secs_f64),
            stalls: report.stalls,
            stall_s: report.stalled.as_secs_f64(),
        }
    }
}

/// What whoever fared worst saw; nothing of nobody.
pub fn worst(viewers: &[Viewing]) -> Viewing {
    // Who never saw a picture fared worst.
    let rank = |viewing: &&Viewing| (viewing.startup_s.is_none(), viewing.stall_s);
    let worst = viewers.iter().max_by(|one, other| rank(one).partial_cmp(&rank(other)).unwrap_or(Equal));
    worst.copied().unwrap_or_default()
}

/// A CSV file that is written line by line.
pub struct Table(String);

impl Table {
    /// A table with this heading.
    pub fn new(heading: &str) -> Self {
        Self(format!("{heading}\n"))
    }

    /// Adds a line; the fields hold neither commas nor quotes.
    pub fn line(&mut self, fields: &[&dyn std::fmt::Display]) {
        let fields: Vec<_> = fields.iter().map(ToString::to_string).collect();
        self.0.push_str(&fields.join(","));
        self.0.push('\n');
    }

    /// Writes it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, directory: &Path, name: &str) -> Result<(), Error> {
        fs::write(directory.join(name), &self.0).map_err(Error::io(name))
    }
}

/// The rate of `bytes` in `span` in bit/s, zero in no time.
pub fn bps(bytes: u64, span: Duration) -> f64 {
    Rate::of(Bytes::new(bytes), span).as_f64()
}
