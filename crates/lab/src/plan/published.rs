//! `published.csv`: the paper's values, each with its place in the paper.

use std::path::Path;

use anabranch_sim::scenario::{Error, Fault};
use serde::Deserialize;

use crate::papers::Papers;

const FILE: &str = "published.csv";

/// A value of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// The name of what it is a value of: a relation's, or another one.
    pub(super) name: String,
    /// Where on the horizontal axis, if it is a point.
    pub(super) x: Option<f64>,
    /// The value, if it is a number.
    pub(super) value: Option<f64>,
    /// What the paper says, in its words; empty: the number.
    pub(super) told: String,
    /// Where in the paper.
    pub(super) place: String,
}

/// The paper's values.
#[derive(Clone, Debug, Default)]
pub(super) struct Published(Vec<Row>);

impl Published {
    /// What the paper says of a relation: its words, or the number.
    pub(super) fn told(&self, name: &str) -> Option<String> {
        let row = self.0.iter().find(|row| row.name == name)?;
        if row.told.is_empty() { row.value.map(|value| value.to_string()) } else { Some(row.told.clone()) }
    }

    /// The points of a curve.
    pub(super) fn points(&self, name: &str) -> Vec<(f64, f64)> {
        let own = self.0.iter().filter(|row| row.name == name);
        own.filter_map(|row| Some((row.x?, row.value?))).collect()
    }

    /// The value at a point.
    pub(super) fn at(&self, name: &str, x: f64) -> Option<f64> {
        self.points(name).into_iter().find(|(at, _)| *at == x).map(|(_, value)| value)
    }

    /// All names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|row| &*row.name)
    }
}

/// The values of an experiment; none where there is no file.
///
/// # Errors
/// The file cannot be read, or a line is wrong.
pub(super) fn load(papers: &Papers, folder: &Path) -> Result<Published, Error> {
    let path = folder.join(FILE);
    let name = papers.name(&path);
    match papers.read(&path) {
        Ok(text) => parse(&name, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Published::default()),
        Err(error) => Err(Error::Read { file: name, error }),
    }
}

fn parse(file: &str, text: &str) -> Result<Published, Error> {
    let mut rows = Vec::new();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    let told = |at: Option<&csv::Position>, message: &dyn std::fmt::Display| {
        let at = at.map_or(0, |position| usize::try_from(position.byte()).unwrap_or(0));
        fault(text, at, message)
    };
    let no_row = |error: csv::Error| {
        told(error.position(), &format_args!("this is no row: {error}")).locate(file, text)
    };
    let headers = reader.headers().map_err(no_row)?.clone();
    while reader.read_record(&mut record).map_err(no_row)? {
        let row: Row = record.deserialize(Some(&headers)).map_err(no_row)?;
        if row.place.is_empty() {
            let says = format_args!("'{}' does not say where in the paper it stands", row.name);
            let fault = told(record.position(), &says);
            return Err(fault.help("write the section, figure or table into `place`").locate(file, text));
        }
        rows.push(row);
    }
    Ok(Published(rows))
}

/// A fault in the line that begins at a byte.
fn fault(text: &str, at: usize, message: &dyn std::fmt::Display) -> Fault {
    let start = at.min(text.len());
    let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    Fault::new((start..end).into(), message).help("the columns are: name, x, value, told, place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_words_points_and_places() {
        let text = "name,x,value,told,place\nrate,,0.33,1/3,section 1\nloss,,0.04,,table II\n\
                    curve,1,2.5,,figure 3\ncurve,2,3.5,,figure 3\n";
        let published = parse("published.csv", text).unwrap();
        assert_eq!(published.told("rate").as_deref(), Some("1/3"));
        assert_eq!(published.told("loss").as_deref(), Some("0.04"));
        assert_eq!(published.told("other"), None);
        assert_eq!(published.points("curve"), [(1.0, 2.5), (2.0, 3.5)]);
        assert_eq!(published.at("curve", 2.0), Some(3.5));
    }

    #[test]
    fn a_wrong_line_is_told_with_its_place() {
        for (text, line, said) in [
            ("name,x,value,told,place\na,,1,,table I\nb,,one,,table I\n", 3, "this is no row"),
            ("name,x,value,told,place\na,,1,,\n", 2, "does not say where in the paper"),
            ("name,x,vlaue,told,place\na,,1,,t\n", 2, "the columns are: name, x, value, told, place"),
        ] {
            let error = parse("published.csv", text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("published.csv:{line}:")), "{error}");
            assert!(error.contains(said), "{error}");
        }
    }
}
