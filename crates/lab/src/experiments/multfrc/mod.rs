//! MULTFRC: live streams over links that lose packets by themselves. Its experiments are folders; here are
//! their real runs.

mod real;

use crate::real::Real;

/// Figure 7 (i) over QUIC.
pub(super) fn real_figure_7i() -> Real {
    real::figure_7i()
}
