//! The relations of a plan.

use std::sync::Arc;

use anabranch_sim::scenario::{Fault, Item, Table};

use super::grid::{Across, Grid};
use super::names::{self, number, text};
use super::published::Published;
use super::runs::Run;
use super::term::{Known, Source, Term};
use crate::experiment::{Cause, Expected, Relation};
use crate::scheme::Scheme;

/// What stands for a published value where we compare a scheme of ours.
const OURS: &str = "ours, not in the paper";

/// A relation of a plan.
pub(super) struct Judged {
    id: String,
    claim: String,
    published: String,
    unit: String,
    number: Number,
    expected: Expected,
    cause: Option<Cause>,
    is_real: bool,
}

/// What is judged.
enum Number {
    /// A number of a seed's runs.
    Term(Arc<Term>),
    /// A number of all paths and seeds of a grid.
    Across(Box<Across>),
}

impl Judged {
    /// Whether it compares a scheme of ours: no paper has said it.
    pub(super) fn is_ours(&self) -> bool {
        self.published == OURS
    }

    /// Whether it is judged by real runs.
    pub(super) fn is_real(&self) -> bool {
        self.is_real
    }

    /// Whether these runs have its number.
    pub(super) fn is_measured_by(&self, runs: &[Run]) -> bool {
        match &self.number {
            Number::Term(term) => term.judged(Planned { runs, setting: "" }).is_ok(),
            Number::Across(_) => true,
        }
    }

    pub(super) fn into_relation(self) -> Relation {
        let is_of_all_seeds = matches!(self.number, Number::Across(_));
        Relation {
            id: self.id,
            claim: self.claim,
            published: self.published,
            unit: self.unit,
            value: match self.number {
                Number::Term(term) => Box::new(move |seed| term.judged(seed).ok()),
                Number::Across(across) => Box::new(move |seed| across.of_all(seed)),
            },
            is_of_all_seeds,
            expected: self.expected,
            cause: self.cause,
        }
    }
}

/// The runs that a plan has, and its grid.
type Planning<'a> = (&'a [Run], Option<&'a Arc<Grid>>);

/// Reads every `[[relation]]`.
pub(super) fn read(
    table: &mut Table<'_>,
    known: &Known,
    published: &Published,
    runs: Planning<'_>,
) -> Vec<Judged> {
    let mut relations: Vec<Judged> = Vec::new();
    for own in table.tables("relation") {
        let at = own.span();
        for relation in table.kept(relation(own, known, published, runs)).into_iter().flatten() {
            if relations.iter().any(|one| one.id == relation.id) {
                table.tell(Fault::new(at, format_args!("a second relation has the id '{}'", relation.id)));
            }
            relations.push(relation);
        }
    }
    relations
}

/// A relation, or one for each of its `schemes`.
fn relation(
    mut own: Table<'_>,
    known: &Known,
    published: &Published,
    (runs, grid): Planning<'_>,
) -> Result<Vec<Judged>, Fault> {
    let at = own.span();
    let id = own.need("id", |item| Ok((names::file_name(item)?, item)));
    let claim = own.need("claim", text);
    let unit = own.get("unit", text).unwrap_or_default();
    let is_ours = own.get("ours", Item::flag).unwrap_or(false);
    let is_real = own.get("real", Item::flag).unwrap_or(false);
    let known = &if is_real { known.of_real_runs() } else { known.clone() };
    let across = match grid {
        Some(grid) if own.has("half") && !is_real => Some(Across::read(&mut own, grid, &known.figures)),
        _ => None,
    };
    let schemes = if across.is_none() { own.get("schemes", schemes) } else { None };
    if schemes.is_some() && own.has("scheme") {
        own.tell(Fault::new(at, "say `scheme`, or `schemes` for a relation of each"));
    }
    let term = if across.is_none() { Some(Term::read(&mut own, known)) } else { None };
    let expected = own.need("expect", expected);
    let cause = own.get("cause", |item| cause(item, known));
    own.finish()?;
    let (id, item) = id?;
    let told = if is_ours { Some(OURS.into()) } else { published.told(&id) };
    let Some(told) = told else {
        let what = "row of published.csv, nor `ours = true`, for";
        return Err(names::unknown(&item, what, &id, &published.names().collect::<Vec<_>>()));
    };
    let (mut claim, expected) = (claim?, expected?);
    if is_real {
        claim += ", with real programs";
    }
    let judged = |id: &str, claim: String, number| Judged {
        id: id.to_owned(),
        claim,
        published: told.clone(),
        unit: unit.clone(),
        number,
        expected,
        cause: None,
        is_real,
    };
    let Some(term) = term else {
        return Ok(vec![judged(&id, claim, Number::Across(Box::new(across.ok_or(Fault::TOLD)??)))]);
    };
    let term = term?;
    let each = match schemes {
        None => vec![(id, claim, term)],
        Some(schemes) => schemes.iter().map(|scheme| of_scheme(*scheme, &id, &claim, &term)).collect(),
    };
    let settings = || cause.iter().flat_map(|cause| &cause.shown_by).map(String::as_str).chain([""]);
    let mut relations = Vec::new();
    for (id, claim, term) in each {
        for setting in settings() {
            term.judged(Planned { runs, setting }).map_err(|missing| {
                let of =
                    if setting.is_empty() { String::new() } else { format!(" in the setting '{setting}'") };
                Fault::new(at, format_args!("'{id}' cannot be measured{of}: {missing}"))
            })?;
        }
        let number = Number::Term(Arc::new(term));
        relations.push(Judged { cause: cause.clone(), ..judged(&id, claim, number) });
    }
    Ok(relations)
}

