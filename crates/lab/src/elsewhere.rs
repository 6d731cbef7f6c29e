//! Published results that no experiment of the lab runs, and why.

use crate::experiment::Paper;
use crate::experiments;

/// A published result without a verdict.
pub(crate) struct Row {
    /// The name that an experiment would have.
    pub id: &'static str,
    /// The paper.
    pub paper: Paper,
    /// What it is.
    pub what: &'static str,
    /// Why there is no verdict.
    pub why: &'static str,
}

const ROWS: [Row; 2] = [
    Row {
        id: "ttfwc-tab5.1",
        paper: Paper::Ttfwc,
        what: "CPU time of a call of congestion avoidance in the kernel",
        why: "Nothing of it can be simulated: bench/kernel_cost.py measures it in the kernel (docs/benchmarks.md)",
    },
    Row {
        id: "ttfwc-tab5.2",
        paper: Paper::Ttfwc,
        what: "CPU time of a call of loss recovery in the kernel",
        why: "As for table 5.1",
    },
];

/// Those of some papers that no experiment has.
pub(crate) fn rows(papers: &[Paper]) -> Vec<&'static Row> {
    let known = experiments::all();
    let missing = |row: &&Row| known.iter().all(|experiment| experiment.id != row.id);
    ROWS.iter().filter(|row| papers.contains(&row.paper)).filter(missing).collect()
}
