//! `[grid]` and `[[axis]]` of a plan.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Item, Table};

use super::super::names::{self, number, text};
use super::super::runs::{Changes, Run};
use super::super::written::{changes, computed, plain};
use super::paths::{Axis, Choice, Grid, Reference, draw};
use crate::scheme::Scheme;

/// A grid has no more paths.
const MOST_PATHS: usize = 1000;

/// The grid and its runs, where a plan has one.
pub(in super::super) fn read(
    table: &mut Table<'_>,
    schemes: &[(Scheme, Changes)],
) -> Option<(Arc<Grid>, Vec<Run>)> {
    let axes: Vec<Axis> =
        (table.tables("axis").into_iter().filter_map(|own| table.kept(axis(own)))).collect();
    let item = table.item("grid")?;
    table.kept(grid(item, axes, schemes))
}

fn grid(
    item: Item<'_>,
    axes: Vec<Axis>,
    schemes: &[(Scheme, Changes)],
) -> Result<(Arc<Grid>, Vec<Run>), Fault> {
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
    own.finish()?;
    let lengths: Vec<usize> = axes.iter().map(|axis| axis.choices.len()).collect();
    let paths = draw(&lengths, paths?, seed? as u64, halves? as u64);
    let reference = Reference { schemes: fixed?, figure: figure? };
    if let Some(missing) = reference.schemes.iter().find(|one| schemes.iter().all(|(own, _)| own != *one)) {
        return Err(Fault::new(
            at,
            format_args!("`fixed`: '{}' is no [[scheme]] of this plan", missing.name),
        ));
    }
    let grid = Grid { axes, paths, quick: quick?, reference };
    let runs = grid.runs(schemes, &computed, at).map_err(|what| Fault::new(at, what))?;
    Ok((Arc::new(grid), runs))
}

fn whole(item: Item<'_>, most: usize) -> Result<usize, Fault> {
    let is_right = |number: f64| number >= 1.0 && number.fract() == 0.0 && number <= most as f64;
    item.number(is_right, "that is whole and from 1").map(|number| number as usize)
}

fn axis(mut own: Table<'_>) -> Result<Axis, Fault> {
    let name = own.need("name", text);
    let choices = own.need("values", |item| match item.each(choice)? {
        choices if choices.is_empty() => Err(item.fault("an axis has at least one value")),
        choices => Ok(choices),
    });
    own.finish()?;
    Ok(Axis { name: name?, choices: choices? })
}

/// A number, or a table of what it changes.
fn choice(item: Item<'_>) -> Result<Choice, Fault> {
    if let Ok(number) = number(item) {
        let label = plain(number).to_string();
        return Ok(Choice { label, number, changes: Changes::new() });
    }
    let mut own = item.table("a value of an axis")?;
    let label = own.need("label", text);
    let number = own.get("number", number).unwrap_or(0.0);
    let changes = own.get("set", changes).unwrap_or_default();
    own.finish()?;
    Ok(Choice { label: label?, number, changes })
}
