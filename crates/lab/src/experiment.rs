//! What an experiment is: set-up, relations, plots and tables, as data.

use std::fmt;

use anabranch_sim::model::Model;
use anabranch_sim::scenario;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Measured};
use crate::paper::Paper;
use crate::results::OneSeed;
use crate::scheme::Scheme;
use crate::simulate::Recording;

/// A published result and how it is made again.
pub struct Experiment {
    /// The name under which it runs, such as `multitcp-fig8.2`.
    pub id: String,
    /// What it is about, in a line.
    pub title: String,
    /// The paper.
    pub paper: Paper,
    /// Where in the paper.
    pub place: String,
    /// What the paper reports, in our words.
    pub claim: String,
    /// What the paper leaves open and we chose.
    pub assumed: Vec<String>,
    /// Whether a seed changes anything; an experiment without randomness runs once.
    pub random: bool,
    /// How many seeds it needs at least, so that its relations are decided by more than chance.
    pub least_seeds: u64,
    /// The runs of a seed.
    pub jobs: Jobs,
    /// What is checked.
    pub relations: Vec<Relation>,
    /// What no simulation has, and is checked where real programs ran.
    pub real_relations: Vec<Relation>,
    /// What is drawn.
    pub plots: Vec<Plot>,
    /// What is tabulated.
    pub tables: Vec<Table>,
}

/// Makes the runs of a seed.
pub struct Jobs {
    make: Box<MakeJobs>,
    /// For a look, runs at points up to here are enough.
    quick: f64,
}

/// What [`Jobs`] calls.
type MakeJobs = dyn Fn(u64) -> Result<Vec<Job>, scenario::Error> + Send + Sync;

impl Jobs {
    /// Runs that are made without fail.
    pub fn new(make: impl Fn(u64) -> Vec<Job> + Send + Sync + 'static) -> Self {
        Self::reading(move |seed| Ok(make(seed)))
    }

    /// Runs that are read from scenarios.
    pub fn reading(make: impl Fn(u64) -> Result<Vec<Job>, scenario::Error> + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), quick: f64::INFINITY }
    }

    /// The same where runs at points up to this one are enough for a look.
    #[must_use]
    pub fn with_quick(self, quick: f64) -> Self {
        Self { quick, ..self }
    }

    /// The runs of a seed that are enough for a look.
    ///
    /// # Errors
    /// With this seed a scenario is none.
    pub fn for_a_look(&self, seed: u64) -> Result<Vec<Job>, scenario::Error> {
        let mut jobs = self.of(seed)?;
        jobs.retain(|job| job.case.point <= self.quick);
        Ok(jobs)
    }

    /// The runs of a seed.
    ///
    /// # Errors
    /// With this seed a scenario is none.
    pub fn of(&self, seed: u64) -> Result<Vec<Job>, scenario::Error> {
        (self.make)(seed)
    }
}

/// Reads figures and series from the recordings of a run's models, in their order.
pub type Measure = Box<dyn Fn(&[Recording]) -> Measured + Send + Sync>;
/// A number from the results of one seed; `None` when they do not have it.
pub type Value = Box<dyn Fn(OneSeed<'_>) -> Option<f64> + Send + Sync>;

/// One run: what is simulated, and what is measured in it. It depends on nothing else.
pub struct Job {
    /// Which.
    pub case: Case,
    /// What is simulated, one after the other; none for a formula.
    pub models: Vec<Model>,
    /// Which of the controllers' decisions are recorded (see [`anabranch_sim::report::Decision::what`]).
    pub decisions: &'static [&'static str],
    /// What is measured.
    pub measure: Measure,
}

/// Something that the paper says, as a number that can be checked.
pub struct Relation {
    /// Its name within the experiment.
    pub id: String,
    /// What is looked at, in words.
    pub claim: String,
    /// What the paper has, with its unit.
    pub published: String,
    /// The unit of the number; empty for a ratio.
    pub unit: String,
    /// The number, of one seed.
    pub value: Value,
    /// Whether it is a number of all seeds together, which each of them gives.
    pub is_of_all_seeds: bool,
    /// Where the mean over the seeds must lie.
    pub expected: Expected,
    /// Why it differs, as far as a further run has shown it; told only when it does differ.
    pub cause: Option<Cause>,
}

