//! Tables by the values of an axis.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Table as Document};

use super::super::names::{id_and_title, text};
use super::across::Across;
use super::paths::{Choice, Grid};
use crate::experiment::{Cell, Row, Table};

/// A table with a row for every value of an axis.
pub(in super::super) struct Breakdown {
    id: String,
    title: String,
    grid: Arc<Grid>,
    axis: usize,
    columns: Vec<(String, Arc<Across>)>,
}

impl Breakdown {
    /// Reads a `[[breakdown]]`.
    pub(in super::super) fn read(
        mut own: Document<'_>,
        grid: &Arc<Grid>,
        figures: &[String],
    ) -> Result<Self, Fault> {
        let (id, title) = id_and_title(&mut own);
        let axis = own.need("by", |item| grid.axis(&item, item.text()?));
        let mut columns = Vec::new();
        for mut inner in own.tables("column") {
            let head = inner.need("head", text);
            let across = Across::read(&mut inner, grid, figures);
            let read = inner.finish().and_then(|()| Ok((head?, Arc::new(across?))));
            columns.extend(own.kept(read));
        }
        own.finish()?;
        Ok(Self { id: id?, title: title?, grid: Arc::clone(grid), axis: axis?, columns })
    }

    /// The table: what a cell has, it has of each seed by itself.
    pub(in super::super) fn into_table(self) -> Table {
        let axis = self.axis;
        let cell = |choice: usize, across: &Arc<Across>| {
            let across = Arc::clone(across);
            Cell {
                published: None,
                value: Box::new(move |seed| across.of(&[seed], |path| path.choices[axis] == choice)),
            }
        };
        let row = |(choice, value): (usize, &Choice)| Row {
            label: value.label.clone(),
            cells: self.columns.iter().map(|(_, across)| cell(choice, across)).collect(),
        };
        let own = &self.grid.axes[axis];
        let heads = self.columns.iter().map(|(head, _)| head.clone());
        Table {
            columns: std::iter::once(own.name.clone()).chain(heads).collect(),
            rows: own.choices.iter().enumerate().map(row).collect(),
            id: self.id,
            title: self.title,
        }
    }
}
