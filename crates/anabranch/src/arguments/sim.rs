//! `anabranch sim`.

use std::path::PathBuf;

use clap::Args;

/// Options of `anabranch sim`.
#[derive(Args, Debug)]
pub struct SimArguments {
    /// The scenario: nodes, links and flows as TOML; docs/scenario.md has the format
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Seed of all randomness, in the place of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::values::seed)]
    pub seed: Option<u64>,
    /// Write flows.csv, links.csv, events.jsonl and summary.json to this directory; files of an earlier run
    /// are overwritten
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the packets' headers to this file, for Wireshark
    #[arg(long, value_name = "FILE.pcapng")]
    pub trace: Option<PathBuf>,
    /// Write every loss event and time-out of TCP to events.jsonl as well
    #[arg(long, requires = "out")]
    pub loss_events: bool,
}
