//! The plan as a document: what runs, what is measured, what is judged and shown.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Item, Table};
use toml::Value;
use toml::de::DeValue;

use super::figures;
use super::judged::{self, Judged};
use super::names::{self, numbers, text, unknown};
use super::published::Published;
use super::runs::{Changes, Figure, Run, Runs, Series, Written};
use super::shown::{self, Shown};
use super::term::{Known, Term};
use crate::experiment::{Experiment, Jobs};
use crate::paper::Paper;
use crate::scheme::Scheme;

/// A plan has no more runs of a seed.
const MOST_RUNS: usize = 10_000;
/// What is read one after the other.
const STEPS: [&str; 8] = ["scheme", "run", "figure", "series", "value", "relation", "plot", "table"];

/// A plan that was read.
pub(super) struct Document {
    pub(super) runs: Written,
    pub(super) experiment: Described,
}

/// What an experiment is, its runs apart.
pub(super) struct Described {
    title: String,
    place: String,
    claim: String,
    assumed: Vec<String>,
    random: bool,
    relations: Vec<Judged>,
    shown: Shown,
}

impl Described {
    pub(super) fn into_experiment(self, id: String, paper: Paper, runs: Runs) -> Experiment {
        let (plots, tables) = self.shown.of(runs.cases());
        Experiment {
            id,
            title: self.title,
            paper,
            place: self.place,
            claim: self.claim,
            assumed: self.assumed,
            random: self.random,
            jobs: Jobs::reading(move |seed| runs.jobs(seed)),
            relations: self.relations.into_iter().map(Judged::into_relation).collect(),
            plots,
            tables,
        }
    }
}

/// Reads a plan.
pub(super) fn read(mut table: Table<'_>, published: &Published) -> Result<Document, Fault> {
    let title = table.need("title", text);
    let place = table.need("place", text);
    let claim = table.need("claim", text);
    let assumed = table.get("assumed", |item| item.each(text)).unwrap_or_default();
    let random = table.get("random", Item::flag).unwrap_or(true);
    let scenario = table.need("scenario", |item| Ok((text(item)?, item.span)));
    let steps = read_steps(&mut table, published);
    // Read or not, they are keys.
    for key in STEPS {
        table.item(key);
    }
    table.finish()?;
    let (runs, figures, series, relations, shown) = steps?;
    let (scenario, scenario_at) = scenario?;
    Ok(Document {
        runs: Written { scenario, scenario_at, runs, figures, series },
        experiment: Described {
            title: title?,
            place: place?,
            claim: claim?,
            assumed,
            random,
            relations,
            shown,
        },
    })
}

type Steps = (Vec<Run>, Vec<Figure>, Vec<Series>, Vec<Judged>, Shown);

/// Reads what builds on what was read before; a step with mistakes is the last, as those after it would only
/// repeat them.
fn read_steps(table: &mut Table<'_>, published: &Published) -> Result<Steps, Fault> {
    let before = table.faults_so_far();
    let is_right = |table: &Table<'_>| match table.faults_so_far() == before {
        true => Ok(()),
        false => Err(Fault::TOLD),
    };
    let schemes = read_schemes(table);
    is_right(table)?;
    let runs = read_runs(table, &schemes);
    is_right(table)?;
    let mut known = Known { settings: settings(&runs), ..Known::default() };
    let figures = figures::read(table, &mut known);
    let series = figures::read_series(table, &mut known);
    is_right(table)?;
    for mut own in table.tables("value") {
        let name = own.need("name", text);
        let term = Term::read(&mut own, &known);
        let read = own.finish().and_then(|()| Ok((name?, term?)));
        if let Some((name, term)) = table.kept(read) {
            known.values.insert(name, Arc::new(term));
        }
    }
    is_right(table)?;
    let relations = judged::read(table, &known, published, &runs);
    let shown = shown::read(table, &known, published, &runs);
    is_right(table)?;
    Ok((runs, figures, series, relations, shown))
}

/// The settings that runs have, each once.
fn settings(runs: &[Run]) -> Vec<String> {
    let mut settings: Vec<String> = runs.iter().map(|run| run.setting.clone()).collect();
    settings.sort();
    settings.dedup();
    settings
}

