//! Tables and values of a TOML document, which know their place and what they were asked for.

use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use super::error::{Fault, Span, nearest};

/// A table that is being read: what it was asked for are its known keys.
#[derive(Debug)]
pub struct Table<'a> {
    /// What it is, with its article: `a [[link]]`.
    what: String,
    /// Its heading, or all of it where it has none.
    pub(super) span: Span,
    /// None where a name stands for a table without entries.
    entries: Option<&'a DeTable<'a>>,
    asked: BTreeSet<&'static str>,
}

/// A value, with the key that it stands at.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key.
    pub key: &'a str,
    /// Where the value is.
    pub span: Span,
    /// The value.
    pub value: &'a DeValue<'a>,
}

impl<'a> Table<'a> {
    /// A table; `what` it is, with its article. One without entries is a table in which nothing is said.
    pub fn new(what: &str, span: Span, entries: Option<&'a DeTable<'a>>) -> Self {
        Self { what: what.into(), span, entries, asked: BTreeSet::new() }
    }

    /// Calls it something more precise from now on.
    pub(super) fn call(&mut self, what: &str) {
        self.what = what.into();
    }

    /// Whether there is such a key; it is not known for that.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// The value at a key; the key is known from now on.
    pub fn item(&mut self, key: &'static str) -> Option<Item<'a>> {
        self.asked.insert(key);
        let (key, value) = self.entries?.get_key_value(key)?;
        Some(Item { key: key.get_ref(), span: value.span().into(), value: value.get_ref() })
    }

    /// Reads the value at a key, if there is one.
    ///
    /// # Errors
    /// That of `read`.
    pub fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Item<'a>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.item(key).map(read).transpose()
    }

    /// Reads the value at a key, which has to be there.
    ///
    /// # Errors
    /// It is not there, or that of `read`.
    pub fn need<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Item<'a>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        match self.item(key) {
            Some(item) => read(item),
            None => Err(self.missing(key)),
        }
    }

    /// The tables of `[[key]]`.
    ///
    /// # Errors
    /// It is something else.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Table<'a>>, Fault> {
        let what = format!("a [[{key}]]");
        match self.item(key) {
            Some(item) if !item.value.is_array() => {
                Err(item.fault(format_args!("write {what} with two brackets, for there can be several")))
            }
            Some(item) => item.list()?.into_iter().map(|item| item.table(&what)).collect(),
            None => Ok(Vec::new()),
        }
    }

    /// The fault that a key is missing, or that it is misspelt.
    fn missing(&self, key: &str) -> Fault {
        let misspelt = self.unread().find(|(wrong, _)| nearest(wrong, [key]).is_some());
        match misspelt {
            Some((wrong, span)) => self.unknown(wrong, span).help(format_args!("did you mean `{key}`?")),
            None => Fault::new(self.span, format_args!("{} needs the key `{key}`", self.what)),
        }
    }

    /// Every entry, for tables whose keys are names.
    pub(super) fn entries(&self) -> impl Iterator<Item = Item<'a>> {
        self.entries.into_iter().flatten().map(|(key, value)| Item {
            key: key.get_ref(),
            span: value.span().into(),
            value: value.get_ref(),
        })
    }

    fn unread(&self) -> impl Iterator<Item = (&'a str, Span)> {
        self.entries
            .into_iter()
            .flat_map(|entries| entries.keys())
            .filter(|key| !self.asked.contains(key.get_ref().as_ref()))
            .map(|key| (key.get_ref().as_ref(), key.span().into()))
    }

    fn unknown(&self, key: &str, span: Span) -> Fault {
        Fault::new(span, format_args!("`{key}` is not a key of {}", self.what))
    }

    /// Ends the reading: a key that nobody asked for is a fault.
    ///
    /// # Errors
    /// There is one.
    pub fn finish(self) -> Result<(), Fault> {
        let Some((key, span)) = self.unread().next() else { return Ok(()) };
        let known: Vec<_> = self.asked.iter().copied().collect();
        let meant = nearest(key, known.iter().copied());
        let meant = meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
        Err(self.unknown(key, span).help(format_args!("{meant}the keys are: {}", known.join(", "))))
    }
}

impl<'a> Item<'a> {
    /// A fault at this value.
    pub fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::new(self.span, message)
    }

    /// The fault that the value is of another type.
    pub fn expected(&self, what: impl std::fmt::Display) -> Fault {
        let article = if matches!(self.value, DeValue::Integer(_) | DeValue::Array(_)) { "an" } else { "a" };
        self.fault(format_args!("`{}` is {what}, not {article} {}", self.key, self.value.type_str()))
    }

    /// A text.
    ///
    /// # Errors
    /// It is something else.
    pub fn text(self) -> Result<&'a str, Fault> {
        self.value.as_str().ok_or_else(|| self.expected("a text in quotes"))
    }

    /// True or false.
    ///
    /// # Errors
    /// It is something else.
    pub fn flag(self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// The values of a list.
    ///
    /// # Errors
    /// It is something else.
    pub fn list(self) -> Result<Vec<Item<'a>>, Fault> {
        let DeValue::Array(items) = self.value else { return Err(self.expected("a list in brackets")) };
        Ok(items
            .iter()
            .map(|item| Item { key: self.key, span: item.span().into(), value: item.get_ref() })
            .collect())
    }

    /// A table; `what` it is, with its article.
    ///
    /// # Errors
    /// It is something else.
    pub fn table(self, what: &str) -> Result<Table<'a>, Fault> {
        match self.value {
            DeValue::Table(entries) => Ok(Table::new(what, self.span, Some(entries))),
            _ => Err(self.expected("a table")),
        }
    }

    /// One of several names.
    ///
    /// # Errors
    /// It is another one, or no text.
    pub fn one_of<T: Copy>(self, choices: &[(&'static str, T)]) -> Result<T, Fault> {
        let text = self.text()?;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(*choice);
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let fault = self.fault(format_args!("`{}` cannot be '{text}'", self.key));
        let meant = nearest(text, names.iter().copied());
        let meant = meant.map_or_else(String::new, |name| format!("did you mean '{name}'? "));
        Err(fault.help(format_args!("{meant}it is one of: {}", names.join(", "))))
    }

    /// A name, or a table that has the name at its key `kind`; and the table for the other keys.
    pub(super) fn named<T: Copy>(
        self,
        what: &str,
        choices: &[(&'static str, T)],
    ) -> Result<(T, Table<'a>), Fault> {
        match self.value {
            DeValue::String(_) => Ok((self.one_of(choices)?, Table::new(what, self.span, None))),
            DeValue::Table(_) => {
                let mut table = self.table(what)?;
                Ok((table.need("kind", |item| item.one_of(choices))?, table))
            }
            _ => Err(self.expected("a name, or a table with its `kind`")),
        }
    }
}
