//! Tables and values of a TOML document, which know their place and what they were asked for.

use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use crate::error::{Error, Fault, Faults, Span, nearest};

/// Reads the text of a TOML document; `file` is its name in errors, and `what` it is stands there with its
/// article.
///
/// # Errors
/// The text is no TOML, or what `read` finds wrong, with its place.
pub fn read_document<T>(
    file: &str,
    text: &str,
    what: &str,
    read: impl FnOnce(Table<'_>) -> Result<T, Fault>,
) -> Result<T, Error> {
    let faults = Faults::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    errors.iter().for_each(|error| faults.add(error.into()));
    if errors.is_empty() {
        match read(Table::new(what, (0..0).into(), Some(document.get_ref()), &faults)) {
            Ok(content) if faults.count() == 0 => return Ok(content),
            Ok(_) => {}
            Err(fault) => faults.add(fault),
        }
    }
    Err(faults.locate(file, text))
}

/// A table that is being read: what it was asked for are its known keys.
///
/// What is wrong with a value is kept among the faults, and the reading goes on, so that a person gets to
/// know all of it at once. So a table is asked for all of its keys before anything is given up
/// ([`Self::need`]), and what several of them have to hold to is checked behind [`Self::finish`].
#[derive(Debug)]
pub struct Table<'a> {
    /// What it is, with its article: `a [[link]]`.
    what: String,
    /// Its heading, or all of it where it has none.
    pub(crate) span: Span,
    /// None where a name stands for a table without entries.
    entries: Option<&'a DeTable<'a>>,
    asked: BTreeSet<&'static str>,
    /// Keys that it lacks. Whether another one is a misspelt one of them is known when all have been asked
    /// for.
    missing: Vec<&'static str>,
    /// Keys of which it is told already that they are wrong.
    told: BTreeSet<&'a str>,
    /// Whether something in it is wrong.
    is_wrong: bool,
    /// Whether it is not known which keys it has.
    is_vague: bool,
    faults: &'a Faults,
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
    faults: &'a Faults,
}

impl<'a> Table<'a> {
    /// A table; `what` it is, with its article. One without entries is a table in which nothing is said.
    pub(crate) fn new(what: &str, span: Span, entries: Option<&'a DeTable<'a>>, faults: &'a Faults) -> Self {
        let (asked, missing, told) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        Self {
            what: what.into(),
            span,
            entries,
            asked,
            missing,
            told,
            is_wrong: false,
            is_vague: false,
            faults,
        }
    }

    /// Its heading, or all of it where it has none.
    pub fn span(&self) -> Span {
        self.span
    }

    /// How many faults were found so far, in this table and elsewhere.
    pub fn faults_so_far(&self) -> usize {
        self.faults.count()
    }

    /// Calls it something more precise from now on.
    pub(crate) fn call(&mut self, what: &str) {
        self.what = what.into();
    }

    /// Whether there is such a key; it is not known for that.
    pub fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// The value at a key; the key is known from now on.
    pub fn item(&mut self, key: &'static str) -> Option<Item<'a>> {
        self.asked.insert(key);
        let (key, value) = self.entries?.get_key_value(key)?;
        let (key, span) = (key.get_ref(), value.span().into());
        Some(Item { key, span, value: value.get_ref(), faults: self.faults })
    }

    /// Keeps a fault.
    pub fn tell(&mut self, fault: Fault) {
        self.is_wrong = true;
        self.faults.add(fault);
    }

    /// Refuses a key that others have: `message` says why, where it stands.
    pub fn refuse(&mut self, key: &str, message: impl std::fmt::Display) {
        if let Some(item) = self.entries().find(|item| item.key == key) {
            self.told.insert(item.key);
            self.tell(item.fault(message));
        }
    }

    /// What was read, or a fault that is kept.
    pub fn kept<T>(&mut self, read: Result<T, Fault>) -> Option<T> {
        read.map_err(|fault| self.tell(fault)).ok()
    }

    /// Reads the value at a key; none when there is none, or a wrong one, which is kept.
    pub fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Item<'a>) -> Result<T, Fault>,
    ) -> Option<T> {
        let item = self.item(key)?;
        self.kept(read(item))
    }

