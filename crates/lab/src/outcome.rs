//! What an experiment came to: a verdict for every relation, and its tables filled in.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;
use crate::experiment::{Cause, Experiment, Relation};
use crate::paper::Paper;
use crate::real::Real;
use crate::results::Results;
use crate::statistics::Estimate;

/// What stands for a published value begins so where we compare a scheme of ours.
const OURS: &str = "ours";

/// An experiment's outcome, as it is kept beside its plots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment's id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// The paper.
    pub paper: Paper,
    /// Where in the paper.
    pub place: String,
    /// What the paper reports.
    pub claim: String,
    /// What we assumed.
    pub assumed: Vec<String>,
    /// How many seeds it ran with.
    pub seeds: usize,
    /// What makes it again.
    pub command: String,
    /// The version of this program.
    pub version: String,
    /// The verdicts, one for each relation.
    pub verdicts: Vec<Judgement>,
    /// Names and titles of its plots.
    pub plots: Vec<(String, String)>,
    /// Its tables.
    pub tables: Vec<FilledTable>,
    /// What real programs gave, if they ran.
    #[serde(default)]
    pub measured: Option<Comparison>,
}

/// Whether the paper's statement holds in our runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Reproduces,
    /// It does not.
    Differs,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduces => "reproduces",
            Self::Differs => "differs",
        })
    }
}

/// A relation with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The relation's name within the experiment.
    pub relation: String,
    /// What is looked at.
    pub claim: String,
    /// What the paper has.
    pub published: String,
    /// Unit of what was measured.
    pub unit: String,
    /// Where the mean had to lie.
    pub expected: String,
    /// What was measured; `None` when no seed gave a value.
    pub measured: Option<Estimate>,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it differs by less than its interval, so that more seeds may have it either way.
    #[serde(default)]
    pub is_level: bool,
    /// Why it differs, as far as that is known.
    pub cause: Option<String>,
    /// The settings among those that show the cause in which it does reproduce.
    #[serde(default)]
    pub reproduces_in: Vec<String>,
}

/// A table with its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilledTable {
    /// Its name within the experiment.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The heads of the columns.
    pub columns: Vec<String>,
    /// The rows: a label and the cells.
    pub rows: Vec<(String, Vec<FilledCell>)>,
}

/// A cell with its value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilledCell {
    /// What the paper has there.
    pub published: Option<f64>,
    /// What we have.
    pub measured: Option<Estimate>,
}

impl Outcome {
    /// Judges an experiment by its results.
    pub fn of(experiment: &Experiment, results: &Results) -> Self {
        let seeds = results.seeds().count();
        let command = if experiment.random {
            format!("anabranch lab run {} --seeds {seeds}", experiment.id)
        } else {
            format!("anabranch lab run {}", experiment.id)
        };
        let fill = |table: &crate::experiment::Table| FilledTable {
            id: table.id.clone(),
            title: table.title.clone(),
            columns: table.columns.clone(),
            rows: (table.rows.iter())
                .map(|row| {
                    let cells = row.cells.iter().map(|cell| FilledCell {
                        published: cell.published,
                        measured: results.estimate(&cell.value).0,
                    });
                    (row.label.clone(), cells.collect())
                })
                .collect(),
        };
        Self {
            id: experiment.id.clone(),
            title: experiment.title.clone(),
            paper: experiment.paper.clone(),
            place: experiment.place.clone(),
            claim: experiment.claim.clone(),
            assumed: experiment.assumed.clone(),
            seeds,
            command,
            version: env!("CARGO_PKG_VERSION").into(),
            verdicts: experiment.relations.iter().map(|relation| judge(relation, results)).collect(),
            plots: experiment.plots.iter().map(|plot| (plot.id.clone(), plot.title.clone())).collect(),
            tables: experiment.tables.iter().map(fill).collect(),
            measured: None,
        }
    }

