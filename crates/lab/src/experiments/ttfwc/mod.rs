//! TTFWC: a window that is smooth or fast, as a parameter says, and friendly to TCP. Its experiments are
//! folders; here are their real runs.

mod real;

use crate::real::Real;
use crate::scheme::Scheme;

/// Figures 5.16 to 5.18 in the kernel, by the figure's parameter.
pub(super) fn real(scheme: Scheme) -> Real {
    real::beside_reno(scheme)
}
