//! What is measured in the files that a run of the testbed leaves: a number from a column over time.

use std::collections::BTreeMap;
use std::path::Path;

use anabranch_sim::scenario::{Fault, Item, Table};

use super::error::CampaignError;
use super::folded::{Fold, Formula};
use super::raw::{Row, read_rows};
use super::selection::Selection;
use crate::path_error::PathError;
use crate::plan::names::{number, text};

/// A number from a file.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// Beside the run's summary: `.csv` with a heading, or `.jsonl`.
    file: String,
    /// Lines that have these texts.
    of: Selection,
    /// The column that has the time; what has the same one is added up.
    at: String,
    /// Of which time on, and up to which.
    from: f64,
    to: Option<Formula>,
    value: Formula,
    fold: Fold,
}

impl Series {
    pub(super) fn read(mut own: Table<'_>) -> Result<Self, Fault> {
        let (name, file) = (own.need("name", text), own.need("file", file));
        let of = own.get("of", Selection::read).unwrap_or_default();
        let at = own.get("at", text).unwrap_or_else(|| "time_s".into());
        let from = own.get("from", number).unwrap_or(f64::NEG_INFINITY);
        let to = own.get("to", Formula::read);
        let value = own.need("value", Formula::read);
        let fold = own.need("take", |item| item.one_of(&Fold::NAMES));
        own.finish()?;
        Ok(Self { name: name?, file: file?, of, at, from, to, value: value?, fold: fold? })
    }

    /// Measures it in a run's directory; `None` where there is no such file, or nothing in it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn measure(&self, directory: &Path, summary: &Row) -> Result<Option<f64>, CampaignError> {
        let path = directory.join(&self.file);
        if !path.exists() {
            return Ok(None);
        }
        let rows = if self.file.ends_with(".csv") { read_csv(&path)? } else { read_rows(&path)? };
        let to = self.to.as_ref().map_or(Some(f64::INFINITY), |to| to.of_row(summary));
        let Some(to) = to else { return Ok(None) };
        let mut sums: BTreeMap<u64, (f64, Row)> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| self.of.has(row)) {
            let Some(at) = row.number(&self.at).filter(|at| (self.from..=to).contains(at)) else { continue };
            // Times are not negative: their bits have their order.
            match sums.entry(at.to_bits()) {
                std::collections::btree_map::Entry::Vacant(entry) => _ = entry.insert((at, row)),
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    entry.get_mut().1.add(&row, &self.at);
                }
            }
        }
        let values: Vec<f64> = sums.values().filter_map(|(_, row)| self.value.of_row(row)).collect();
        Ok(self.fold.of(&values))
    }
}

fn file(item: Item<'_>) -> Result<String, Fault> {
    let name = item.text()?;
    let is_name = !name.contains('/') && [".csv", ".jsonl"].iter().any(|end| name.ends_with(end));
    if is_name {
        Ok(name.into())
    } else {
        Err(item.fault("`file` is the name of a .csv or .jsonl file of a run"))
    }
}

/// The lines of a table with a heading; what is a number is one.
fn read_csv(path: &Path) -> Result<Vec<Row>, CampaignError> {
    let wrong = |line: usize, error: csv::Error| CampaignError::Raw {
        path: path.into(),
        line,
        error: error.to_string(),
    };
    let file = std::fs::File::open(path).map_err(PathError::reading(path))?;
    let mut reader = csv::Reader::from_reader(file);
    let heading = reader.headers().map_err(|error| wrong(1, error))?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(rows.len() + 2, error))?;
        let mut row = Row::default();
        for (name, text) in heading.iter().zip(&record) {
            match text.parse::<f64>() {
                Ok(number) => row.set(name, number),
                Err(_) if text.is_empty() => {}
                Err(_) => row.set(name, text),
            }
        }
        rows.push(row);
    }
    Ok(rows)
}
