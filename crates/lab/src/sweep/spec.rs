//! The file that says what is varied. Its format is in `docs/lab.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anabranch_sim::model::Model;
use anabranch_sim::scenario::{self, Beside, Error, Fault, Faults, Item, Span, Table, Wrong};
use toml::Value;
use toml::de::DeValue;

use super::path;
use super::points::{self, Design, Values};
use crate::cache::digest;

/// A sweep has no more runs, of all its points and seeds.
const MOST_RUNS: usize = 100_000;
/// No more parameters.
const MOST_PARAMETERS: usize = 64;

/// A scenario and what is varied in it.
#[derive(Debug)]
pub struct Sweep {
    file: String,
    text: String,
    /// Directory of the scenario, for the traces that it names.
    directory: PathBuf,
    scenario: toml::Table,
    scenario_name: String,
    design: Design,
    parameters: Vec<Parameter>,
    values: Vec<Values>,
    points: usize,
    seeds: usize,
    digest: String,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    key: String,
    at: Span,
    values_at: Span,
}

/// What the file says, before its scenario is looked at.
struct Written {
    scenario: String,
    scenario_at: Span,
    design: Design,
    seeds: usize,
    parameters: Vec<Parameter>,
    values: Vec<Values>,
}

impl Sweep {
    /// Reads a sweep and its scenario.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong; the error says where.
    pub fn load(file: &Path) -> Result<Self, Error> {
        let name = file.display().to_string();
        let text = scenario::read_text(file).map_err(|error| Error::Read { file: name.clone(), error })?;
        let Written { scenario, scenario_at, design, seeds, parameters, values } =
            scenario::read_document(&name, &text, "a sweep", read)?;
        let path = file.parent().unwrap_or(Path::new("")).join(&scenario);
        let scenario_text = scenario::read_text(&path).map_err(|error| {
            Fault::new(scenario_at, format_args!("cannot read the scenario '{scenario}': {error}"))
                .locate(&name, &text)
        })?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut read_files = Recorded { beside: Beside(&directory), texts: Vec::new() };
        // It has to be right by itself, so that what is wrong later is the sweep's.
        scenario::parse(&path.display().to_string(), &scenario_text, None, &mut read_files)?;
        let points =
            points::count(design, &values).filter(|points| points.saturating_mul(seeds) <= MOST_RUNS);
        let Some(points) = points else {
            let fault = Fault::new(
                parameters[0].at,
                format_args!("the points and seeds make more than {MOST_RUNS} runs"),
            );
            return Err(fault
                .help("leave out values or seeds, or make a sweep of each part")
                .locate(&name, &text));
        };
        let digest = digest(&format!("{text}\n{scenario_text}\n{:?}", read_files.texts));
        let scenario_name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let scenario = scenario_text.parse().unwrap_or_default();
        Ok(Self {
            file: name,
            text,
            directory,
            scenario,
            scenario_name,
            design,
            parameters,
            values,
            points,
            seeds,
            digest,
        })
    }

    /// How many runs there are: every point with every seed.
    pub fn runs(&self) -> usize {
        self.points * self.seeds
    }

