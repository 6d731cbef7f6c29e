//! Scenario files: TOML with quantities as people write them becomes a [`Model`]. The format is in `docs/sim.md`.
//!
//! Whatever is wrong is told with its place and with what would be right ([`Error`]).

mod error;
mod flow;
mod link;
mod media;
mod network;
mod table;
mod tcp;
mod tfrc;
mod topology;
mod trace;
mod values;

#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use toml::de::DeTable;
use units::Duration;

use crate::model::{Flow, Model, Run};
pub use error::{Error, Fault, Span, Wrong};
use network::Network;
pub use table::{Item, Table};

/// The largest scenario, and the largest trace, that is read.
pub const LARGEST_FILE: u64 = 32 << 20;
/// Nothing runs longer: 115 days.
const LONGEST_RUN: Duration = Duration::from_secs(10_000_000);
/// No sampling interval is shorter.
const SHORTEST_SAMPLING: Duration = Duration::from_millis(1);
/// Most rows of `flows.csv` and `links.csv` together: some hundred megabytes.
const MOST_ROWS: u64 = 10_000_000;

/// Where the files come from that a scenario names.
pub trait Files {
    /// The text of the file `name`, which is relative to the scenario.
    ///
    /// # Errors
    /// There is no such file, or it is no text, or larger than [`LARGEST_FILE`].
    fn read(&mut self, name: &str) -> io::Result<String>;
}

/// The files in a directory: that of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a>(pub &'a Path);

impl Files for Beside<'_> {
    fn read(&mut self, name: &str) -> io::Result<String> {
        read_text(&self.0.join(name))
    }
}

/// Reads a scenario file, and the traces that it names.
///
/// `seed` takes the place of the one in the file.
///
/// # Errors
/// The file cannot be read, or is no scenario; the error says where it is wrong.
pub fn load(file: &Path, seed: Option<u64>) -> Result<Model, Error> {
    let name = file.display().to_string();
    let text = read_text(file).map_err(|error| Error::Read { file: name.clone(), error })?;
    let directory = file.parent().unwrap_or(Path::new(""));
    parse(&name, &text, seed, &mut Beside(directory))
}

/// Reads the text of a scenario; `file` is its name in errors.
///
/// # Errors
/// The text is no scenario; the error says where it is wrong.
pub fn parse(file: &str, text: &str, seed: Option<u64>, files: &mut dyn Files) -> Result<Model, Error> {
    read_document(file, text, "a scenario", |table| read(table, seed, files))
}

/// Reads the text of a TOML document; `file` is its name in errors, and `what` it is stands there with its article.
///
/// # Errors
/// The text is no TOML, or what `read` finds wrong, with its place.
pub fn read_document<T>(
    file: &str,
    text: &str,
    what: &str,
    read: impl FnOnce(Table<'_>) -> Result<T, Fault>,
) -> Result<T, Error> {
    let document = DeTable::parse(text).map_err(|error| Fault::from(&error).locate(file, text))?;
    let table = Table::new(what, (0..0).into(), Some(document.get_ref()));
    read(table).map_err(|fault| fault.locate(file, text))
}

fn read(mut document: Table<'_>, seed: Option<u64>, files: &mut dyn Files) -> Result<Model, Fault> {
    let run_item = document.need("run", Ok)?;
    let run = run(run_item, seed)?;
    let mut network = Network::new(run.seed, files);
    document.get("topology", |item| topology::read(item, &mut network))?;
    network::read_nodes(document.tables("node")?, &mut network)?;
    network::read_links(document.tables("link")?, &mut network)?;
    let settings = document.get("tcp", tcp::read_all)?.unwrap_or_default();
    let flows = flow::read_all(document.tables("flow")?, &settings, &mut network)?;
    document.finish()?;
    if flows.is_empty() {
        return Err(run_item.fault("nobody sends: a scenario needs at least one [[flow]]"));
    }
    check_rows(run_item, &run, &flows, network.links.len())?;
    Ok(Model { nodes: network.nodes, links: network.links, flows, run })
}

fn run(item: Item<'_>, seed: Option<u64>) -> Result<Run, Fault> {
    let mut table = item.table("[run]")?;
    let duration = table.need("duration", |item| match item.positive_duration()? {
        duration if duration > LONGEST_RUN => {
            Err(item.fault(format_args!("a run is at most {LONGEST_RUN} of simulated time")))
        }
        duration => Ok(duration),
    })?;
    let written = table.get("seed", |item| item.whole(0..=u64::MAX))?;
    let sampling = table.get("sampling", |item| match item.duration()? {
        sampling if sampling < SHORTEST_SAMPLING => {
            Err(item.fault(format_args!("`sampling` is at least {SHORTEST_SAMPLING}")))
        }
        sampling => Ok(sampling),
    })?;
    let warm_up = table.get("warm_up", |item| match item.duration()? {
        warm_up if warm_up >= duration => Err(item.fault(format_args!(
            "the warm-up ({warm_up}) has to be shorter than the run ({duration}): nothing would be counted"
        ))),
        warm_up => Ok(warm_up),
    })?;
    table.finish()?;
    Ok(Run {
        duration,
        seed: seed.or(written).unwrap_or(1),
        sampling: sampling.unwrap_or(Duration::from_secs(1)),
        warm_up: warm_up.unwrap_or(Duration::ZERO),
    })
}

/// A run must not fill a disk by a slip of the pen.
fn check_rows(item: Item<'_>, run: &Run, flows: &[Flow], links: usize) -> Result<(), Fault> {
    let intervals = run.duration.as_nanos().div_ceil(run.sampling.as_nanos());
    let rows = u64::try_from(flows.len() + links).unwrap_or(u64::MAX).saturating_mul(intervals);
    if rows <= MOST_ROWS {
        return Ok(());
    }
    let mut table = item.table("[run]")?;
    let item = table.item("sampling").or(table.item("duration")).unwrap_or(item);
    let fault = item.fault(format_args!(
        "{intervals} intervals of {} flows and {links} links would give {rows} rows of output, more than {MOST_ROWS}",
        flows.len()
    ));
    Err(fault.help("make `sampling` longer or `duration` shorter"))
}

/// A regular file's text, of at most [`LARGEST_FILE`].
///
/// # Errors
/// It cannot be read, is no regular file or no text, or is larger.
pub fn read_text(path: &Path) -> io::Result<String> {
    let too_large = || {
        io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MiB", LARGEST_FILE >> 20))
    };
    // Anything else may never end, or wait for somebody who writes it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    let read = fs::File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST_FILE { Err(too_large()) } else { Ok(text) }
}
