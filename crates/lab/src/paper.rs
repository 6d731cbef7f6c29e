//! Where results come from: the papers, by the folders that have their experiments.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A paper, or another source of results.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Paper {
    /// Where it stands among the papers of a report.
    pub place: u64,
    /// Its name.
    pub name: String,
    /// Who wrote it, its title and its year.
    pub citation: String,
    /// Whether its experiments are our own, and publish nothing that could be reproduced.
    #[serde(default)]
    pub is_ours: bool,
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
