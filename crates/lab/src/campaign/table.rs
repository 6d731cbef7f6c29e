//! The tables of a campaign, made from its raw results.

use std::fmt::Write;

use super::document::{Bound, Cell, Column, Document, Shown};
use super::folded::Fold;
use super::raw::Row;
use super::{Campaign, Machine, bars};

/// What stands where there is no number.
const NOTHING: &str = "\u{2013}";

/// Whether a bound is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The bound in words, and the row that it is about.
    pub text: String,
    /// `None`: nothing was measured.
    pub measured: Option<f64>,
    /// Whether it is.
    pub is_held: bool,
}

/// The tables with their bounds and the plot.
#[derive(Debug)]
pub struct Tables {
    filled: Vec<Filled>,
    held: Vec<Held>,
    machine: Machine,
}

/// A table with its rows.
#[derive(Debug)]
struct Filled {
    title: String,
    heading: Vec<String>,
    rows: Vec<FilledRow>,
    plot: Option<usize>,
}

#[derive(Debug)]
struct FilledRow {
    name: String,
    numbers: Vec<Option<f64>>,
    texts: Vec<String>,
}

impl Tables {
    /// Makes them from results of one run.
    pub fn new(campaign: &Campaign, rows: &[Row], machine: Machine) -> Self {
        let Document { tables, bounds, .. } = &campaign.document;
        let filled: Vec<Filled> = tables.iter().map(|shown| Filled::new(shown, rows)).collect();
        let held = bounds.iter().flat_map(|bound| held(bound, &filled)).collect();
        Self { filled, held, machine }
    }

    /// What is to come out, and whether it does.
    pub fn held(&self) -> &[Held] {
        &self.held
    }

    /// As Markdown: tables, bounds, and the machine.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for table in &self.filled {
            if !table.title.is_empty() {
                let _ = write!(text, "**{}**\n\n", table.title);
            }
            let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
            text += &line(&table.heading);
            text += &format!("|{}\n", " --- |".repeat(table.heading.len()));
            for row in &table.rows {
                text += &line(&row.cells());
            }
            text.push('\n');
        }
        for Held { text: words, measured, is_held } in &self.held {
            let measured =
                measured.map_or_else(|| "nothing measured".into(), |measured| format!("{measured:.2}"));
            let verdict = if *is_held { "held" } else { "**missed**" };
            let _ = writeln!(text, "- {words}: {verdict} ({measured})");
        }
        if !self.held.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.machine.line());
        text
    }

    /// As CSV: every table with its heading, an empty line between two.
    pub fn csv(&self) -> String {
        let quoted = |cell: &String| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        let line = |cells: &[String]| cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        let table = |table: &Filled| {
            let rows = table.rows.iter().map(|row| line(&row.cells()));
            line(&table.heading) + &rows.collect::<String>()
        };
        self.filled.iter().map(table).collect::<Vec<_>>().join("\n")
    }

    /// As SVG, where the campaign draws a column.
    pub fn plot(&self) -> Option<String> {
        let table = self.filled.iter().find(|table| table.plot.is_some())?;
        let column = table.plot?;
        let bars = table.rows.iter().filter_map(|row| Some((row.name.as_str(), row.numbers[column]?)));
        Some(bars::svg(&table.title, &table.heading[column + 1], &bars.collect::<Vec<_>>()))
    }
}

impl FilledRow {
    fn cells(&self) -> Vec<String> {
        std::iter::once(self.name.clone()).chain(self.texts.iter().cloned()).collect()
    }
}

