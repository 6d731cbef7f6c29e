//! Published results that are no experiment of the lab, and what was found of them elsewhere.

use crate::experiment::Paper;
use crate::experiments;

/// A published result that the lab does not run.
pub(crate) struct Row {
    /// The name that an experiment would have.
    pub id: &'static str,
    /// The paper.
    pub paper: Paper,
    /// What it is.
    pub what: &'static str,
    /// What measures it, and the verdicts on its relations.
    pub found: &'static str,
}

const ROWS: [Row; 2] = [
    Row {
        id: "ttfwc-tab5.1",
        paper: Paper::Ttfwc,
        what: "CPU time of a call of congestion avoidance in the kernel",
        found: "bench/kernel_cost.py measures it in the kernel (docs/benchmarks.md has the figures and the causes). TTFWC below 2 us, well above Reno, hardly \
            dependent on its parameter: reproduces. As much as CUBIC: differs",
    },
    Row {
        id: "ttfwc-tab5.2",
        paper: Paper::Ttfwc,
        what: "CPU time of a call of loss recovery in the kernel",
        found: "bench/kernel_cost.py as well. Several times what Reno and CUBIC take: reproduces",
    },
];

/// Those of some papers that no experiment has.
pub(crate) fn rows(papers: &[Paper]) -> Vec<&'static Row> {
    let known = experiments::all();
    let missing = |row: &&Row| known.iter().all(|experiment| experiment.id != row.id);
    ROWS.iter().filter(|row| papers.contains(&row.paper)).filter(missing).collect()
}
