//! Which results are meant.

use std::collections::BTreeMap;

use anabranch_sim::scenario::{Fault, Item};

use super::raw::Row;
use crate::plan::names::text;

/// Results that have these texts; all where there are none.
#[derive(Debug, Default)]
pub(super) struct Selection(BTreeMap<String, String>);

impl Selection {
    pub(super) fn read(item: Item<'_>) -> Result<Self, Fault> {
        let own = item.table("a choice of results")?;
        own.entries()
            .map(|entry| Ok((entry.key.to_owned(), text(entry)?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a result is meant.
    pub(super) fn has(&self, row: &Row) -> bool {
        self.0.iter().all(|(name, text)| row.text(name).as_ref() == Some(text))
    }
}
