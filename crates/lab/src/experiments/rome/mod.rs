//! Section IV of TCP-ROME: one stream over paths from several servers, and many of them in a random network.

mod many;
mod network;
mod random;
mod real;

use crate::experiment::Experiment;
use crate::real::Real;

/// Every experiment of the paper, by figure.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![many::figure_11(), many::figure_12(), many::figure_13()]
}

/// Figure 8 with real programs.
pub(super) fn real_figure_8() -> Real {
    real::figure_8()
}
