//! Numbers that are computed from the figures of runs: what relations judge, and what tables and curves show.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Item, Table};
use exmex::{Express, FlatEx};

use super::names::{self, unknown};
use super::take::Take;
use crate::results::OneSeed;
use crate::scheme::Scheme;

/// A formula is no longer: it is read by people.
const LONGEST_FORMULA: usize = 500;

/// Where the figures of runs come from.
pub(super) trait Source<'a>: Copy {
    /// The same in another setting.
    fn in_setting(self, setting: &'a str) -> Self;
    /// Whether it is that without a setting.
    fn is_plain(self) -> bool;
    /// A figure of a run.
    fn figure(self, scheme: Scheme, point: f64, name: &str) -> Option<f64>;
    /// A value of a series of a run.
    fn series(self, scheme: Scheme, point: f64, name: &str, at: f64) -> Option<f64>;
}

impl<'a> Source<'a> for OneSeed<'a> {
    fn in_setting(self, setting: &'a str) -> Self {
        self.setting(setting)
    }

    fn is_plain(self) -> bool {
        OneSeed::is_plain(self)
    }

    fn figure(self, scheme: Scheme, point: f64, name: &str) -> Option<f64> {
        OneSeed::figure(self, scheme, point, name)
    }

    fn series(self, scheme: Scheme, point: f64, name: &str, at: f64) -> Option<f64> {
        let points = OneSeed::series(self, scheme, point, name)?;
        points.iter().find(|(x, _)| *x == at).map(|(_, value)| *value)
    }
}

/// What names mean in formulas.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) figures: Vec<String>,
    /// Figures that real runs alone have.
    pub(super) real_figures: Vec<String>,
    pub(super) series: Vec<String>,
    pub(super) settings: Vec<String>,
    pub(super) values: BTreeMap<String, Arc<Term>>,
}

impl Known {
    /// What is known of real runs.
    pub(super) fn of_real_runs(&self) -> Self {
        Self { figures: [&*self.figures, &*self.real_figures].concat(), ..self.clone() }
    }
}

/// A number that is computed from the figures of runs.
#[derive(Clone, Debug)]
pub(super) struct Term {
    what: What,
    scheme: Option<Scheme>,
    setting: Option<String>,
    point: Option<At>,
    over: Option<Over>,
}

#[derive(Clone, Debug)]
enum What {
    Formula { formula: Box<FlatEx<f64>>, variables: Vec<Variable> },
    Series { name: String, at: f64 },
}

#[derive(Clone, Debug)]
enum Variable {
    Figure(String),
    Point,
    Term(Arc<Term>),
}

#[derive(Clone, Copy, Debug)]
enum At {
    This(f64),
    Next,
}

#[derive(Clone, Debug)]
struct Over {
    points: Vec<f64>,
    take: Take,
}

/// The run that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) scheme: Option<Scheme>,
    pub(super) point: f64,
    next: Option<f64>,
}

impl Place {
    pub(super) const fn new(scheme: Option<Scheme>, point: f64) -> Self {
        Self { scheme, point, next: None }
    }
}

impl Term {
    /// A figure, or a formula of figures, of the run that is looked at.
    pub(super) fn formula(item: Item<'_>, known: &Known) -> Result<Self, Fault> {
        let what = formula(item, known, &BTreeMap::new())?;
        Ok(Self { what, scheme: None, setting: None, point: None, over: None })
    }

    /// The same of a scheme.
    pub(super) fn of_scheme(&self, scheme: Scheme) -> Self {
        Self { scheme: Some(scheme), ..self.clone() }
    }

    /// The keys `value` or `series`, and where it is looked at.
    pub(super) fn read(table: &mut Table<'_>, known: &Known) -> Result<Self, Fault> {
        let scheme = table.get("scheme", names::scheme);
        let setting = table.get("setting", |item| {
            let settings = known.settings.iter().map(String::as_str);
            names::known(&item, "setting", item.text()?, settings).map(ToOwned::to_owned)
        });
        let point = table.get("point", |item| match item.text() {
            Ok("next") => Ok(At::Next),
            _ => names::number(item).map(At::This),
        });
        let points = table.get("points", names::numbers);
        let over = match points {
            Some(points) => {
                Some(Over { points, take: table.need("take", |item| item.one_of(&Take::NAMES))? })
            }
            None => None,
        };
        let own = Self::read_where(table, known);
        let what = Self::read_what(table, known, own)?;
        Ok(Self { what, scheme, setting, point, over })
    }

    /// A point of a series, or a formula in which the names of `where` are known.
    fn read_what(
        table: &mut Table<'_>,
        known: &Known,
        own: Result<BTreeMap<String, Arc<Self>>, Fault>,
    ) -> Result<What, Fault> {
        if !table.has("series") {
            return table.need("value", |item| formula(item, known, &own?));
        }
        let name = table.need("series", |item| {
            let series = known.series.iter().map(String::as_str);
            names::known(&item, "series", item.text()?, series).map(ToOwned::to_owned)
        });
        let at = table.need("at", names::number);
        Ok(What::Series { name: name?, at: at? })
    }

    /// The names of `where`, and what they stand for.
    fn read_where(table: &mut Table<'_>, known: &Known) -> Result<BTreeMap<String, Arc<Self>>, Fault> {
        let Some(inner) = table.item("where") else { return Ok(BTreeMap::new()) };
        let entries = inner.table("`where`")?;
        entries
            .entries()
            .map(|entry| Ok((entry.key.to_owned(), Arc::new(Self::bound(entry, known)?))))
            .collect()
    }

