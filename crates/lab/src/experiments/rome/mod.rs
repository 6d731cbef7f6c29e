//! TCP-ROME: one stream over paths from several servers. Its experiments are folders; here are their real
//! runs.

mod real;

use crate::real::Real;

/// Figure 8 with real programs.
pub(super) fn real_figure_8() -> Real {
    real::figure_8()
}
