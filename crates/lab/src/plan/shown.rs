//! The plots and tables of a plan.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Item, Table as Document};
use exmex::Express;

use super::judged::Planned;
use super::names::{self, id_and_title, number, numbers, text};
use super::published::Published;
use super::runs::Run;
use super::term::{self, Known, Place, Term};
use crate::experiment::{Axis, Cell, Curve, Plot, Points, Row, Scale, Table};
use crate::scheme::{self, Scheme};

/// What a plan shows.
pub(super) struct Shown {
    plots: Vec<Plot>,
    tables: Vec<Rows>,
}

/// A table, before its rows are known.
struct Rows {
    id: String,
    title: String,
    label: String,
    /// Whose runs have a row; none: those of all.
    schemes: Option<Vec<Scheme>>,
    columns: Vec<Column>,
    published: Published,
}

struct Column {
    head: String,
    term: Arc<Term>,
    published: Option<String>,
}

impl Shown {
    /// Plots, and tables with a row for every run that has its numbers.
    pub(super) fn of<'a>(self, runs: impl Iterator<Item = &'a Run>) -> (Vec<Plot>, Vec<Table>) {
        let runs: Vec<&Run> = runs.collect();
        (self.plots, self.tables.into_iter().map(|table| table.filled(&runs)).collect())
    }
}

impl Rows {
    fn filled(self, runs: &[&Run]) -> Table {
        let label = |run: &Run| {
            let label = self.label.replace("{scheme}", run.scheme.name).replace("{setting}", &run.setting);
            label.replace("{point}", &run.point.to_string())
        };
        let cell = |run: &Run, column: &Column| {
            let (term, scheme, point) = (Arc::clone(&column.term), run.scheme, run.point);
            let setting = run.setting.clone();
            Cell {
                published: column.published.as_ref().and_then(|name| self.published.at(name, run.point)),
                value: Box::new(move |seed| {
                    term.of(seed.setting(&setting), Place::new(Some(scheme), point)).ok()
                }),
            }
        };
        let row = |run: &&Run| Row {
            label: label(run),
            cells: self.columns.iter().map(|column| cell(run, column)).collect(),
        };
        let rows = runs.iter().filter(|run| has_row(run, self.schemes.as_deref())).map(row).collect();
        let heads = self.columns.iter().map(|column| column.head.clone());
        Table {
            columns: std::iter::once("run".to_owned()).chain(heads).collect(),
            rows,
            id: self.id,
            title: self.title,
        }
    }
}

/// Reads every `[[plot]]` and `[[table]]`.
pub(super) fn read(document: &mut Document<'_>, known: &Known, published: &Published, runs: &[Run]) -> Shown {
    let mut shown = Shown { plots: Vec::new(), tables: Vec::new() };
    for own in document.tables("plot") {
        shown.plots.extend(document.kept(plot(own, known, published, runs)));
    }
    for own in document.tables("table") {
        shown.tables.extend(document.kept(table(own, known, published, runs)));
    }
    shown
}

fn table(mut own: Document<'_>, known: &Known, published: &Published, runs: &[Run]) -> Result<Rows, Fault> {
    let (id, title) = id_and_title(&mut own);
    let label = own.get("label", text).unwrap_or_else(|| "{scheme}".into());
    let schemes = own.get("schemes", |item| item.each(names::scheme));
    let mut columns = Vec::new();
    for mut inner in own.tables("column") {
        let at = inner.span();
        let head = inner.need("head", text);
        let name = inner.get("published", |item| published_name(item, published));
        let term = Term::read(&mut inner, known);
        let read = inner.finish().and_then(|()| {
            let term = Arc::new(term?);
            for run in runs.iter().filter(|run| has_row(run, schemes.as_deref())) {
                let place = Place::new(Some(run.scheme), run.point);
                term.of(Planned { runs, setting: &run.setting }, place)
                    .map_err(|missing| Fault::new(at, missing))?;
            }
            Ok(Column { head: head?, term, published: name })
        });
        columns.extend(own.kept(read));
    }
    own.finish()?;
    Ok(Rows { id: id?, title: title?, label, schemes, columns, published: published.clone() })
}

fn has_row(run: &Run, schemes: Option<&[Scheme]>) -> bool {
    schemes.is_none_or(|schemes| schemes.contains(&run.scheme))
}

fn published_name(item: Item<'_>, published: &Published) -> Result<String, Fault> {
    names::known(&item, "row of published.csv", item.text()?, published.names()).map(ToOwned::to_owned)
}

