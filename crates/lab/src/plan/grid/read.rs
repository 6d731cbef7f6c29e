//! `[grid]` and `[[axis]]` of a plan.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Item, Table};

use super::super::names::{self, number, text};
use super::super::runs::{Changes, Run};
use super::super::written::{PlannedScheme, changes, computed, plain};
use super::paths::{Axis, Choice, Grid, Reference, draw};
use crate::scheme::Scheme;

/// A grid has no more paths.
const MOST_PATHS: usize = 1000;

/// The grid and its runs, where a plan has one.
pub(in super::super) fn read(
    table: &mut Table<'_>,
    schemes: &[PlannedScheme],
) -> Option<(Arc<Grid>, Vec<Run>)> {
    let mut tables = table.tables("axis");
    // A value can be computed from those of other axes.
    let names = tables.iter_mut().filter_map(|own| own.item("name")?.text().ok());
    let names: Vec<&str> = names.collect();
    let axes: Vec<Axis> = tables.into_iter().filter_map(|own| table.kept(axis(own, &names))).collect();
    let item = table.item("grid")?;
    table.kept(grid(item, axes, schemes))
}

fn grid(item: Item<'_>, axes: Vec<Axis>, schemes: &[PlannedScheme]) -> Result<(Arc<Grid>, Vec<Run>), Fault> {
    let mut own = item.table("`grid`")?;
    let at = own.span();
    let count = |item: Item<'_>| whole(item, MOST_PATHS);
    let paths = own.need("paths", count);
    let quick = own.need("quick", count);
    let seed = own.need("seed", |item| whole(item, usize::MAX));
    let halves = own.need("halves", |item| whole(item, usize::MAX));
    let known: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
    let computed = own.get("computed", |item| computed(item, &known)).unwrap_or_default();
    let fixed = own.need("fixed", |item| item.each(names::scheme));
    let figure = own.need("holds", text);
    let on_first = own.get("on_first", on_first);
    own.finish()?;
    let lengths: Vec<usize> = axes.iter().map(|axis| axis.choices.len()).collect();
    let paths = draw(&lengths, paths?, seed? as u64, halves? as u64);
    let reference = Reference { schemes: fixed?, figure: figure? };
    let some = || on_first.iter().flat_map(|(some, _)| some);
    let is_missing = |one: &&Scheme| schemes.iter().all(|own| own.scheme != **one);
    if let Some(missing) = reference.schemes.iter().chain(some()).find(is_missing) {
        return Err(Fault::new(at, format_args!("'{}' is no [[scheme]] of this plan", missing.name)));
    }
    if let Some(one) = some().find(|one| reference.schemes.contains(one)) {
        return Err(Fault::new(at, format_args!("'{}' is in `fixed`: it runs on all paths", one.name)));
    }
    let grid = Grid { axes, paths, quick: quick?, reference, on_first };
    let runs = grid.runs(schemes, &computed, at).map_err(|what| Fault::new(at, what))?;
    Ok((Arc::new(grid), runs))
}

/// `{ paths = N, schemes = [...] }`: schemes that run on the first paths only.
fn on_first(item: Item<'_>) -> Result<(Vec<Scheme>, usize), Fault> {
    let mut own = item.table("`on_first`")?;
    let paths = own.need("paths", |item| whole(item, MOST_PATHS));
    let schemes = own.need("schemes", |item| item.each(names::scheme));
    own.finish()?;
    Ok((schemes?, paths?))
}

impl Grid {
    /// The axis that is named, by its place.
    pub(super) fn axis(&self, item: &Item<'_>, name: &str) -> Result<usize, Fault> {
        let axes = || self.axes.iter().map(|axis| &*axis.name);
        let name = names::known(item, "axis", name, axes())?;
        Ok(axes().position(|known| known == name).unwrap_or_default())
    }

    /// `{ AXIS = "LABEL" }` or `{ AXIS = ["LABEL", ...] }`: axes, and values of each, by their places.
    pub(super) fn some_of(&self, item: Item<'_>) -> Result<Vec<(usize, Vec<usize>)>, Fault> {
        let table = item.table("`only`")?;
        let of_axis = |entry: Item<'_>| {
            let axis = self.axis(&entry, entry.key)?;
            let labels = || self.axes[axis].choices.iter().map(|choice| &*choice.label);
            let place = |item: Item<'_>| {
                let label = names::known(&item, "value of this axis", item.text()?, labels())?;
                Ok(labels().position(|known| known == label).unwrap_or_default())
            };
            let values = if entry.text().is_ok() { vec![place(entry)?] } else { entry.each(place)? };
            Ok((axis, values))
        };
        table.entries().map(of_axis).collect()
    }
}

fn whole(item: Item<'_>, most: usize) -> Result<usize, Fault> {
    let is_right = |number: f64| number >= 1.0 && number.fract() == 0.0 && number <= most as f64;
    item.number(is_right, "that is whole and from 1").map(|number| number as usize)
}

fn axis(mut own: Table<'_>, names: &[&str]) -> Result<Axis, Fault> {
    let name = own.need("name", text);
    let choices = own.need("values", |item| match item.each(|item| choice(item, names))? {
        choices if choices.is_empty() => Err(item.fault("an axis has at least one value")),
        choices => Ok(choices),
    });
    own.finish()?;
    Ok(Axis { name: name?, choices: choices? })
}

/// A number, or a table of what it changes.
fn choice(item: Item<'_>, names: &[&str]) -> Result<Choice, Fault> {
    if let Ok(number) = number(item) {
        let label = plain(number).to_string();
        return Ok(Choice { label, number, changes: Changes::new(), computed: Vec::new() });
    }
    let mut own = item.table("a value of an axis")?;
    let label = own.need("label", text);
    let number = own.get("number", number).unwrap_or(0.0);
    let changes = own.get("set", changes).unwrap_or_default();
    let computed = own.get("computed", |item| computed(item, names)).unwrap_or_default();
    own.finish()?;
    Ok(Choice { label: label?, number, changes, computed })
}
