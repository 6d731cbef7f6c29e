//! The table of a sweep, from the files of all its shares.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::SweepError;
use super::kept::{Head, Kept, Row, is_share};
use crate::files::csv;
use crate::path_error::PathError;
use crate::share::Share;

/// The table of the sweep whose shares are in `directory`, as CSV: a row for every run, with its point, its
/// seed, the value of every parameter, and every figure of its summary.
///
/// # Errors
/// A share is missing, is there twice, is not finished, or belongs to another sweep or program; or a file
/// cannot be read.
pub fn merge(directory: &Path) -> Result<Vec<u8>, SweepError> {
    let wrong = |what: String| SweepError::Shares { path: directory.into(), what };
    let mut found: BTreeMap<usize, (String, Kept)> = BTreeMap::new();
    let mut whole: Option<(String, Head)> = None;
    for name in names(directory)? {
        let Some(kept) = Kept::read(&directory.join(&name))? else {
            return Err(wrong(format!("{name} has nothing in it; run this share again")));
        };
        let (first, head) = whole.get_or_insert_with(|| (name.clone(), kept.head.whole()));
        if kept.head.of != head.of {
            return Err(wrong(format!(
                "{first} is of {} shares and {name} of {}; remove those that are not meant",
                head.of, kept.head.of
            )));
        }
        if kept.head.whole() != *head {
            return Err(wrong(format!(
                "{first} and {name} are not of the same sweep, or were made by different programs; run one \
                 of them again"
            )));
        }
        if let Some((other, _)) = found.get(&kept.head.share) {
            return Err(wrong(format!(
                "{other} and {name} are the same share, {}/{}",
                kept.head.share, kept.head.of
            )));
        }
        found.insert(kept.head.share, (name, kept));
    }
    let Some((_, head)) = whole else {
        return Err(wrong(
            "there are no shares; 'anabranch lab sweep SPEC.toml --out DIR' makes them".into(),
        ));
    };
    for share in (1..=head.of).filter_map(|number| Share::new(number, head.of)) {
        let expected = share.count(head.runs);
        match found.get(&share.number()) {
            None => return Err(wrong(format!("share {share} is missing; run it with --shard {share}"))),
            Some((name, kept)) if kept.rows.len() < expected => {
                let has = kept.rows.len();
                return Err(wrong(format!(
                    "{name} has {has} of its {expected} runs; run --shard {share} again"
                )));
            }
            Some(_) => {}
        }
    }
    let rows: BTreeMap<usize, Row> = found.into_values().flat_map(|(_, kept)| kept.rows).collect();
    Ok(table(&head, &rows))
}

fn names(directory: &Path) -> Result<Vec<String>, SweepError> {
    let failed = PathError::reading(directory);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(&failed)? {
        names.push(entry.map_err(&failed)?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| is_share(name));
    names.sort();
    Ok(names)
}

fn table(head: &Head, rows: &BTreeMap<usize, Row>) -> Vec<u8> {
    // In the order in which the runs of the sweep first have them.
    let mut columns: Vec<&str> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in rows.values().flat_map(|row| &row.results) {
        places.entry(name).or_insert_with(|| {
            columns.push(name);
            columns.len() - 1
        });
    }
    let heads: Vec<&str> = ["point", "seed"]
        .into_iter()
        .chain(head.parameters.iter().map(|name| &**name))
        .chain(columns.iter().copied())
        .collect();
    let cells = |row: &Row| {
        let mut results = vec![String::new(); columns.len()];
        for (name, value) in &row.results {
            results[places[&**name]] = if *value == Value::Null { String::new() } else { value.to_string() };
        }
        let place = [row.run / head.seeds + 1, row.run % head.seeds + 1].map(|number| number.to_string());
        place.into_iter().chain(row.values.iter().cloned()).chain(results).collect()
    };
    csv(&heads, rows.values().map(cells))
}