fn plot(mut own: Document<'_>, known: &Known, published: &Published, runs: &[Run]) -> Result<Plot, Fault> {
    let (id, title) = id_and_title(&mut own);
    let (x, y) = (own.need("x", axis), own.need("y", axis));
    let figure = own.get("figure", |item| figure(item, known));
    let mut curves: Vec<Curve> = figure.iter().flat_map(|name| of_every_scheme(name, runs)).collect();
    for inner in own.tables("curve") {
        curves.extend(own.kept(curve(inner, known, published)));
    }
    own.finish()?;
    Ok(Plot { id: id?, title: title?, x: x?, y: y?, curves })
}

fn axis(item: Item<'_>) -> Result<Axis, Fault> {
    let mut table = item.table("an axis")?;
    let label = table.need("label", text);
    let unit = table.get("unit", text).unwrap_or_default();
    let is_logarithmic = table.get("logarithmic", Item::flag).unwrap_or(false);
    let from_zero = table.get("from_zero", Item::flag).unwrap_or(!is_logarithmic);
    table.finish()?;
    let axis = Axis::new(&label?, &unit);
    let scale = if is_logarithmic { Scale::Logarithmic } else { axis.scale };
    let shows = axis.shows.filter(|_| from_zero);
    Ok(Axis { scale, shows, ..axis })
}

fn figure(item: Item<'_>, known: &Known) -> Result<String, Fault> {
    names::known(&item, "figure", item.text()?, known.figures.iter().map(String::as_str))
        .map(ToOwned::to_owned)
}

/// A figure against the points, a curve for every scheme in the first setting.
fn of_every_scheme(name: &str, runs: &[Run]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for run in runs.iter().filter(|run| run.setting.is_empty()) {
        if curves.iter().all(|curve| curve.look != run.scheme) {
            let points = Points::Figure { scheme: run.scheme, setting: String::new(), name: name.to_owned() };
            curves.push(Curve { label: run.scheme.name.into(), look: run.scheme, points });
        }
    }
    curves
}

fn curve(mut own: Document<'_>, known: &Known, published: &Published) -> Result<Curve, Fault> {
    let at = own.span();
    let label = own.need("label", text);
    let scheme = own.get("scheme", names::scheme);
    let look = own.get("look", names::scheme);
    let setting = own.get("setting", |item| {
        let settings = known.settings.iter().map(String::as_str);
        names::known(&item, "setting", item.text()?, settings).map(ToOwned::to_owned)
    });
    let setting = setting.unwrap_or_default();
    let of_paper = own.get("published", |item| published_name(item, published));
    let formula = own.get("formula", |item| match term::parse(item, item.text()?)? {
        formula if formula.var_names().iter().all(|name| name == "x") => Ok(formula),
        _ => Err(item.fault("a curve's formula is one of `x`")),
    });
    let places = own.get("points", numbers);
    let figure = own.get("figure", |item| figure(item, known));
    let series = own.get("series", |item| {
        let series = known.series.iter().map(String::as_str);
        names::known(&item, "series", item.text()?, series).map(ToOwned::to_owned)
    });
    let point = own.get("point", number).unwrap_or(0.0);
    own.finish()?;
    let of_scheme = || -> Result<Scheme, Fault> {
        scheme.ok_or_else(|| Fault::new(at, "of which `scheme` is this curve?"))
    };
    let points = match (of_paper, formula, figure, series) {
        (Some(name), None, None, None) => Points::Published(published.points(&name)),
        (None, Some(formula), None, None) => {
            let places = places.ok_or_else(|| Fault::new(at, "a `formula` needs `points`"))?;
            let values = places.iter().map(|x| {
                let variables: Vec<f64> = formula.var_names().iter().map(|_| *x).collect();
                Ok((*x, formula.eval(&variables).map_err(|error| Fault::new(at, error))?))
            });
            Points::Formula(values.collect::<Result<_, Fault>>()?)
        }
        (None, None, Some(name), None) => Points::Figure { scheme: of_scheme()?, setting, name },
        (None, None, None, Some(name)) => Points::Series { scheme: of_scheme()?, setting, point, name },
        _ => return Err(Fault::new(at, "a curve is one of: figure, series, published, formula")),
    };
    Ok(Curve { label: label?, look: look.or(scheme).unwrap_or(scheme::FIRST), points })
}
