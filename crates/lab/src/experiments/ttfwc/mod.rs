//! TTFWC: a window that is smooth or fast, as a parameter says, and friendly to TCP.

mod beside_tcp;
mod buffer;
mod friendliness;
mod network;
mod real;
mod responsiveness;
mod round_trips;
mod smoothness;

use crate::experiment::Experiment;
use crate::real::Real;
use crate::scheme::Scheme;

/// Every experiment of the thesis but the times in the kernel, by figure, and ours on the mean interval and
/// on the player's buffer.
pub(super) fn experiments() -> Vec<Experiment> {
    let mut all = responsiveness::experiments();
    all.extend(friendliness::experiments());
    all.extend(smoothness::experiments());
    all.extend(round_trips::experiments());
    all.extend(beside_tcp::experiments());
    all.push(buffer::experiment());
    all
}

/// Figures 5.16 to 5.18 in the kernel, by the figure's parameter.
pub(super) fn real(scheme: Scheme) -> Real {
    real::beside_reno(scheme)
}
