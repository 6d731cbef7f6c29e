//! The same figures from real programs: an experiment's runs again, in the testbed, with the kernel's TCP and
//! our own programs.
//!
//! What was measured stands beside what was simulated, in the same plots and in a table of its own. Verdicts
//! stay those of the simulation, but for those on what it does not have, such as the time of a call in the kernel.

mod beside;
mod calls;
mod error;
mod observed;
mod run;
mod testbed;

use anabranch_units::Duration;

use crate::case::{Case, Measured};

pub(crate) use beside::{files, scenario, seed};
pub use calls::Calls;
pub use error::TestbedError;
pub use observed::{Observed, Traffic};
pub use run::{RealOptions, run};
pub use testbed::Testbed;
pub(crate) use testbed::is_installed;

/// The real runs of an experiment.
pub struct Real {
    /// In what they differ from the simulated runs.
    pub differs: Vec<String>,
    /// The programs that they need besides the testbed's and ours.
    pub needs: &'static [&'static str],
    /// The runs of a seed.
    pub trials: Trials,
}

/// Makes the real runs of a seed.
pub type Trials = Box<dyn Fn(u64) -> Result<Vec<Trial>, TestbedError> + Send + Sync>;
/// Reads figures and series from what the testbed has written, under the names that the simulated run gives
/// them.
pub type Reading = Box<dyn Fn(&Observed) -> Result<Measured, String> + Send + Sync>;

/// One real run.
pub struct Trial {
    /// The simulated run that it stands beside.
    pub case: Case,
    /// The testbed's scenario; `{here}` stands for the directory of the run, `{anabranch}` for our program.
    pub scenario: String,
    /// Files that are put into that directory before.
    pub files: Vec<(&'static str, String)>,
    /// A congestion control that the kernel has while it runs: what `anabranch cc load` is told.
    pub kernel: Vec<String>,
    /// One of the files: BPF programs in C, congestion controls that the kernel has besides. The calls of all such
    /// programs are counted.
    pub programs: Option<&'static str>,
    /// How long it takes, about.
    pub duration: Duration,
    /// What is measured.
    pub reading: Reading,
}