    /// What a name of `where` stands for: a formula, or a table as this one is.
    fn bound(item: Item<'_>, known: &Known) -> Result<Self, Fault> {
        if item.text().is_ok() {
            return Self::formula(item, known);
        }
        let mut table = item.table("a number of `where`")?;
        let term = Self::read(&mut table, known);
        table.finish()?;
        term
    }

    /// The number that is judged: in its own setting, or in one that a cause asks for.
    ///
    /// # Errors
    /// A run that is needed does not exist or has not measured it; in words.
    pub(super) fn judged<'a, S: Source<'a>>(&'a self, source: S) -> Result<f64, String> {
        let place = Place::new(None, 0.0);
        if source.is_plain() { self.of(source, place) } else { self.here(source, place) }
    }

    /// The number.
    ///
    /// # Errors
    /// A run that is needed does not exist or has not measured it; in words.
    pub(super) fn of<'a, S: Source<'a>>(&'a self, source: S, place: Place) -> Result<f64, String> {
        let source = self.setting.as_deref().map_or(source, |setting| source.in_setting(setting));
        self.here(source, place)
    }

    /// The number in the source's setting.
    fn here<'a, S: Source<'a>>(&'a self, source: S, place: Place) -> Result<f64, String> {
        let scheme = self.scheme.or(place.scheme);
        let (point, next) = match self.point {
            Some(At::This(point)) => (point, None),
            Some(At::Next) => (place.next.ok_or("there is no next point without `points`")?, None),
            None => (place.point, place.next),
        };
        let Some(Over { points, take }) = &self.over else {
            return self.at(source, Place { scheme, point, next });
        };
        let nexts = points.iter().copied().skip(1).map(Some).chain([None]);
        let mut numbers = Vec::new();
        for (point, next) in points.iter().copied().zip(nexts) {
            if next.is_some() || !self.looks_ahead() {
                numbers.push(self.at(source, Place { scheme, point, next })?);
            }
        }
        take.of(&numbers).ok_or_else(|| "one point has no next one".into())
    }

    fn at<'a, S: Source<'a>>(&'a self, source: S, place: Place) -> Result<f64, String> {
        match &self.what {
            What::Series { name, at } => {
                let scheme = place.scheme.ok_or_else(no_scheme)?;
                source
                    .series(scheme, place.point, name, *at)
                    .ok_or_else(|| missing(name, scheme, place.point))
            }
            What::Formula { formula, variables } => {
                let value = |variable: &'a Variable| match variable {
                    Variable::Point => Ok(place.point),
                    Variable::Term(term) => term.of(source, place),
                    Variable::Figure(name) => {
                        let scheme = place.scheme.ok_or_else(no_scheme)?;
                        source
                            .figure(scheme, place.point, name)
                            .ok_or_else(|| missing(name, scheme, place.point))
                    }
                };
                let values: Vec<f64> = variables.iter().map(value).collect::<Result<_, _>>()?;
                formula.eval(&values).map_err(|error| error.to_string())
            }
        }
    }

    /// Whether it looks at the next of several points.
    fn looks_ahead(&self) -> bool {
        let What::Formula { variables, .. } = &self.what else { return false };
        variables.iter().any(|variable| match variable {
            Variable::Term(term) => {
                matches!(term.point, Some(At::Next)) || (term.point.is_none() && term.looks_ahead())
            }
            _ => false,
        })
    }
}

fn no_scheme() -> String {
    "it does not say of which `scheme`".into()
}

fn missing(name: &str, scheme: Scheme, point: f64) -> String {
    format!("no run of '{}' at {point} in this setting has '{name}'", scheme.name)
}

fn formula(item: Item<'_>, known: &Known, own: &BTreeMap<String, Arc<Term>>) -> Result<What, Fault> {
    let text = item.text()?;
    let parsed = parse(item, text)?;
    let variable = |name: &String| {
        if let Some(term) = own.get(name).or_else(|| known.values.get(name)) {
            return Ok(Variable::Term(Arc::clone(term)));
        }
        if known.figures.contains(name) {
            return Ok(Variable::Figure(name.clone()));
        }
        if name == "point" {
            return Ok(Variable::Point);
        }
        let names = own.keys().chain(known.values.keys()).chain(&known.figures).map(String::as_str);
        let names: Vec<&str> = names.chain(["point"]).collect();
        Err(unknown(&item, "figure or number", name, &names))
    };
    let variables = parsed.var_names().iter().map(variable).collect::<Result<_, _>>()?;
    Ok(What::Formula { formula: Box::new(parsed), variables })
}

/// A formula in the words of <https://docs.rs/exmex>.
pub(crate) fn parse(item: Item<'_>, text: &str) -> Result<FlatEx<f64>, Fault> {
    if text.len() > LONGEST_FORMULA {
        return Err(item.fault(format_args!("a formula has at most {LONGEST_FORMULA} letters")));
    }
    exmex::parse::<f64>(text).map_err(|error| {
        let fault = item.fault(format_args!("this is no formula: {error}"));
        fault.help("write it like '({goodput} - b) / b'; a name with blanks stands in braces")
    })
}
