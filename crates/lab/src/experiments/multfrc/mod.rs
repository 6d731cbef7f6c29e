//! MULTFRC: live streams over links that lose packets by themselves.

mod cellular;
mod packets;
mod real;
mod sending;
mod table_ii;
mod video;
mod wireless;

use super::describe;
use crate::experiment::Experiment;
use crate::real::Real;

/// Those that no folder describes yet, by figure and table.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![table_ii::table_ii(), video::figure_17()]
}

/// Figure 7 (i) over QUIC.
pub(super) fn real_figure_7i() -> Real {
    real::figure_7i()
}
