//! What a simulation leaves behind: `flows.csv`, `links.csv`, `events.jsonl` and `summary.json` in a
//! directory, and a capture of its packets. The columns are in `docs/sim.md`. Nothing in the files depends on
//! the machine or on the time of day.

mod capacity;
mod capture;
mod decimal;
mod failure;
mod rows;
mod summary;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use crate::model::Model;
use crate::report::{Decision, FlowSample, LinkSample, Observer, PacketRecord};
use capture::Capture;
pub use failure::Failure;
use failure::create;
use rows::Rows;
pub use summary::{FlowSummary, LinkSummary, MediaSummary, Summary};

/// An observer that writes files. What goes wrong is kept until [`Output::failed`] or [`Output::finish`] is
/// called; nothing is written after that.
#[derive(Debug, Default)]
pub struct Output {
    rows: Option<(PathBuf, Rows)>,
    capture: Option<(PathBuf, Capture)>,
    tells_loss_events: bool,
    failure: Option<Failure>,
}

impl Output {
    /// Writes rows and events to files in this directory, which is made where it is not there; files of an
    /// earlier run are written over.
    ///
    /// # Errors
    /// The directory or a file cannot be made.
    pub fn directory(mut self, directory: &Path, model: &Model) -> Result<Self, Failure> {
        self.rows = Some((directory.into(), Rows::create(directory, model)?));
        Ok(self)
    }

    /// Writes packets to this pcapng file.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn capture(mut self, file: &Path, model: &Model) -> Result<Self, Failure> {
        let capture = Capture::new(create(file)?, model).map_err(|error| Failure::new(file, error))?;
        self.capture = Some((file.into(), capture));
        Ok(self)
    }

    /// Writes every loss event and time-out of TCP to `events.jsonl` as well.
    pub fn loss_events(mut self, are_told: bool) -> Self {
        self.tells_loss_events = are_told;
        self
    }

    /// Whether a file could not be written; the simulation can end then.
    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends the files: all their rows are complete then. Writes `summary.json`.
    ///
    /// # Errors
    /// A file could not be written, now or before.
    pub fn finish(mut self, summary: &Summary) -> Result<(), Failure> {
        self.write_rows(Rows::finish);
        self.write_packet(Capture::finish);
        match (self.failure, &self.rows) {
            (Some(failure), _) => Err(failure),
            (None, Some((directory, _))) => rows::write_summary(directory, summary),
            (None, None) => Ok(()),
        }
    }

    fn write_rows(&mut self, write: impl FnOnce(&mut Rows) -> io::Result<()>) {
        if let (Some((path, rows)), None) = (&mut self.rows, &self.failure)
            && let Err(error) = write(rows)
        {
            self.failure = Some(Failure::new(path, error));
        }
    }

    fn write_packet(&mut self, write: impl FnOnce(&mut Capture) -> io::Result<()>) {
        if let (Some((path, capture)), None) = (&mut self.capture, &self.failure)
            && let Err(error) = write(capture)
        {
            self.failure = Some(Failure::new(path, error));
        }
    }
}

impl Observer for Output {
    fn flow(&mut self, sample: &FlowSample) {
        self.write_rows(|rows| rows.flow(sample));
    }

    fn link(&mut self, sample: &LinkSample) {
        self.write_rows(|rows| rows.link(sample));
    }

    fn decision(&mut self, decision: &Decision) {
        self.write_rows(|rows| rows.decision(decision));
    }

    fn packet(&mut self, packet: &PacketRecord) {
        self.write_packet(|capture| capture.packet(packet));
    }

    fn wants_packets(&self) -> bool {
        self.capture.is_some()
    }

    fn wants_loss_events(&self) -> bool {
        self.tells_loss_events
    }
}
