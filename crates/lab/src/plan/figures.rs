//! The figures and series of a plan.

use anabranch_sim::scenario::{Fault, Item, Table};

use super::measure::{Dimension, Quantity};
use super::names::{number, text, unknown};
use super::runs::{Figure, How, Measurement, Series};
use super::term::{self, Known};

/// Reads every `[[figure]]`.
pub(super) fn read(table: &mut Table<'_>, known: &mut Known) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    let mut wrong = Vec::new();
    for mut own in table.tables("figure") {
        let name = own.need("name", text);
        let told = name.clone();
        let how = if own.has("value") {
            own.need("value", |item| computed(item, &figures, &wrong)).map(|how| (how, own.get("unit", text)))
        } else {
            measured(&mut own).map(|(measurement, unit)| (How::Measured(measurement), Some(unit)))
        };
        let read = own.finish().and_then(|()| {
            let (how, unit) = how?;
            Ok(Figure { name: name?, unit: unit.unwrap_or_default(), how })
        });
        match table.kept(read) {
            Some(figure) => {
                known.figures.push(figure.name.clone());
                figures.push(figure);
            }
            None => wrong.extend(told),
        }
    }
    figures
}

/// A formula of figures before it; those with mistakes are known, and told already.
fn computed(item: Item<'_>, figures: &[Figure], wrong: &[String]) -> Result<How, Fault> {
    let formula = term::parse(item, item.text()?)?;
    let variable = |name: &String| {
        let place = figures.iter().position(|figure| figure.name == *name);
        if place.is_some() || name == "point" {
            return Ok(place);
        }
        if wrong.contains(name) {
            return Err(Fault::TOLD);
        }
        let names: Vec<&str> = figures.iter().map(|figure| &*figure.name).chain(["point"]).collect();
        Err(unknown(&item, "figure before this one", name, &names))
    };
    let variables = exmex::Express::var_names(&formula).iter().map(variable).collect::<Result<_, _>>()?;
    Ok(How::Computed { formula: Box::new(formula), variables })
}

/// Reads every `[[series]]`.
pub(super) fn read_series(table: &mut Table<'_>, known: &mut Known) -> Vec<Series> {
    let mut series = Vec::new();
    for mut own in table.tables("series") {
        let name = own.need("name", text);
        let bin = own.need("bin", |item| {
            item.number(|bin| bin >= 1e-3 && bin.is_finite(), "of seconds, at least 0.001")
        });
        let at = own.span();
        let measurement = measured(&mut own);
        let read = own.finish().and_then(|()| {
            let (measurement, _) = measurement?;
            if measurement.quantity.is_of_the_whole_run() {
                return Err(Fault::new(at, "this is known at the end of a run only: it has no course"));
            }
            Ok(Series { name: name?, measurement, bin: bin? })
        });
        if let Some(one) = table.kept(read) {
            known.series.push(one.name.clone());
            series.push(one);
        }
    }
    series
}

/// What is measured, and its unit.
fn measured(own: &mut Table<'_>) -> Result<(Measurement, String), Fault> {
    let at = own.span();
    let quantity = own.need("measure", |item| item.one_of(&Quantity::NAMES));
    let list = |item: Item<'_>| item.each(text);
    let flows = own.get("flows", list).unwrap_or_default();
    let links = own.get("links", list).unwrap_or_default();
    let unit = own.item("unit");
    let window = (own.get("from", number), own.get("to", number));
    let quantity = quantity?;
    let of_links = quantity.is_of_links();
    if (of_links && links.is_empty()) || (!of_links && flows.is_empty()) {
        let what = if of_links { "links" } else { "flows" };
        return Err(Fault::new(at, format_args!("of which `{what}`? Write a list of their names")));
    }
    let window = match window {
        (None, None) => None,
        (from, Some(to)) if to > from.unwrap_or(0.0) => Some((from.unwrap_or(0.0), to)),
        _ => return Err(Fault::new(at, "`from` and `to` are seconds, the first before the other")),
    };
    let (unit, factor) = read_unit(unit, quantity.dimension())?;
    let measurement = Measurement { quantity, unit: factor, flows, links, window, at };
    Ok((measurement, unit))
}

fn read_unit(item: Option<Item<'_>>, dimension: Dimension) -> Result<(String, f64), Fault> {
    let units = dimension.units();
    match item {
        Some(item) => {
            let factor = item.one_of(units)?;
            Ok((item.text()?.to_owned(), factor))
        }
        None => {
            Ok(units.first().map_or_else(Default::default, |(name, factor)| ((*name).to_owned(), *factor)))
        }
    }
}
