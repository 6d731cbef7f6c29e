//! The schemes and runs of a plan, and what each changes in the scenario.

use anabranch_sim::scenario::{Fault, Item, Table};
use exmex::{Express, FlatEx};
use toml::Value;
use toml::de::DeValue;

use super::names::{self, numbers, text, unknown};
use super::runs::{Changes, Named, Run};
use super::term;
use crate::scheme::Scheme;

/// A plan has no more runs of a seed.
const MOST_RUNS: usize = 10_000;

/// A scheme of a plan.
#[derive(Clone)]
pub(super) struct PlannedScheme {
    pub(super) scheme: Scheme,
    /// Its own scenario, where flows of another kind make it; none: that of the plan.
    pub(super) scenario: Option<Named>,
    /// What it changes there.
    pub(super) changes: Changes,
}

/// The schemes.
pub(super) fn read_schemes(table: &mut Table<'_>) -> Vec<PlannedScheme> {
    let mut schemes: Vec<PlannedScheme> = Vec::new();
    for mut own in table.tables("scheme") {
        let scheme = own.need("name", |item| match names::scheme(item)? {
            scheme if schemes.iter().any(|known| known.scheme == scheme) => {
                Err(item.fault(format_args!("'{}' is there twice", scheme.name)))
            }
            scheme => Ok(scheme),
        });
        let scenario = own.get("scenario", names::file);
        let changes = own.get("set", changes).unwrap_or_default();
        let read = own.finish().and_then(|()| Ok(PlannedScheme { scheme: scheme?, scenario, changes }));
        schemes.extend(table.kept(read));
    }
    schemes
}

/// Every run of `[[run]]`: all of its schemes at all of its points.
pub(super) fn read_runs(table: &mut Table<'_>, schemes: &[PlannedScheme]) -> Vec<Run> {
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

fn read_run(mut own: Table<'_>, schemes: &[PlannedScheme]) -> Result<Vec<Run>, Fault> {
    let at = own.span();
    let setting = own.get("setting", text).unwrap_or_default();
    let scenario = own.get("scenario", names::file);
    let chosen = own.get("schemes", |item| {
        item.each(|item| {
            let name = item.text()?;
            let known = schemes.iter().find(|known| known.scheme.name == name);
            let names: Vec<&str> = schemes.iter().map(|known| known.scheme.name).collect();
            known.cloned().ok_or_else(|| unknown(&item, "[[scheme]]", name, &names))
        })
    });
    let points = own.get("points", numbers).unwrap_or_else(|| vec![0.0]);
    let keys = own.get("keys", |item| item.each(text)).unwrap_or_default();
    let unit = own.get("unit", text);
    let computed = own.get("computed", |item| computed(item, &["point"])).unwrap_or_default();
    let changed = own.get("set", changes).unwrap_or_default();
    own.finish()?;
    let chosen = chosen.unwrap_or_else(|| schemes.to_vec());
    if chosen.is_empty() {
        return Err(Fault::new(at, "nothing runs: a plan needs at least one [[scheme]]"));
    }
    let mut runs = Vec::new();
    for of_scheme in chosen {
        for point in &points {
            let mut changes: Changes = of_scheme.changes.iter().chain(&changed).cloned().collect();
            let value = with_unit(*point, unit.as_deref());
            changes.extend(keys.iter().map(|key| (key.clone(), value.clone())));
            let changes = with_changes(changes, &computed, |_| *point)
                .map_err(|what| Fault::new(at, format_args!("{what} at {point}")))?;
            let scenario = scenario.as_ref().or(of_scheme.scenario.as_ref()).cloned();
            let (scheme, setting) = (of_scheme.scheme, setting.clone());
            runs.push(Run { scenario, scheme, setting, point: *point, changes, at });
        }
    }
    Ok(runs)
}

/// A key whose value is computed from the point, or from the axes of a grid.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    key: String,
    formula: FlatEx<f64>,
    /// What stands before the number.
    before: Option<String>,
    unit: Option<String>,
    /// Whether it is a list with this alone.
    is_list: bool,
}

impl Computed {
    /// The value where names have these numbers.
    fn of(&self, number: impl Fn(&str) -> f64) -> Result<Value, String> {
        let variables: Vec<f64> = self.formula.var_names().iter().map(|name| number(name)).collect();
        match self.formula.eval(&variables) {
            Ok(number) if number.is_finite() => {
                let value = match &self.before {
                    None => with_unit(number, self.unit.as_deref()),
                    Some(before) => {
                        let unit = self.unit.as_deref().unwrap_or_default();
                        Value::String(format!("{before}{number}{unit}"))
                    }
                };
                Ok(if self.is_list { Value::Array(vec![value]) } else { value })
            }
            Ok(number) => Err(format!("`{}` is {number}", self.key)),
            Err(error) => Err(format!("`{}`: {error}", self.key)),
        }
    }
}

/// What is changed, and what is computed after it.
///
/// # Errors
/// A value is no number; in words.
pub(super) fn with_changes(
    mut changes: Changes,
    computed: &[Computed],
    number: impl Fn(&str) -> f64,
) -> Result<Changes, String> {
    for one in computed {
        changes.push((one.key.clone(), one.of(&number)?));
    }
    Ok(changes)
}

/// Keys of the scenario, each with a formula of these names, or a table of the formula, its unit, what stands
/// before it, and whether it is a list.
pub(super) fn computed(item: Item<'_>, names: &[&str]) -> Result<Vec<Computed>, Fault> {
    let formula = |item: Item<'_>| match term::parse(item, item.text()?)? {
        formula if formula.var_names().iter().all(|name| names.contains(&&**name)) => Ok(formula),
        _ => Err(item.fault(format_args!("this is a formula of `{}` alone", names.join("`, `")))),
    };
    let one = |entry: Item<'_>| {
        let key = entry.key.to_owned();
        if entry.text().is_ok() {
            return Ok(Computed { key, formula: formula(entry)?, before: None, unit: None, is_list: false });
        }
        let mut table = entry.table("a computed value")?;
        let value = table.need("value", formula);
        let (before, unit) = (table.get("before", text), table.get("unit", text));
        let is_list = table.get("list", Item::flag).unwrap_or(false);
        table.finish()?;
        Ok(Computed { key, formula: value?, before, unit, is_list })
    };
    let table = item.table("`computed`")?;
    table.entries().map(one).collect()
}

fn with_unit(number: f64, unit: Option<&str>) -> Value {
    unit.map_or_else(|| plain(number), |unit| Value::String(format!("{number}{unit}")))
}

/// A whole number where it is one: counts are whole in a scenario.
pub(super) fn plain(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 && number != 0.0 {
        Value::Integer(number as i64)
    } else {
        Value::Float(number)
    }
}

pub(super) fn changes(item: Item<'_>) -> Result<Changes, Fault> {
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
