//! Names that a plan gives and uses.

use anabranch_sim::scenario::{Fault, Item, Span, Table};

use crate::scheme::{self, Scheme};

/// From this similarity on (Jaro and Winkler) a name may be the one that was meant.
const SIMILAR: f64 = 0.8;

/// One of the names that there are, or a fault that tells the nearest.
pub(crate) fn known<'a>(
    item: &Item<'_>,
    what: &str,
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<&'a str, Fault> {
    let names: Vec<&str> = names.into_iter().collect();
    names.iter().copied().find(|known| *known == name).ok_or_else(|| unknown(item, what, name, &names))
}

/// The fault that there is no such name.
pub(super) fn unknown(item: &Item<'_>, what: &str, name: &str, names: &[&str]) -> Fault {
    let fault = item.fault(format_args!("there is no {what} '{name}'"));
    let similarity = |known: &&str| strsim::jaro_winkler(name, known);
    let nearest = names.iter().copied().max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    match nearest.filter(|nearest| similarity(nearest) >= SIMILAR) {
        Some(nearest) => fault.help(format_args!("did you mean '{nearest}'?")),
        None if names.is_empty() => fault,
        None => fault.help(format_args!("there are: {}", names.join(", "))),
    }
}

/// A scheme, whose look is the same in every plot.
pub(super) fn scheme(item: Item<'_>) -> Result<Scheme, Fault> {
    let name = item.text()?;
    known(&item, "scheme", name, scheme::ALL.iter().map(|scheme| scheme.name))?;
    Ok(scheme::ALL.iter().copied().find(|scheme| scheme.name == name).unwrap_or(scheme::FIRST))
}

/// A text of one's own.
pub(crate) fn text(item: Item<'_>) -> Result<String, Fault> {
    item.text().map(ToOwned::to_owned)
}

/// A file's name, and where it stands.
pub(super) fn file(item: Item<'_>) -> Result<(String, Span), Fault> {
    Ok((text(item)?, item.span))
}

/// A number.
pub(crate) fn number(item: Item<'_>) -> Result<f64, Fault> {
    item.number(f64::is_finite, "that is finite")
}

/// A list of numbers with at least one.
pub(super) fn numbers(item: Item<'_>) -> Result<Vec<f64>, Fault> {
    let numbers = item.each(number)?;
    if numbers.is_empty() { Err(item.fault(format_args!("`{}` is empty", item.key))) } else { Ok(numbers) }
}

/// A name that is part of a file's name.
pub(super) fn file_name(item: Item<'_>) -> Result<String, Fault> {
    let name = item.text()?;
    let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    if name.is_empty() || name.len() > 60 || !name.chars().all(is_right) {
        let fault = item.fault(format_args!("'{name}' cannot be `{}`", item.key));
        return Err(fault.help("it names a file: 1 to 60 small letters, digits, '-' and '.'"));
    }
    Ok(name.into())
}

/// A name of a file, and a title.
pub(super) fn id_and_title(own: &mut Table<'_>) -> (Result<String, Fault>, Result<String, Fault>) {
    (own.need("id", file_name), own.need("title", text))
}
