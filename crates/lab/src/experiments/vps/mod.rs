//! VPS: weights among flows of one sender that together take no more than plain flows would.

mod dilution;
mod measure;
mod network;
mod real;
mod scales;
mod sweeps;

use crate::experiment::Experiment;
use crate::real::Real;

/// Every experiment of the paper, by figure.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![
        scales::figure_3(),
        scales::figure_4(),
        scales::figure_5(),
        sweeps::figure_6(),
        sweeps::figure_7(),
        sweeps::figure_9(),
        dilution::dilution(),
    ]
}

/// Figure 3 over HTTP/3.
pub(super) fn real_figure_3() -> Real {
    real::figure_3()
}

/// What the paper leaves open, or what was done otherwise, in all its simulations.
const ASSUMED: [&str; 7] = [
    "the bottleneck's queue holds a bandwidth-delay product: 67 packets for each 4 Mbps",
    "packets of 1000 bytes and 40 of headers, an initial window of two, one acknowledgement a packet, as ns-2 has them; SACK as RFC 6675 has it",
    "the weighted flows come from one host, the plain ones from another, to a host each",
    "every packet leaves up to 1 ms late by chance, and flows begin within the first 5 s: without it the phases of the queue decide who is dropped",
    "the background is on and off for 500 ms each on average, at 160 N kbps while on",
    "MulTCP of a flow with weight w is MulTCP with N = w: a flow cannot count for less than one",
    "shorter than the paper's hour: 600 s (figures 3 to 5) and 300 s (the others), of which the first 20 s do not count; the confidence intervals show what that costs",
];
