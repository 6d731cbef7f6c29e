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

/// Every experiment of the thesis but the times in the kernel, by figure, and ours on the mean interval and on the player's buffer.
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

/// What the thesis leaves open in its simulations.
const ASSUMED: [&str; 4] = [
    "packets of 1000 bytes and 40 of headers, an initial window of two, one acknowledgement a packet, as ns-2 has them; SACK as RFC 6675 has it",
    "weights of the loss intervals as RFC 5348 has them, and equation (3.1) with them; the mean interval is reckoned accurately",
    "a host for each flow; every packet leaves up to 1 ms late by chance, and flows begin within the first 5 s",
    "DropTail",
];