    /// How many points there are.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The parameters' names, in their order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| &*parameter.name)
    }

    /// The scenario's name.
    pub fn scenario(&self) -> &str {
        &self.scenario_name
    }

    /// What tells this sweep from any other.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The point (from 0) and the seed of a run (from 0).
    pub(super) fn of_run(&self, run: usize) -> (usize, u64) {
        (run / self.seeds, (run % self.seeds) as u64 + 1)
    }

    /// The values of a point as they stand in a scenario.
    pub(super) fn values(&self, point: usize) -> Vec<Value> {
        points::point(self.design, &self.values, point)
    }

    /// The model of a run.
    ///
    /// # Errors
    /// With its values the scenario is none.
    pub(super) fn model(&self, run: usize) -> Result<Model, Error> {
        let (point, seed) = self.of_run(run);
        let values = self.values(point);
        let mut document = self.scenario.clone();
        for (parameter, value) in self.parameters.iter().zip(&values) {
            path::set(&mut document, &parameter.key, value.clone())
                .map_err(|what| Fault::new(parameter.at, what).locate(&self.file, &self.text))?;
        }
        let text = document.to_string();
        let model = scenario::parse(&self.scenario_name, &text, Some(seed), &mut Beside(&self.directory));
        model.map_err(|error| self.blame(error, point, &values))
    }

    /// Tells what is wrong with a changed scenario at the parameter that brought it about: the text that was
    /// read is nobody's file.
    fn blame(&self, error: Error, point: usize, values: &[Value]) -> Error {
        let Error::Wrong(mistakes) = error else { return error };
        let set: Vec<String> = self
            .parameters
            .iter()
            .zip(values)
            .map(|(parameter, value)| format!("{} = {value}", parameter.key))
            .collect();
        let faults = Faults::default();
        for wrong in &mistakes.told {
            let message = format!("point {} ({}): {}", point + 1, set.join(", "), wrong.message);
            let fault = Fault::new(self.guilty(wrong).values_at, message);
            faults.add(wrong.help.iter().fold(fault, |fault, help| fault.help(help)));
        }
        faults.locate(&self.file, &self.text)
    }

    /// The parameter that brought a mistake about.
    fn guilty(&self, wrong: &Wrong) -> &Parameter {
        let at_line = |parameter: &&Parameter| {
            let last = parameter.key.rsplit('.').next().unwrap_or(&parameter.key);
            wrong.text.trim_start().starts_with(last)
        };
        self.parameters.iter().find(at_line).unwrap_or(&self.parameters[0])
    }
}

/// Remembers what a scenario reads besides itself.
struct Recorded<'a> {
    beside: Beside<'a>,
    texts: Vec<(String, String)>,
}

impl scenario::Files for Recorded<'_> {
    fn read(&mut self, name: &str) -> std::io::Result<String> {
        let text = self.beside.read(name)?;
        self.texts.push((name.into(), text.clone()));
        Ok(text)
    }
}

