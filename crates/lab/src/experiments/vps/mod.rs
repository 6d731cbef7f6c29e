//! VPS: weights among flows of one sender that together take no more than plain flows would. Its experiments
//! are folders; here are their real runs.

mod measure;
mod real;

use crate::real::Real;

/// Figure 3 over HTTP/3.
pub(super) fn real_figure_3() -> Real {
    real::figure_3()
}
