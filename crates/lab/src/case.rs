//! Which run of an experiment, and what it gave.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::scheme::Scheme;

/// Which run of an experiment, the seed apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// A further parameter, such as `10 Mbps`; empty when there is none.
    pub setting: String,
    /// The scheme.
    pub scheme: Scheme,
    /// The value of the parameter that the figure's horizontal axis shows; zero when there is none.
    pub point: f64,
}

impl Case {
    /// The only setting of a scheme.
    pub fn new(scheme: Scheme, point: f64) -> Self {
        Self { setting: String::new(), scheme, point }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.setting.is_empty() {
            write!(f, "{}, ", self.setting)?;
        }
        write!(f, "{} at {}", self.scheme.name, self.point)
    }
}

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Numbers with their names and units, each name once.
    pub figures: Vec<(String, f64, String)>,
    /// Courses over time or another quantity, each name once.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Measured {
    /// Adds a number. One that is not finite is no measurement: it is left out, and what relies on it says
    /// so.
    #[must_use]
    pub fn figure(mut self, name: &str, value: f64, unit: &str) -> Self {
        if value.is_finite() {
            self.figures.push((name.to_owned(), value, unit.to_owned()));
        }
        self
    }

    /// Adds a course, without its points that are not finite.
    #[must_use]
    pub fn series(mut self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        self.series.push((name.to_owned(), points));
        self
    }
}