fn read(mut table: Table<'_>) -> Result<Written, Fault> {
    let scenario = table.need("scenario", |item| Ok((item.text()?.to_owned(), item.span)));
    let design = table.choose("design", &[("grid", 0), ("list", 1), ("random", 2)]);
    let seeds = table.get("seeds", |item| item.whole(1..=10_000)).unwrap_or(1);
    let design = match design {
        Ok(None | Some(0)) => Ok(Design::Grid),
        Ok(Some(1)) => Ok(Design::List),
        Ok(Some(_)) => {
            let points = table.need("points", |item| item.whole(1..=MOST_RUNS as u64));
            let seed = table.get("seed", |item| item.whole(0..=u64::MAX)).unwrap_or(1);
            points.map(|points| Design::Random { points: small(points), seed })
        }
        Err(fault) => Err(fault),
    };
    let at = table.item("parameter").map_or((0..0).into(), |item: Item<'_>| item.span);
    let (mut parameters, mut values) = (Vec::new(), Vec::new());
    let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for own in table.tables("parameter") {
        // Without a design it is not known which keys it has.
        let read = design.clone().and_then(|design| parameter(own, design));
        let Some((parameter, own)) = table.kept(read) else { continue };
        let mut twice = |what: &str| {
            table.tell(Fault::new(parameter.at, format_args!("{what} '{}' is varied twice", parameter.name)));
        };
        if !keys.insert(parameter.key.clone()) {
            twice("the key of");
        } else if !names.insert(parameter.name.clone()) {
            twice("the name");
        }
        parameters.push(parameter);
        values.push(own);
    }
    table.finish()?;
    let ((scenario, scenario_at), design) = (scenario?, design?);
    match parameters.len() {
        0 => return Err(Fault::new(at, "nothing is varied: a sweep needs at least one [[parameter]]")),
        1..=MOST_PARAMETERS => {}
        count => {
            return Err(Fault::new(at, format_args!("{count} parameters are more than {MOST_PARAMETERS}")));
        }
    }
    if design == Design::List {
        same_length(&parameters, &values)?;
    }
    Ok(Written { scenario, scenario_at, design, seeds: small(seeds), parameters, values })
}

/// What was bounded when it was read.
fn small(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn same_length(parameters: &[Parameter], values: &[Values]) -> Result<(), Fault> {
    let length = |values: &Values| points::count(Design::List, std::slice::from_ref(values)).unwrap_or(0);
    let first = length(&values[0]);
    match parameters.iter().zip(values).find(|(_, own)| length(own) != first) {
        None => Ok(()),
        Some((parameter, own)) => Err(Fault::new(
            parameter.values_at,
            format_args!(
                "a list goes through all parameters at once, but '{}' has {} values and '{}' {first}",
                parameter.name,
                length(own),
                parameters[0].name
            ),
        )
        .help("design = \"grid\" makes every combination")),
    }
}

fn parameter(mut table: Table<'_>, design: Design) -> Result<(Parameter, Values), Fault> {
    let key = table.need("key", |item| Ok((item.text()?.to_owned(), item.span)));
    let name = table.get("name", |item| item.text().map(ToOwned::to_owned));
    let is_random = matches!(design, Design::Random { .. });
    let range = (is_random && !table.has("values")).then(|| range(&mut table));
    let list = table.get("values", |item| Ok((these(item)?, item.span)));
    table.finish()?;
    let (key, at) = key?;
    let name = name.unwrap_or_else(|| key.clone());
    let (values, values_at) = match (list, range) {
        (Some(list), _) => list,
        (None, Some(range)) => range?,
        (None, None) => return Err(Fault::new(at, format_args!("'{name}' needs the key `values`, a list"))),
    };
    Ok((Parameter { name, key, at, values_at }, values))
}

fn these(item: Item<'_>) -> Result<Values, Fault> {
    let values: Vec<Value> = item.each(value)?;
    match values.len() {
        0 => Err(item.fault("`values` is empty: there would be no point at all")),
        1..=MOST_RUNS => Ok(Values::These(values)),
        count => Err(item.fault(format_args!("{count} values are more than {MOST_RUNS}"))),
    }
}

/// A value that can stand in a scenario.
fn value(item: Item<'_>) -> Result<Value, Fault> {
    let wrong = || item.fault("a value is a text, a number, or true or false");
    match item.value {
        DeValue::String(text) => Ok(Value::String(text.clone().into_owned())),
        DeValue::Boolean(flag) => Ok(Value::Boolean(*flag)),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map(Value::Integer).map_err(|_| wrong())
        }
        DeValue::Float(number) => number.as_str().parse().map(Value::Float).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

fn finite(item: Item<'_>) -> Result<(f64, Item<'_>), Fault> {
    Ok((item.number(f64::is_finite, "that is finite")?, item))
}

fn range(table: &mut Table<'_>) -> Result<(Values, Span), Fault> {
    let (low, high) = (table.need("low", finite), table.need("high", finite));
    let is_logarithmic =
        table.get("scale", |item| item.one_of(&[("linear", false), ("logarithmic", true)])).unwrap_or(false);
    let is_whole = table.get("whole", Item::flag).unwrap_or(false);
    let unit = table.get("unit", |item| item.text().map(ToOwned::to_owned));
    let ((low, at), (high, high_at)) = (low?, high?);
    if high < low {
        return Err(high_at.fault(format_args!("`high` ({high}) is below `low` ({low})")));
    }
    if is_logarithmic && low <= 0.0 {
        return Err(at.fault("a logarithmic scale begins above zero"));
    }
    if is_whole
        && (is_logarithmic || low.fract() != 0.0 || high.fract() != 0.0 || low.abs().max(high.abs()) > 1e15)
    {
        return Err(at.fault("whole numbers are drawn from a linear scale between whole numbers"));
    }
    Ok((Values::Range { low, high, is_logarithmic, is_whole, unit }, at.span))
}
