//! The file of a campaign. Its format is in `docs/campaigns.md`.

use anabranch_sim::scenario::{Fault, Item, Table};

use super::folded::{Fold, Formula};
use super::selection::Selection;
use super::series::Series;
use crate::plan::names::{known, number, text};

/// How a campaign is run, and what is made of its results.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) driver: Driver,
    /// Programs that have to be there.
    pub(super) needs: Vec<String>,
    pub(super) tables: Vec<Shown>,
    pub(super) bounds: Vec<Bound>,
}

/// What makes the raw results.
#[derive(Debug)]
pub(super) enum Driver {
    /// A program that prints them.
    Command(Vec<String>),
    /// The testbed, with a scenario beside the campaign's file, and what is measured in the files of a run.
    Scenario { file: String, series: Vec<Series> },
}

/// A table.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) title: String,
    pub(super) of: Selection,
    /// The texts that name a row.
    pub(super) row: Vec<String>,
    /// The text whose values are the columns; each has what the only column says.
    pub(super) across: Option<String>,
    pub(super) columns: Vec<Column>,
    /// The column that is drawn.
    pub(super) plot: Option<usize>,
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: String,
    pub(super) cell: Cell,
}

/// What stands in a column.
#[derive(Debug)]
pub(super) enum Cell {
    /// A text of the results.
    Text(String),
    Number {
        value: Formula,
        /// What becomes of the values of several results.
        fold: Fold,
        decimals: usize,
        is_percent: bool,
        /// As a multiple of what stands in this row.
        beside: Option<String>,
    },
}

/// What is to come out.
#[derive(Debug)]
pub(super) struct Bound {
    /// In words.
    pub(super) text: String,
    /// Places of the table and of its column.
    pub(super) place: (usize, usize),
    /// All rows where there is none.
    pub(super) row: Option<String>,
    pub(super) at_least: Option<f64>,
    pub(super) at_most: Option<f64>,
}

/// Reads the title, the aim and the rest.
pub(super) fn read(mut table: Table<'_>) -> Result<(String, String, Document), Fault> {
    let title = table.need("title", text);
    let aim = table.need("aim", text);
    let needs = table.get("needs", |item| item.each(text)).unwrap_or_default();
    let driver = table.need("run", driver);
    let tables: Vec<Shown> = table
        .tables("table")
        .into_iter()
        .filter_map(|own| {
            let read = shown(own);
            table.kept(read)
        })
        .collect();
    let bounds = table.tables("bound").into_iter().filter_map(|own| {
        let read = bound(own, &tables);
        table.kept(read)
    });
    let bounds = bounds.collect();
    if tables.is_empty() {
        table.tell(Fault::new(table.span(), "there is no [[table]]: what is measured is shown in one"));
    }
    table.finish()?;
    Ok((title?, aim?, Document { driver: driver?, needs, tables, bounds }))
}

fn driver(item: Item<'_>) -> Result<Driver, Fault> {
    let mut own = item.table("`run`")?;
    let (command, file) = (own.get("command", |item| item.each(text)), own.get("scenario", text));
    let mut series = Vec::new();
    for one in own.tables("measure") {
        let read = Series::read(one);
        series.extend(own.kept(read));
    }
    own.finish()?;
    match (command, file) {
        (Some(command), None) if !command.is_empty() && series.is_empty() => Ok(Driver::Command(command)),
        (None, Some(file)) => Ok(Driver::Scenario { file, series }),
        _ => {
            Err(item
                .fault("`run` has either a `command`, or a `scenario` and what is to `measure` of its runs"))
        }
    }
}

fn shown(mut own: Table<'_>) -> Result<Shown, Fault> {
    let title = own.get("title", text).unwrap_or_default();
    let of = own.get("of", Selection::read).unwrap_or_default();
    let row = own.need("row", |item| item.each(text));
    let across = own.get("across", text);
    let mut columns = Vec::new();
    for one in own.tables("column") {
        let read = column(one);
        columns.extend(own.kept(read));
    }
    if across.is_some() && columns.len() > 1 {
        own.tell(Fault::new(own.span(), "a table `across` the values of a text has one [[table.column]]"));
    }
    if columns.is_empty() {
        own.tell(Fault::new(own.span(), "a table has at least one [[table.column]]"));
    }
    let plot = own.get("plot", |item| place(&item, &columns));
    own.finish()?;
    Ok(Shown { title, of, row: row?, across, columns, plot })
}

fn column(mut own: Table<'_>) -> Result<Column, Fault> {
    let title = own.need("title", text);
    let cell = if own.has("text") {
        own.need("text", text).map(Cell::Text)
    } else {
        let value = own.need("value", Formula::read);
        let fold = own.get("take", |item| item.one_of(&Fold::NAMES)).unwrap_or(Fold::Median);
        let decimals = own.get("decimals", decimals).unwrap_or(2);
        let is_percent = own.get("percent", Item::flag).unwrap_or(false);
        let beside = own.get("beside", text);
        value.map(|value| Cell::Number { value, fold, decimals, is_percent, beside })
    };
    own.finish()?;
    Ok(Column { title: title?, cell: cell? })
}

fn decimals(item: Item<'_>) -> Result<usize, Fault> {
    let number =
        item.number(|number| (0.0..=9.0).contains(&number) && number.fract() == 0.0, "from 0 to 9")?;
    Ok((0..=9_u8).find(|count| f64::from(*count) == number).map_or(0, usize::from))
}

fn place(item: &Item<'_>, columns: &[Column]) -> Result<usize, Fault> {
    let titles = || columns.iter().map(|column| column.title.as_str());
    let title = known(item, "column", item.text()?, titles())?;
    Ok(titles().position(|known| known == title).unwrap_or_default())
}

fn bound(mut own: Table<'_>, tables: &[Shown]) -> Result<Bound, Fault> {
    let at = own.span();
    let words = own.need("text", text);
    let table = own.get("table", |item| {
        let titles = || tables.iter().map(|table| table.title.as_str());
        let title = known(&item, "table", item.text()?, titles())?;
        Ok(titles().position(|known| known == title).unwrap_or_default())
    });
    let table = table.unwrap_or_default();
    let column = own
        .need("column", |item| place(&item, tables.get(table).map_or(&[], |table| table.columns.as_slice())));
    if tables.get(table).is_some_and(|table| table.across.is_some()) {
        own.tell(Fault::new(
            at,
            "a bound is of a table that has its columns from the campaign, not `across` a text",
        ));
    }
    let row = own.get("row", text);
    let (at_least, at_most) = (own.get("at_least", number), own.get("at_most", number));
    own.finish()?;
    if at_least.is_none() && at_most.is_none() {
        return Err(Fault::new(at, "a bound has `at_least` or `at_most`"));
    }
    Ok(Bound { text: words?, place: (table, column?), row, at_least, at_most })
}
