//! The figures and series of a plan.

use anabranch_sim::scenario::{self, Fault, Item, Span, Table};
use anabranch_units::Duration;

use super::clip::Clip;
use super::measure::{Details, Window};
use super::names::{self, number, numbers, text, unknown};
use super::numbers::{Along, Course, Figure, Formula, How, Measurement, Series, Variable};
use super::quantity::{Dimension, Quantity};
use super::take::{Bins, Summary, Take};
use super::term::{self, Known};
use super::viewer::Viewer;

/// What names stand for, in words.
const FIGURE: &str = "figure";
const SERIES: &str = "series";
/// No flow has more connections.
const MOST_CONNECTIONS: u32 = 10_000;
/// Seconds: the least that a run's sampling can be.
const SHORTEST_BIN: f64 = 1e-3;

/// Reads every `[[figure]]`.
pub(super) fn read(table: &mut Table<'_>, known: &mut Known) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    let mut wrong = Vec::new();
    for mut own in table.tables("figure") {
        let name = own.need("name", text);
        let told = name.clone();
        if own.get("real", Item::flag).unwrap_or(false) {
            known.real_figures.extend(table.kept(own.finish().and(name)));
            continue;
        }
        let how = if own.has("value") {
            own.need("value", |item| computed(item, FIGURE, &known.figures, &wrong))
                .map(|formula| (How::Computed(formula), own.get("unit", text)))
        } else if own.has("series") {
            of_series(&mut own, known).map(|how| (how, own.get("unit", text)))
        } else {
            of_a_run(&mut own).map(|(measurement, unit)| (How::Measured(Box::new(measurement)), Some(unit)))
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

/// A formula of what has these names before it; what has mistakes is known, and told already.
fn computed(item: Item<'_>, what: &str, names: &[String], wrong: &[String]) -> Result<Formula, Fault> {
    let formula = term::parse(item, item.text()?)?;
    let is_series = what == SERIES;
    let variable = |name: &String| {
        if let Some(place) = names.iter().position(|known| known == name) {
            return Ok(Variable::Before(place));
        }
        match &**name {
            "point" => Ok(Variable::Point),
            "x" if is_series => Ok(Variable::X),
            _ if wrong.contains(name) => Err(Fault::TOLD),
            _ => {
                let names: Vec<&str> = names.iter().map(String::as_str).chain(["point"]).collect();
                Err(unknown(&item, &format!("{what} before this one"), name, &names))
            }
        }
    };
    let variables = exmex::Express::var_names(&formula).iter().map(variable).collect::<Result<_, _>>()?;
    Ok(Formula { formula: Box::new(formula), variables })
}

/// What becomes of the values of a series.
fn of_series(own: &mut Table<'_>, known: &Known) -> Result<How, Fault> {
    let place = own.need("series", |item| {
        let name = names::known(&item, SERIES, item.text()?, known.series.iter().map(String::as_str))?;
        Ok(known.series.iter().position(|known| known == name).unwrap_or_default())
    });
    let take = own.need("take", |item| item.one_of(&Take::NAMES));
    Ok(How::OfSeries(place?, take?))
}

/// Reads every `[[series]]`.
pub(super) fn read_series(table: &mut Table<'_>, known: &mut Known) -> Vec<Series> {
    let mut series = Vec::new();
    let mut wrong = Vec::new();
    for mut own in table.tables("series") {
        let name = own.need("name", text);
        let how = if own.has("value") {
            own.need("value", |item| computed(item, SERIES, &known.series, &wrong)).map(Course::Computed)
        } else {
            course(&mut own)
        };
        let told = name.clone();
        let read = own.finish().and_then(|()| Ok(Series { name: name?, how: how? }));
        match table.kept(read) {
            Some(one) => {
                known.series.push(one.name.clone());
                series.push(one);
            }
            None => wrong.extend(told),
        }
    }
    series
}

fn course(own: &mut Table<'_>) -> Result<Course, Fault> {
    let at = own.span();
    let along = along(own);
    let measurement = measured(own, |of| match along {
        Ok(Along::Scales(_, Take::Variation)) => Dimension::Pure,
        _ => of,
    });
    let (along, (measurement, _)) = (along?, measurement?);
    if measurement.quantity.is_of_the_whole_run() {
        return Err(Fault::new(at, "this is known at the end of a run only: it has no course"));
    }
    if matches!(measurement.quantity, Quantity::LossBurst | Quantity::Frozen | Quantity::Unrepaired) {
        return Err(Fault::new(at, "this is of packets in a row: it has no course"));
    }
    Ok(Course::Measured(Box::new(measurement), along))
}

/// What a series is along: time, or the length of bins.
fn along(own: &mut Table<'_>) -> Result<Along, Fault> {
    if !own.has("scales") {
        return own.need("bin", seconds).map(Along::Time);
    }
    let scales = own.need("scales", |item| match numbers(item)? {
        scales if scales.iter().all(|scale| *scale >= SHORTEST_BIN) => Ok(scales),
        _ => Err(item.fault(format_args!("`scales` are seconds, at least {SHORTEST_BIN}"))),
    });
    let take = own.need("take", |item| item.one_of(&Take::NAMES));
    Ok(Along::Scales(scales?, take?))
}

fn seconds(item: Item<'_>) -> Result<f64, Fault> {
    item.number(|bin| bin >= SHORTEST_BIN && bin.is_finite(), "of seconds, at least 0.001")
}

/// What is measured of a run: at once, of each flow, or in bins.
fn of_a_run(own: &mut Table<'_>) -> Result<(Measurement, String), Fault> {
    let at = own.span();
    let take = |item: Item<'_>| item.one_of(&Take::NAMES);
    let each = own.get("each", take);
    let bins = own.get("bin", seconds).map(|bin| {
        let step = own.get("step", seconds).unwrap_or(bin);
        Bins { seconds: bin, step }
    });
    // The bins', or else that of bursts.
    let of_bursts = if bins.is_none() { own.get("take", take) } else { None };
    let summary = match bins {
        Some(_) if own.has("until") => own.need("until", Summary::until).map(Some),
        Some(_) => own.need("take", take).map(|take| Some(Summary::Take(take))),
        None => Ok(None),
    };
    let dimension = |of: Dimension| match summary {
        Ok(Some(Summary::Take(Take::Variation))) => Dimension::Pure,
        Ok(Some(Summary::UntilAtLeast(_) | Summary::UntilAtMost(_))) => Dimension::Time,
        _ if each == Some(Take::Variation) => Dimension::Pure,
        _ => of,
    };
    let measured = measured(own, dimension);
    let bins = bins.zip(summary?);
    let (measurement, unit) = measured?;
    let quantity = measurement.quantity;
    if bins.is_some() && quantity.is_of_the_whole_run() {
        return Err(Fault::new(at, "this is known at the end of a run only: it has no bins"));
    }
    if bins.is_some() && quantity.is_of_packets() {
        return Err(Fault::new(at, "this is of packets in a row: it has no bins"));
    }
    if quantity == Quantity::ClipBuffer {
        return Err(Fault::new(at, "this is a course: write it as a [[series]]"));
    }
    if (bins.is_none() && quantity == Quantity::LossBurst) != of_bursts.is_some() {
        return Err(Fault::new(at, "`take` is what becomes of bins, of a series or of bursts of losses"));
    }
    let details = Details { of_bursts, ..measurement.details };
    Ok((Measurement { each, bins, details, ..measurement }, unit))
}

/// What is measured, and its unit.
fn measured(
    own: &mut Table<'_>,
    dimension: impl Fn(Dimension) -> Dimension,
) -> Result<(Measurement, String), Fault> {
    let at = own.span();
    let quantity = own.need("measure", |item| item.one_of(&Quantity::NAMES));
    let list = |item: Item<'_>| item.each(text);
    let flows = own.get("flows", list).unwrap_or_default();
    let links = own.get("links", list).unwrap_or_default();
    let others = own.get("others", list).unwrap_or_default();
    let unit = own.item("unit");
    let window = window(own, at);
    let player = own.get("player", scenario::playback);
    let waits = own.get("waits", Item::duration);
    let connections = own.get("connections", |item| item.count(0..=MOST_CONNECTIONS));
    let clip = own.get("clip", Clip::read);
    let access_above = own.get("access_above", Item::rate);
    let quantity = quantity?;
    if player.is_some() && !quantity.is_of_a_player() {
        return Err(Fault::new(at, "a `player` is for what a viewer sees: start_up, stalls, stalled, late"));
    }
    if waits.is_some() && player.is_none() {
        return Err(Fault::new(at, "`waits` is for a `player`"));
    }
    let player = player.map(|parameters| Viewer { parameters, waits: waits.unwrap_or(Duration::ZERO) });
    if connections.is_some() && !(quantity.is_by_connections() && links.is_empty()) {
        let told = "`connections` is for sent, retransmitted, time_share, loss_burst, and the loss of flows";
        return Err(Fault::new(at, told));
    }
    if quantity == Quantity::TimeShare && connections.is_none() {
        return Err(Fault::new(at, "the part of the time with how many `connections`?"));
    }
    if quantity.is_of_a_clip() != clip.is_some() {
        return Err(Fault::new(at, "a `clip` is for what becomes of it: frozen, unrepaired, clip_buffer"));
    }
    let missing = match (quantity.is_of_links(), quantity == Quantity::GoodputRatio) {
        (true, _) if links.is_empty() => Some("links"),
        (false, _) if flows.is_empty() => Some("flows"),
        (_, true) if others.is_empty() => Some("others"),
        _ => None,
    };
    if let Some(what) = missing {
        return Err(Fault::new(at, format_args!("of which `{what}`? Write a list of their names")));
    }
    let window = window?;
    let (unit, factor) = read_unit(unit, dimension(quantity.dimension()))?;
    let measurement = Measurement {
        quantity,
        unit: factor,
        flows,
        access_above,
        links,
        others,
        each: None,
        bins: None,
        window,
        details: Details { player, connections, clip, of_bursts: None },
        at,
    };
    Ok((measurement, unit))
}

/// The keys `from` and `to`.
fn window(own: &mut Table<'_>, at: Span) -> Result<Option<Window>, Fault> {
    let from = own.get("from", |item| match item.text() {
        Ok("begun") => Ok(None),
        _ => number(item).map(Some),
    });
    match (from, own.get("to", number)) {
        (None, None) => Ok(None),
        (Some(None), None) => Ok(Some(Window::Begun(None))),
        (Some(None), Some(to)) if to > 0.0 => Ok(Some(Window::Begun(Some(to)))),
        (Some(Some(from)), Some(to)) if to > from => Ok(Some(Window::Between(from, to))),
        (None, Some(to)) if to > 0.0 => Ok(Some(Window::Between(0.0, to))),
        _ => Err(Fault::new(at, "`from` and `to` are seconds, the first before the other")),
    }
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
