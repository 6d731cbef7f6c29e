//! Scenario files: what `anabranch-scenario` reads becomes a [`Model`] that can be simulated. The format is
//! in
//! `docs/scenario.md`.
//!
//! Whatever is wrong is told with its place and with what would be right ([`Error`]).

#[cfg(test)]
mod tests;

use std::path::Path;

pub use anabranch_scenario::{
    Beside, Error, Fault, Faults, Files, Item, LARGEST_FILE, Mistakes, Span, Table, Wrong, playback,
    read_document, read_text,
};

use crate::model::Model;

/// What only a world of real programs has.
const PROGRAMS: [&str; 7] = ["film", "live", "server", "client", "event", "ping", "kernel"];
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
    read_document(file, text, "a scenario", |document| read(document, seed, files))
}

fn read(mut document: Table<'_>, seed: Option<u64>, files: &mut dyn Files) -> Result<Model, Fault> {
    let described = anabranch_scenario::read(&mut document, seed, files);
    for key in PROGRAMS {
        document.refuse(key, format_args!("the simulator runs no programs: only the testbed has `{key}`"));
    }
    document.finish()?;
    let described = described?;
    if described.model.flows.is_empty() {
        return Err(described.run.fault("nobody sends: a scenario needs at least one [[flow]]"));
    }
    check_rows(described.run, &described.model)?;
    Ok(described.model)
}

/// A run must not fill a disk by a slip of the pen.
fn check_rows(item: Item<'_>, model: &Model) -> Result<(), Fault> {
    let (flows, links) = (model.flows.len(), model.links.len());
    let intervals = model.run.duration.as_nanos().div_ceil(model.run.sampling.as_nanos());
    let rows = u64::try_from(flows + links).unwrap_or(u64::MAX).saturating_mul(intervals);
    if rows <= MOST_ROWS {
        return Ok(());
    }
    let mut table = item.table("[run]")?;
    let item = table.item("sampling").or(table.item("duration")).unwrap_or(item);
    let fault = item.fault(format_args!(
        "{intervals} intervals of {flows} flows and {links} links would give {rows} rows of output, more \
         than {MOST_ROWS}"
    ));
    Err(fault.help("make `sampling` longer or `duration` shorter"))
}
