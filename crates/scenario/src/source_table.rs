//! Where something was described, for what is found wrong with it later.

use std::fmt::Display;
use std::rc::Rc;

use crate::error::{Fault, Span};
use crate::table::{Item, Table};

/// The table of a document that describes something.
#[derive(Clone, Debug)]
pub struct SourceTable<'a> {
    /// Its heading, or all of it where it has none.
    pub span: Span,
    items: Rc<[Item<'a>]>,
}

impl<'a> SourceTable<'a> {
    pub(crate) fn of(table: &Table<'a>) -> Self {
        Self { span: table.span, items: table.entries().collect() }
    }

    /// The value at a key.
    pub fn item(&self, key: &str) -> Option<Item<'a>> {
        self.items.iter().find(|item| item.key == key).copied()
    }

    /// A fault at the value of a key, or at the table where nothing is said of it.
    pub fn fault(&self, key: &str, message: impl Display) -> Fault {
        Fault::new(self.item(key).map_or(self.span, |item| item.span), message)
    }

    /// What the table at a key says, and this one where that says nothing: a link's `reverse`.
    #[must_use]
    pub fn with(&self, key: &str) -> Self {
        let inner = self.item(key).and_then(|item| item.table(key).ok());
        let mut items: Vec<_> = inner.iter().flat_map(Table::entries).collect();
        items.extend(self.items.iter());
        Self { span: self.span, items: items.into() }
    }
}

/// Whether it is the same table.
impl PartialEq for SourceTable<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.span == other.span
    }
}
