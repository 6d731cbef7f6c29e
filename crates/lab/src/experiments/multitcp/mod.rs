//! Chapter 8 of the MultiTCP thesis: one stream over several TCP connections, beside cross traffic.

mod algorithms;
mod emulated;
mod family;
mod measure;
mod network;
mod real;
mod simulated;

use crate::experiment::Experiment;
use crate::real::Real;

/// Every experiment of the chapter, by figure.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![
        simulated::figure_8_2(),
        simulated::figure_8_3(),
        emulated::figure_8_4(),
        emulated::figure_8_5(),
        emulated::figure_8_6(),
        simulated::figure_8_7(),
    ]
}

/// Figure 8.7 with real programs.
pub(super) fn real_figure_8_7() -> Real {
    real::figure_8_7()
}