    /// Reads the value at a key, which has to be there.
    ///
    /// # Errors
    /// It is not there, or that of `read`. Both are kept: the error is for what cannot do without the value.
    pub fn need<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Item<'a>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Some(item) = self.item(key) else {
            if !self.missing.contains(&key) {
                self.missing.push(key);
            }
            self.is_wrong = true;
            return Err(Fault::TOLD);
        };
        self.kept(read(item)).ok_or(Fault::TOLD)
    }

    /// Reads the name at a key, if there is one, that decides which other keys there are: none of them is
    /// unknown when it is wrong.
    ///
    /// # Errors
    /// It is no choice, which is kept.
    pub fn choose<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, Fault> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let choice = self.kept(item.one_of(choices));
        self.is_vague |= choice.is_none();
        choice.map(Some).ok_or(Fault::TOLD)
    }

    /// The tables of `[[key]]`, without those that are none, which are kept as faults.
    pub fn tables(&mut self, key: &'static str) -> Vec<Table<'a>> {
        let what = format!("a [[{key}]]");
        let Some(item) = self.item(key) else { return Vec::new() };
        let Ok(items) = item.list() else {
            let told = format_args!("write {what} with two brackets, for there can be several");
            self.tell(item.fault(told));
            return Vec::new();
        };
        items.into_iter().filter_map(|item| self.kept(item.table(&what))).collect()
    }

    /// Every entry, for tables whose keys are names.
    pub fn entries(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        let faults = self.faults;
        self.entries.into_iter().flatten().map(move |(key, value)| Item {
            key: key.get_ref(),
            span: value.span().into(),
            value: value.get_ref(),
            faults,
        })
    }

    fn unread(&self) -> impl Iterator<Item = (&'a str, Span)> {
        self.entries
            .into_iter()
            .flat_map(|entries| entries.keys())
            .filter(|key| !self.asked.contains(key.get_ref().as_ref()))
            .filter(|key| !self.told.contains(key.get_ref().as_ref()))
            .map(|key| (key.get_ref().as_ref(), key.span().into()))
    }

    /// Tells which keys it lacks, or which ones stand for them.
    fn tell_missing(&mut self) {
        for key in std::mem::take(&mut self.missing) {
            let misspelt =
                self.unread().find(|(wrong, _)| nearest(wrong, self.asked.iter().copied()) == Some(key));
            let fault = match misspelt {
                Some((wrong, span)) => {
                    self.told.insert(wrong);
                    self.unknown(wrong, span).help(format_args!("did you mean `{key}`?"))
                }
                None => Fault::new(self.span, format_args!("{} needs the key `{key}`", self.what)),
            };
            self.tell(fault);
        }
    }

    fn unknown(&self, key: &str, span: Span) -> Fault {
        Fault::new(span, format_args!("`{key}` is not a key of {}", self.what))
    }

    /// Ends the reading: every key that nobody asked for is a fault.
    ///
    /// # Errors
    /// Something in the table is wrong, which is kept.
    pub fn finish(mut self) -> Result<(), Fault> {
        self.tell_missing();
        let known: Vec<_> = self.asked.iter().copied().collect();
        let unknown: Vec<_> = self.unread().filter(|_| !self.is_vague).collect();
        for (key, span) in unknown {
            let meant = nearest(key, known.iter().copied());
            let meant = meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
            let fault = self.unknown(key, span);
            self.tell(fault.help(format_args!("{meant}the keys are: {}", known.join(", "))));
        }
        if self.is_wrong { Err(Fault::TOLD) } else { Ok(()) }
    }
}

/// What was given up before its end.
impl Drop for Table<'_> {
    fn drop(&mut self) {
        self.tell_missing();
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
            .map(|item| Item { span: item.span().into(), value: item.get_ref(), ..self })
            .collect())
    }

    /// The value of copy number `copy`, from 1: of a list the copies take the values by turns.
    ///
    /// # Errors
    /// The list is empty.
    pub(crate) fn turn(self, copy: u32) -> Result<Item<'a>, Fault> {
        let DeValue::Array(items) = self.value else { return Ok(self) };
        let turn = items.iter().cycle().nth((copy.max(1) - 1) as usize % items.len().max(1));
        let turn = turn.ok_or_else(|| self.fault(format_args!("`{}` is empty", self.key)))?;
        Ok(Item { span: turn.span().into(), value: turn.get_ref(), ..self })
    }

    /// Reads every value of a list.
    ///
    /// # Errors
    /// It is no list, or a value is wrong; all that are wrong are kept.
    pub fn each<T>(self, mut read: impl FnMut(Self) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        let items = self.list()?;
        let count = items.len();
        let right: Vec<T> = items
            .into_iter()
            .filter_map(|item| read(item).map_err(|fault| self.faults.add(fault)).ok())
            .collect();
        if right.len() == count { Ok(right) } else { Err(Fault::TOLD) }
    }

    /// A table; `what` it is, with its article.
    ///
    /// # Errors
    /// It is something else.
    pub fn table(self, what: &str) -> Result<Table<'a>, Fault> {
        match self.value {
            DeValue::Table(entries) => Ok(Table::new(what, self.span, Some(entries), self.faults)),
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
    pub(crate) fn named<T: Copy>(
        self,
        what: &str,
        choices: &[(&'static str, T)],
    ) -> Result<(T, Table<'a>), Fault> {
        match self.value {
            DeValue::String(_) => Ok((self.one_of(choices)?, Table::new(what, self.span, None, self.faults))),
            DeValue::Table(_) => {
                let mut table = self.table(what)?;
                Ok((table.need("kind", |item| item.one_of(choices))?, table))
            }
            _ => Err(self.expected("a name, or a table with its `kind`")),
        }
    }
}
