//! Published results that are no experiment of the lab, and what was found of them elsewhere.

/// A published result that the lab does not run.
pub(crate) struct Row {
    /// The name that an experiment would have.
    pub id: &'static str,
    /// The paper's name.
    pub paper: &'static str,
    /// What it is.
    pub what: &'static str,
    /// What measures it, and the verdicts on its relations.
    pub found: &'static str,
}

const ROWS: [Row; 2] = [
    Row {
        id: "ttfwc-tab5.1",
        paper: "TTFWC",
        what: "CPU time of a call of congestion avoidance in the kernel",
        found: "bench/kernel_cost.py measures it in the kernel (docs/benchmarks.md has the figures and the \
                causes). TTFWC below 2 us, well above Reno, hardly \
            dependent on its parameter: reproduces. As much as CUBIC: differs",
    },
    Row {
        id: "ttfwc-tab5.2",
        paper: "TTFWC",
        what: "CPU time of a call of loss recovery in the kernel",
        found: "bench/kernel_cost.py as well. Several times what Reno and CUBIC take: reproduces",
    },
];

/// Those of some papers.
pub(crate) fn rows(papers: &[&str]) -> Vec<&'static Row> {
    ROWS.iter().filter(|row| papers.contains(&row.paper)).collect()
}