/// The schemes that have a relation each.
fn schemes(item: Item<'_>) -> Result<Vec<Scheme>, Fault> {
    match item.each(names::scheme)? {
        schemes if schemes.is_empty() => Err(item.fault("`schemes` is empty")),
        schemes => Ok(schemes),
    }
}

/// The id, the claim and the number of a scheme, of those that are all schemes'.
fn of_scheme(scheme: Scheme, id: &str, claim: &str, term: &Term) -> (String, String, Term) {
    let name = scheme.name.to_lowercase().replace(' ', "-").replace(',', "");
    (format!("{id}-{name}"), format!("{claim}: {}", scheme.name), term.of_scheme(scheme))
}

/// Where the number has to lie.
fn expected(item: Item<'_>) -> Result<Expected, Fault> {
    let mut table = item.table("`expect`")?;
    let between = table.get("between", |item| match names::numbers(item)?[..] {
        [low, high] if low <= high => Ok(Expected::Between(low, high)),
        _ => Err(item.fault("`between` is two numbers, the lower first")),
    });
    let bounds = [
        between,
        table.get("at_least", number).map(Expected::AtLeast),
        table.get("at_most", number).map(Expected::AtMost),
        table.get("above", number).map(Expected::Above),
        table.get("below", number).map(Expected::Below),
    ];
    let about = table.get("about", number);
    let within = table.get("within", |item| item.number(|part| part >= 0.0, "from 0: a part of `about`"));
    table.finish()?;
    let about = match (about, within) {
        (Some(value), Some(part)) => Some(Expected::about(value, part)),
        (None, None) => None,
        _ => return Err(item.fault("`about` and `within` go together: { about = 800, within = 0.1 }")),
    };
    match bounds.into_iter().flatten().chain(about).collect::<Vec<_>>()[..] {
        [expected] => Ok(expected),
        _ => Err(item.fault("say one of: between, at_least, at_most, above, below, or about with within")),
    }
}

/// Why it differs, and the settings that show it.
fn cause(item: Item<'_>, known: &Known) -> Result<Cause, Fault> {
    let mut table = item.table("`cause`")?;
    let says = table.need("says", text);
    let settings = || known.settings.iter().map(String::as_str);
    let shown_by = table.need("shown_by", |item| {
        item.each(|item| names::known(&item, "setting", item.text()?, settings()).map(ToOwned::to_owned))
    });
    table.finish()?;
    Ok(Cause { says: says?, shown_by: shown_by? })
}

/// The runs that a plan has, before they are made: every figure is one.
#[derive(Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) runs: &'a [Run],
    pub(super) setting: &'a str,
}

impl Planned<'_> {
    fn has(self, scheme: Scheme, point: f64) -> Option<f64> {
        let is_it = |run: &&Run| run.scheme == scheme && run.point == point && run.setting == self.setting;
        self.runs.iter().find(is_it).map(|_| 1.0)
    }
}

impl<'a> Source<'a> for Planned<'a> {
    fn in_setting(self, setting: &'a str) -> Self {
        Self { setting, ..self }
    }

    fn is_plain(self) -> bool {
        self.setting.is_empty()
    }

    fn figure(self, scheme: Scheme, point: f64, _name: &str) -> Option<f64> {
        self.has(scheme, point)
    }

    fn series(self, scheme: Scheme, point: f64, _name: &str, _at: f64) -> Option<f64> {
        self.has(scheme, point)
    }
}