    /// Adds what real programs gave, and the verdicts on what only they can show.
    #[must_use]
    pub(crate) fn with_real(
        mut self,
        experiment: &Experiment,
        real: &Real,
        simulated: &Results,
        measured: &Results,
    ) -> Self {
        self.verdicts.extend(experiment.real_relations.iter().map(|relation| judge(relation, measured)));
        self.measured = Some(Comparison::of(experiment, real, simulated, measured));
        self
    }

    /// The relations that compare a scheme of ours with the paper's.
    pub fn ours(&self) -> impl Iterator<Item = &Judgement> {
        self.verdicts.iter().filter(|judgement| judgement.is_ours())
    }

    /// How many relations have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|judgement| judgement.verdict == verdict).count()
    }
}

impl Judgement {
    /// Whether it compares a scheme of ours with the paper's: no paper has said it.
    pub fn is_ours(&self) -> bool {
        self.published.starts_with(OURS)
    }

    /// The relation in a line: its name, what is looked at, in which unit.
    pub fn in_words(&self) -> String {
        let extra = if self.unit.is_empty() { String::new() } else { format!(" ({})", self.unit) };
        format!("{}: {}{extra}", self.relation, self.claim)
    }
}

/// A relation reproduces when every seed has its number and their mean lies where it must.
fn judge(relation: &Relation, results: &Results) -> Judgement {
    let (mut measured, missing) = results.estimate(&relation.value);
    if relation.is_of_all_seeds {
        // It has no interval: there is one such number.
        measured = measured.and_then(|estimate| Estimate::of(&[estimate.mean]));
    }
    let holds = measured.is_some_and(|estimate| relation.expected.holds(estimate.mean));
    let verdict = if holds && missing.is_empty() { Verdict::Reproduces } else { Verdict::Differs };
    let mut causes = Vec::new();
    if !missing.is_empty() {
        let seeds: Vec<String> = missing.iter().map(u64::to_string).collect();
        causes.push(format!("not measured with seed {}", seeds.join(", ")));
    }
    if verdict == Verdict::Differs {
        causes.extend(relation.cause.as_ref().map(|cause| told(cause, relation, results)));
    }
    Judgement {
        relation: relation.id.clone(),
        claim: relation.claim.clone(),
        published: relation.published.clone(),
        unit: relation.unit.clone(),
        expected: relation.expected.to_string(),
        measured,
        verdict,
        is_level: verdict == Verdict::Differs
            && missing.is_empty()
            && measured
                .and_then(|estimate| estimate.interval())
                .is_some_and(|ends| ends.into_iter().any(|end| relation.expected.holds(end))),
        cause: (!causes.is_empty()).then(|| causes.join("; ")),
        reproduces_in: match (verdict, &relation.cause) {
            (Verdict::Differs, Some(cause)) => {
                let reproduces = |setting: &&String| reproduces_in(setting, relation, results);
                cause.shown_by.iter().filter(reproduces).cloned().collect()
            }
            _ => Vec::new(),
        },
    }
}

/// Whether a relation reproduces with another setting in the place of its own.
fn reproduces_in(setting: &str, relation: &Relation, results: &Results) -> bool {
    let (shown, missing) = results.estimate(|seed| (relation.value)(seed.setting(setting)));
    missing.is_empty() && shown.is_some_and(|shown| relation.expected.holds(shown.mean))
}

/// A cause with the relation's number in each of the settings that show it.
fn told(cause: &Cause, relation: &Relation, results: &Results) -> String {
    let shown = cause.shown_by.iter().map(|setting| {
        let (shown, _) = results.estimate(|seed| (relation.value)(seed.setting(setting)));
        let shown = shown.map_or_else(|| "not measured".into(), |shown| format!("{shown} {}", relation.unit));
        let verdict = if reproduces_in(setting, relation, results) { ", reproduces" } else { "" };
        format!("{setting}: {}{verdict}", shown.trim_end())
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { cause.says.clone() } else { format!("{} ({})", cause.says, shown.join("; ")) }
}