/// Why a relation differs.
#[derive(Clone)]
pub struct Cause {
    /// The cause in words, without the figures of runs.
    pub says: String,
    /// The settings whose runs show it: the relation's number is told of each of them.
    pub shown_by: Vec<String>,
}

impl From<&str> for Cause {
    /// A cause that no run of the experiment shows.
    fn from(says: &str) -> Self {
        Self { says: says.into(), shown_by: Vec::new() }
    }
}

impl Relation {
    /// A relation without a cause; the texts are its name, what is looked at, what the
    /// paper has, and the unit.
    pub fn new(
        (id, claim, published, unit): (&str, &str, &str, &'static str),
        value: impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync + 'static,
        expected: Expected,
    ) -> Self {
        Self {
            id: id.into(),
            claim: claim.into(),
            published: published.into(),
            unit: unit.into(),
            value: Box::new(value),
            is_of_all_seeds: false,
            expected,
            cause: None,
        }
    }
}

/// Where a number must lie. Bounds of a range belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expected {
    /// From here to there.
    Between(f64, f64),
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// More than this.
    Above(f64),
    /// Less than this.
    Below(f64),
}

impl Expected {
    /// A range of so much (as a part of it) around a value.
    pub fn about(value: f64, tolerance: f64) -> Self {
        let margin = (value * tolerance).abs();
        Self::Between(value - margin, value + margin)
    }

    /// Whether a number lies there.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::Between(low, high) => (low..=high).contains(&value),
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::Above(bound) => value > bound,
            Self::Below(bound) => value < bound,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |value: f64| crate::statistics::significant(value, 4);
        match *self {
            Self::Between(low, high) => write!(f, "{} to {}", short(low), short(high)),
            Self::AtLeast(bound) => write!(f, "at least {}", short(bound)),
            Self::AtMost(bound) => write!(f, "at most {}", short(bound)),
            Self::Above(bound) => write!(f, "above {}", short(bound)),
            Self::Below(bound) => write!(f, "below {}", short(bound)),
        }
    }
}

/// A figure to be drawn.
pub struct Plot {
    /// Its name within the experiment: the names of its files.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, in the legend's order.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// In which unit; empty for a ratio or a count.
    pub unit: String,
    /// How it is divided.
    pub scale: Scale,
    /// Where it begins and ends at the least; it grows with what is drawn.
    pub shows: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis that shows what is drawn, and zero.
    pub fn new(label: &str, unit: &str) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear, shows: Some((0.0, 0.0)) }
    }
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten; what is not positive is not drawn.
    Logarithmic,
}

/// A curve of a plot.
pub struct Curve {
    /// Its name in the legend.
    pub label: String,
    /// The scheme whose colour, line and marker it has.
    pub look: Scheme,
    /// Its points.
    pub points: Points,
}

/// Where a curve's points come from.
pub enum Points {
    /// A figure of a scheme against the parameter: a line, markers, and error bars of the mean's 95 %
    /// confidence interval.
    Figure {
        /// The scheme.
        scheme: Scheme,
        /// The further parameter.
        setting: String,
        /// The figure's name.
        name: String,
    },
    /// A series of a case: the mean over the seeds, in a band of its 95 % confidence interval.
    Series {
        /// The scheme.
        scheme: Scheme,
        /// The further parameter.
        setting: String,
        /// The parameter's value.
        point: f64,
        /// The series' name.
        name: String,
    },
    /// The paper's own points, read off its figure: open markers.
    Published(Vec<(f64, f64)>),
    /// A formula: a thin dotted line.
    Formula(Vec<(f64, f64)>),
}

/// A table.
pub struct Table {
    /// Its name within the experiment: the name of its file.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The heads of the columns, that of the rows' labels first; with units.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
pub struct Row {
    /// Its label.
    pub label: String,
    /// A cell for every column but the first.
    pub cells: Vec<Cell>,
}

/// A cell of a table.
pub struct Cell {
    /// What the paper has there.
    pub published: Option<f64>,
    /// What we have.
    pub value: Value,
}
