//! MULTFRC: live streams over links that lose packets by themselves.

mod cellular;
mod control;
mod dumbbell;
mod dynamics;
mod newcomers;
mod packets;
mod real;
mod sending;
mod steady;
mod table_iv;
mod table_v;
mod video;
mod wireless;

use super::describe;
use crate::experiment::Experiment;
use crate::real::Real;

/// Every experiment of the paper, by figure and table.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![
        cellular::table_i(),
        dynamics::figure_8(),
        dynamics::figure_9(),
        cellular::table_ii(),
        steady::figure_10(),
        table_iv::table_iv(),
        newcomers::figure_12(),
        newcomers::figure_13(),
        table_v::table_v(),
        video::figure_17(),
        control::equation_10(),
    ]
}

/// Figure 7 (i) over QUIC.
pub(super) fn real_figure_7i() -> Real {
    real::figure_7i()
}
