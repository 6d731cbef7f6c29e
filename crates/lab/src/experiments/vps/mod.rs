//! VPS: weights among flows of one sender that together take no more than plain flows would.

mod measure;
mod network;
mod real;
mod scales;
mod sweeps;

use crate::experiment::Experiment;
use crate::real::Real;

/// Every experiment of the paper, by figure.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![
        scales::figure_3(),
        scales::figure_4(),
        scales::figure_5(),
        sweeps::figure_6(),
        sweeps::figure_7(),
        sweeps::figure_9(),
    ]
}

/// Figure 3 over HTTP/3.
pub(super) fn real_figure_3() -> Real {
    real::figure_3()
}