/// The schemes, and what each changes in the scenario.
fn read_schemes(table: &mut Table<'_>) -> Vec<(Scheme, Changes)> {
    let mut schemes: Vec<(Scheme, Changes)> = Vec::new();
    for mut own in table.tables("scheme") {
        let scheme = own.need("name", |item| match names::scheme(item)? {
            scheme if schemes.iter().any(|(known, _)| *known == scheme) => {
                Err(item.fault(format_args!("'{}' is there twice", scheme.name)))
            }
            scheme => Ok(scheme),
        });
        let changes = own.get("set", changes).unwrap_or_default();
        let read = own.finish().and_then(|()| Ok((scheme?, changes)));
        schemes.extend(table.kept(read));
    }
    schemes
}

/// Every run of `[[run]]`: all of its schemes at all of its points.
fn read_runs(table: &mut Table<'_>, schemes: &[(Scheme, Changes)]) -> Vec<Run> {
    let mut runs = Vec::new();
    for own in table.tables("run") {
        let before = runs.len();
        let at = own.span();
        if let Some(read) = table.kept(read_run(own, schemes)) {
            runs.extend(read);
        }
        if runs.len() > MOST_RUNS {
            table.tell(Fault::new(at, format_args!("more than {MOST_RUNS} runs")));
            runs.truncate(before);
        }
    }
    runs
}

fn read_run(mut own: Table<'_>, schemes: &[(Scheme, Changes)]) -> Result<Vec<Run>, Fault> {
    let at = own.span();
    let setting = own.get("setting", text).unwrap_or_default();
    let chosen = own.get("schemes", |item| {
        item.each(|item| {
            let name = item.text()?;
            let known = schemes.iter().find(|(scheme, _)| scheme.name == name);
            let names: Vec<&str> = schemes.iter().map(|(scheme, _)| scheme.name).collect();
            known.cloned().ok_or_else(|| unknown(&item, "[[scheme]]", name, &names))
        })
    });
    let points = own.get("points", numbers).unwrap_or_else(|| vec![0.0]);
    let keys = own.get("keys", |item| item.each(text)).unwrap_or_default();
    let unit = own.get("unit", text);
    let changed = own.get("set", changes).unwrap_or_default();
    own.finish()?;
    let chosen = chosen.unwrap_or_else(|| schemes.to_vec());
    if chosen.is_empty() {
        return Err(Fault::new(at, "nothing runs: a plan needs at least one [[scheme]]"));
    }
    let mut runs = Vec::new();
    for (scheme, of_scheme) in chosen {
        for point in &points {
            let value = match &unit {
                Some(unit) => Value::String(format!("{point}{unit}")),
                None => plain(*point),
            };
            let of_point = keys.iter().map(|key| (key.clone(), value.clone()));
            let changes = of_scheme.iter().chain(&changed).cloned().chain(of_point).collect();
            runs.push(Run { scheme, setting: setting.clone(), point: *point, changes, at });
        }
    }
    Ok(runs)
}

/// A whole number where it is one: counts are whole in a scenario.
fn plain(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 && number != 0.0 {
        Value::Integer(number as i64)
    } else {
        Value::Float(number)
    }
}

fn changes(item: Item<'_>) -> Result<Changes, Fault> {
    let table = item.table("`set`")?;
    let changes = table.entries().map(|entry| Ok((entry.key.to_owned(), value(&entry, entry.value)?)));
    changes.collect()
}

/// Whatever can stand in a scenario.
fn value(item: &Item<'_>, written: &DeValue<'_>) -> Result<Value, Fault> {
    let wrong = || item.fault(format_args!("`{}` cannot be a date", item.key));
    Ok(match written {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Integer)
            .map_err(|_| item.fault("this number is too large"))?,
        DeValue::Float(number) => number.as_str().parse().map(Value::Float).map_err(|_| wrong())?,
        DeValue::Array(values) => {
            let values = values.iter().map(|inner| value(item, inner.get_ref()));
            Value::Array(values.collect::<Result<_, _>>()?)
        }
        DeValue::Table(entries) => {
            let entries = entries.iter();
            let inner = entries.map(|(key, inner)| {
                Ok::<_, Fault>((key.get_ref().to_string(), value(item, inner.get_ref())?))
            });
            Value::Table(inner.collect::<Result<_, _>>()?)
        }
        DeValue::Datetime(_) => return Err(wrong()),
    })
}
