//! Chapter 8 of the MultiTCP thesis: one stream over several TCP connections, beside cross traffic. Its
//! experiments are folders; here are their real runs.

mod real;

use crate::real::Real;

/// Figure 8.7 with real programs.
pub(super) fn real_figure_8_7() -> Real {
    real::figure_8_7()
}
