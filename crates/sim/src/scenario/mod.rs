//! Scenario files: TOML with quantities as people write them becomes a [`Model`]. The format is in
//! `docs/sim.md`.
//!
//! Whatever is wrong is told with its place and with what would be right ([`Error`]).

mod error;
mod files;
mod flow;
mod link;
mod media;
mod names;
mod network;
mod table;
mod tcp;
mod tfrc;
mod topology;
mod trace;
mod values;

#[cfg(test)]
mod tests;

use std::path::Path;

use anabranch_units::Duration;
use toml::de::DeTable;

use crate::model::{Flow, Model, Run};
pub use error::{Error, Fault, Faults, Mistakes, Span, Wrong};

pub use files::{Beside, Files, LARGEST_FILE, read_text};
use flow::Flows;
use network::NamedNetwork;
pub use table::{Item, Table};

/// Nothing runs longer: 115 days.
const LONGEST_RUN: Duration = Duration::from_secs(10_000_000);
/// No sampling interval is shorter.
const SHORTEST_SAMPLING: Duration = Duration::from_millis(1);
/// Most rows of `flows.csv` and `links.csv` together: some hundred megabytes.
const MOST_ROWS: u64 = 10_000_000;

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

/// Reads the text of a TOML document; `file` is its name in errors, and `what` it is stands there with its
/// article.
///
/// # Errors
/// The text is no TOML, or what `read` finds wrong, with its place.
pub fn read_document<T>(
    file: &str,
    text: &str,
    what: &str,
    read: impl FnOnce(Table<'_>) -> Result<T, Fault>,
) -> Result<T, Error> {
    let faults = Faults::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    errors.iter().for_each(|error| faults.add(error.into()));
    if errors.is_empty() {
        match read(Table::new(what, (0..0).into(), Some(document.get_ref()), &faults)) {
            Ok(content) if faults.count() == 0 => return Ok(content),
            Ok(_) => {}
            Err(fault) => faults.add(fault),
        }
    }
    Err(faults.locate(file, text))
}

fn read(mut document: Table<'_>, seed: Option<u64>, files: &mut dyn Files) -> Result<Model, Fault> {
    let run = document.need("run", |item| Ok((item, run(item, seed)?)));
    let seed = run.as_ref().map_or(0, |(_, run)| run.seed);
    let mut network = NamedNetwork::new(seed, files);
    let before = document.faults_so_far();
    document.get("topology", |item| topology::read(item, &mut network));
    for table in document.tables("node") {
        document.kept(network::read_node(table, &mut network));
    }
    network.has_all_nodes = document.faults_so_far() == before;
    for table in document.tables("link") {
        document.kept(network::read_link(table, &mut network));
    }
    network.has_all_links = document.faults_so_far() == before;
    let settings = document.get("tcp", tcp::read_all).unwrap_or_default();
    let mut flows = Flows::default();
    for table in document.tables("flow") {
        document.kept(flows.read(table, &settings, &mut network));
    }
    let flows = flows.all;
    let is_right = document.faults_so_far() == 0;
    document.finish()?;
    if !is_right {
        return Err(Fault::TOLD);
    }
    let (run_item, run) = run?;
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
    });
    let written = table.get("seed", |item| item.whole(0..=u64::MAX));
    let sampling = table.get("sampling", |item| match item.duration()? {
        sampling if sampling < SHORTEST_SAMPLING => {
            Err(item.fault(format_args!("`sampling` is at least {SHORTEST_SAMPLING}")))
        }
        sampling => Ok(sampling),
    });
    let warm_up = table.get("warm_up", |item| match (item.duration()?, &duration) {
        (warm_up, Ok(duration)) if warm_up >= *duration => Err(item.fault(format_args!(
            "the warm-up ({warm_up}) has to be shorter than the run ({duration}): nothing would be counted"
        ))),
        (warm_up, _) => Ok(warm_up),
    });
    table.finish()?;
    Ok(Run {
        duration: duration?,
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
