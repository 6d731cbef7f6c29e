//! What a run inside is told, and what all of its parts know.

use std::path::PathBuf;
use std::time::Duration as StdDuration;

use serde::{Deserialize, Serialize};

/// Scratch space on the run's own tmpfs.
pub(super) const SCRATCH: &str = "/run/testbed";

/// How often the main loop looks at what is due.
pub(super) const TICK: StdDuration = StdDuration::from_millis(20);

/// What the caller wants; an argument of the hidden command `inside`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub scenario: PathBuf,
    pub client: String,
    pub film: Option<PathBuf>,
    /// The film's rate in bit/s where it is another film than the scenario's.
    pub film_bps: Option<u64>,
    pub anabranch: PathBuf,
    pub out: PathBuf,
    pub keep: bool,
}
