//! TTFWC: a window that is smooth or fast, as a parameter says, and friendly to TCP.

mod buffer;
mod friendliness;
mod network;
mod real;

use crate::experiment::Experiment;
use crate::real::Real;
use crate::scheme::Scheme;

/// Those that no folder describes yet: figures 5.6 to 5.8, and ours on the player's buffer.
pub(super) fn experiments() -> Vec<Experiment> {
    let mut all = friendliness::experiments();
    all.push(buffer::experiment());
    all
}

/// Figures 5.16 to 5.18 in the kernel, by the figure's parameter.
pub(super) fn real(scheme: Scheme) -> Real {
    real::beside_reno(scheme)
}
