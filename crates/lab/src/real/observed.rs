//! What the testbed has written of a run: its summary and its rows.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::calls::{CALLS, Calls};
use crate::statistics::mean;

/// The directory of a real run that has ended.
pub struct Observed {
    directory: PathBuf,
}

/// What is read of `summary.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Summary {
    /// Whether what had arrived was the film's beginning.
    pub right: bool,
    /// Most connections at a time.
    pub connections_max: f64,
    /// The mean number of connections.
    pub connections_mean: f64,
    /// What a player would have shown; of several copies, that which stood still longest.
    pub playback: Viewing,
    /// What the player of each copy would have shown.
    pub viewers: Vec<Viewing>,
}

/// The testbed's model of a player.
#[derive(Clone, Debug, Deserialize)]
pub struct Viewing {
    /// Until the first picture, in seconds; `None` when there never was one.
    pub startup_s: Option<f64>,
    /// How often it stopped.
    pub stalls: f64,
    /// How long it stood still, in seconds.
    pub stall_s: f64,
}

/// A row of `traffic.csv`: what came out of a path in the second before.
#[derive(Clone, Debug, Deserialize)]
pub struct Traffic {
    /// The second's end.
    pub time_s: f64,
    /// The path.
    pub path: String,
    /// The client (`film`), or a group of cross traffic.
    pub flow: String,
    /// Payload of TCP or UDP that arrived.
    pub payload_bps: f64,
    /// Bytes of the network layer that arrived.
    pub network_bps: f64,
    /// Packets that were put into the path.
    pub packets_sent: f64,
    /// Packets that came out.
    pub packets_arrived: f64,
}

/// A row of `connections.csv`.
#[derive(Clone, Debug, Deserialize)]
pub struct Connections {
    /// When.
    pub time_s: f64,
    /// How many there were.
    pub established: f64,
}

impl Observed {
    /// What is in a directory.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.into() }
    }

    /// The summary of a run in which what arrived is the film.
    ///
    /// # Errors
    /// It cannot be read, or something else arrived.
    pub fn summary(&self) -> Result<Summary, String> {
        let summary = serde_json::from_str(&self.text("summary.json")?);
        let summary: Summary = summary.map_err(|error| format!("summary.json: {error}"))?;
        if summary.right { Ok(summary) } else { Err("what arrived is not the film".into()) }
    }

    /// The traffic of a flow over all paths, by second.
    ///
    /// # Errors
    /// It cannot be read, or the flow is not in it.
    pub fn traffic(&self, flow: &str) -> Result<Vec<Traffic>, String> {
        let rows: Vec<Traffic> = self.rows("traffic.csv")?;
        let rows: Vec<Traffic> = rows.into_iter().filter(|row| row.flow == flow).collect();
        if rows.is_empty() { Err(format!("traffic.csv has nothing of '{flow}'")) } else { Ok(rows) }
    }

    /// The mean of a flow's seconds over all paths, of those that lie within a span. The last second of a run
    /// is not whole.
    ///
    /// # Errors
    /// As of [`traffic`](Self::traffic), or the span has no second.
    pub fn mean(&self, flow: &str, within: &Range<f64>, value: fn(&Traffic) -> f64) -> Result<f64, String> {
        let rows = self.traffic(flow)?;
        let seconds: Vec<f64> = rows.iter().filter(|row| within.contains(&row.time_s)).map(value).collect();
        mean(&seconds).ok_or_else(|| format!("traffic.csv has nothing of '{flow}' in {within:?} s"))
    }

    /// The client's connections, five times a second.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn connections(&self) -> Result<Vec<Connections>, String> {
        self.rows("connections.csv")
    }

    /// The lines of a file of statistics (`--stats`).
    ///
    /// # Errors
    /// It cannot be read.
    pub fn lines(&self, name: &str) -> Result<Vec<serde_json::Value>, String> {
        let lines = self.text(name)?;
        lines
            .lines()
            .map(|line| serde_json::from_str(line).map_err(|error| format!("{name}: {error}")))
            .collect()
    }

    /// The calls of the BPF programs behind the kernel's hooks, by their names.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn calls(&self) -> Result<BTreeMap<String, Calls>, String> {
        serde_json::from_str(&self.text(CALLS)?).map_err(|error| format!("{CALLS}: {error}"))
    }

    fn rows<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, String> {
        let text = self.text(name)?;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        reader.deserialize().map(|row| row.map_err(|error| format!("{name}: {error}"))).collect()
    }

    fn text(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.directory.join(name)).map_err(|error| format!("{name}: {error}"))
    }
}