impl Filled {
    fn new(shown: &Shown, rows: &[Row]) -> Self {
        let chosen: Vec<&Row> = rows.iter().filter(|row| shown.of.has(row)).collect();
        let across: Vec<(String, Vec<&Row>)> = match &shown.across {
            Some(name) => grouped(std::slice::from_ref(name), &chosen),
            None => Vec::new(),
        };
        let groups = grouped(&shown.row, &chosen);
        let cells = |group: &[&Row]| -> Vec<(Option<f64>, String)> {
            let cell = |column: &Column, group: &[&Row]| {
                (number(&column.cell, group, &groups), in_words(&column.cell, group, &groups))
            };
            if shown.across.is_none() {
                return shown.columns.iter().map(|column| cell(column, group)).collect();
            }
            let Some(column) = shown.columns.first() else { return Vec::new() };
            let both = |other: &[&Row]| -> Vec<&Row> {
                group.iter().copied().filter(|row| other.iter().any(|one| std::ptr::eq(*one, *row))).collect()
            };
            across.iter().map(|(_, other)| cell(column, &both(other))).collect()
        };
        let titles = match &shown.across {
            Some(_) => across.iter().map(|(name, _)| name.clone()).collect(),
            None => shown.columns.iter().map(|column| column.title.clone()).collect::<Vec<_>>(),
        };
        let filled = groups.iter().map(|(name, group)| {
            let (numbers, texts) = cells(group).into_iter().unzip();
            FilledRow { name: name.clone(), numbers, texts }
        });
        Self {
            title: shown.title.clone(),
            heading: [vec![shown.row.join(", ")], titles].concat(),
            rows: filled.collect(),
            plot: shown.plot,
        }
    }
}

/// Results with the same texts of these names, in the order in which they first come.
fn grouped<'a>(names: &[String], rows: &[&'a Row]) -> Vec<(String, Vec<&'a Row>)> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let texts: Option<Vec<String>> = names.iter().map(|name| row.text(name)).collect();
        let Some(name) = texts.map(|texts| texts.join(", ")) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

type Groups<'a> = [(String, Vec<&'a Row>)];

fn number(cell: &Cell, group: &[&Row], groups: &Groups<'_>) -> Option<f64> {
    let Cell::Number { value, fold, beside, .. } = cell else { return None };
    let of = |group: &[&Row]| {
        let values: Vec<f64> = group.iter().filter_map(|row| value.of_row(row)).collect();
        // Of what one result lacks there is no mean.
        if values.len() == group.len() || *fold == Fold::Sum { fold.of(&values) } else { None }
    };
    let own = of(group)?;
    let Some(beside) = beside else { return Some(own) };
    let (_, others) = groups.iter().find(|(name, _)| name == beside)?;
    Some(own / of(others)?).filter(|ratio| ratio.is_finite())
}

fn in_words(cell: &Cell, group: &[&Row], groups: &Groups<'_>) -> String {
    match cell {
        Cell::Text(name) => group.first().and_then(|row| row.text(name)).unwrap_or_else(|| NOTHING.into()),
        Cell::Number { decimals, is_percent, .. } => match number(cell, group, groups) {
            None => NOTHING.into(),
            Some(number) if *is_percent => format!("{:.decimals$} %", 100.0 * number),
            Some(number) => format!("{number:.decimals$}"),
        },
    }
}

/// What a bound comes to, for each row that it is about.
fn held(bound: &Bound, filled: &[Filled]) -> Vec<Held> {
    let (table, column) = bound.place;
    let rows = filled.get(table).map_or(&[][..], |table| &table.rows);
    let mut about: Vec<Held> = rows
        .iter()
        .filter(|row| bound.row.as_ref().is_none_or(|name| *name == row.name))
        .map(|row| {
            let measured = row.numbers.get(column).copied().flatten();
            let is_held = measured.is_some_and(|measured| {
                bound.at_least.is_none_or(|least| measured >= least)
                    && bound.at_most.is_none_or(|most| measured <= most)
            });
            Held { text: format!("{}: {}", row.name, bound.text), measured, is_held }
        })
        .collect();
    if about.is_empty() {
        let who = bound.row.as_deref().unwrap_or("nobody");
        about.push(Held { text: format!("{who}: {}", bound.text), measured: None, is_held: false });
    }
    about
}
