//! What real runs need besides their drivers: scenarios of the testbed and scripts, which are files beside
//! the plans in `papers/`.

use std::path::Path;

use toml::{Table, Value};

use super::error::TestbedError;
use crate::papers::Papers;
use crate::sweep::set;

/// Files of a folder by their names, for [`Trial::files`](super::Trial::files).
///
/// # Errors
/// There is none of such a name.
pub(crate) fn files(
    folder: &str,
    names: &[&'static str],
) -> Result<Vec<(&'static str, String)>, TestbedError> {
    names.iter().map(|name| Ok((*name, read(&format!("{folder}/{name}"))?))).collect()
}

/// A scenario of the testbed with what a run changes in it: keys as plans write them (`link.main.loss`), and
/// their values.
///
/// # Errors
/// There is none at this path below `papers/`, or it has nothing of such a name.
pub(crate) fn scenario<'a>(
    path: &str,
    changes: impl IntoIterator<Item = (&'a str, Value)>,
) -> Result<String, TestbedError> {
    let mut document: Table = read(path)?.parse().map_err(|error| wrong(path, &error))?;
    for (key, value) in changes {
        set(&mut document, key, value).map_err(|error| wrong(path, &error))?;
    }
    Ok(document.to_string())
}

/// The seed of a run as a scenario's value.
pub(crate) fn seed(seed: u64) -> Value {
    Value::Integer(seed.cast_signed())
}

fn read(path: &str) -> Result<String, TestbedError> {
    Papers::BuiltIn.read(Path::new(path)).map_err(|error| wrong(path, &error))
}

fn wrong(path: &str, error: &dyn ToString) -> TestbedError {
    TestbedError::Scenario { file: format!("papers/{path}"), error: error.to_string() }
}
