//! VPS: weights among flows of one sender that together take no more than plain flows would.

mod measure;
mod more_flows;
mod network;
mod real;

use crate::experiment::Experiment;
use crate::real::Real;

/// Those that no folder describes yet.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![more_flows::figure_6()]
}

/// Figure 3 over HTTP/3.
pub(super) fn real_figure_3() -> Real {
    real::figure_3()
}
