//! Raw results: a line of JSON each, with texts and numbers by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::CampaignError;
use crate::path_error::PathError;

/// A campaign has no more results.
const MOST_ROWS: usize = 100_000;
/// No line is longer, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// A raw result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Row(BTreeMap<String, Value>);

impl Row {
    /// A result from what a program says: what is in an object within it has the names of both,
    /// `outer_inner`; lists are left out.
    ///
    /// # Errors
    /// It is no object of JSON, and why not.
    pub fn parse(line: &str) -> Result<Self, String> {
        let object: Map<String, Value> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let mut row = Self::default();
        row.flatten("", object);
        Ok(row)
    }

    fn flatten(&mut self, before: &str, object: Map<String, Value>) {
        for (key, value) in object {
            let name = format!("{before}{key}");
            match value {
                Value::Object(inner) => self.flatten(&format!("{name}_"), inner),
                Value::Array(_) | Value::Null => {}
                value => _ = self.0.insert(name, value),
            }
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        }
    }

    /// A number; 1 for what is true, 0 for what is false.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.0.get(name)? {
            Value::Bool(is) => Some(f64::from(u8::from(*is))),
            value => value.as_f64(),
        }
    }

    /// Adds the numbers of another result to these, but for those of this name.
    pub(super) fn add(&mut self, other: &Self, but: &str) {
        for (name, value) in &mut self.0 {
            if name != but
                && let (Some(own), Some(others)) = (value.as_f64(), other.number(name))
            {
                *value = (own + others).into();
            }
        }
    }

    /// Adds a number or a text.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }
}

/// The results in a file.
///
/// # Errors
/// It cannot be read, or a line in it is no result.
pub fn read_rows(path: &Path) -> Result<Vec<Row>, CampaignError> {
    let file = File::open(path).map_err(PathError::reading(path))?;
    let mut reader = BufReader::new(file);
    let mut rows = Vec::new();
    let wrong = |line, error: String| CampaignError::Raw { path: path.into(), line, error };
    loop {
        let mut line = String::new();
        let count = reader.by_ref().take(LONGEST_LINE).read_line(&mut line);
        if count.map_err(PathError::reading(path))? == 0 {
            return Ok(rows);
        }
        if rows.len() == MOST_ROWS {
            return Err(wrong(rows.len() + 1, format!("there are more than {MOST_ROWS} results")));
        }
        rows.push(Row::parse(&line).map_err(|error| wrong(rows.len() + 1, error))?);
    }
}
