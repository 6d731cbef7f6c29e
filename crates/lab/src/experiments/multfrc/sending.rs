//! How the schemes of the figures send, and what the paper leaves open in all of its simulations.

use anabranch_congestion::aggregate::Scheme as Connections;
use anabranch_congestion::multfrc::Parameters as Control;
use anabranch_congestion::tfrc::Parameters;

use crate::scheme::{self, Scheme};

/// What the paper leaves open in all its simulations.
pub(super) const ASSUMED: [&str; 2] = [
    "TFRC as RFC 5348 has it, packets of 1000 bytes on the wire; where ns-2's TFRC is looked at as well it is told",
    "a packet's mean round trip is that without a queue and the mean wait in the queue of the bottleneck",
];

/// How a scheme of the figures sends.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    pub(super) look: Scheme,
    pub(super) connections: Connections,
    pub(super) tfrc: Parameters,
}

impl Sending {
    pub(super) fn new(look: Scheme, connections: Connections) -> Self {
        Self { look, connections, tfrc: Parameters::RFC5348 }
    }

    pub(super) fn multfrc(control: Control) -> Self {
        Self::new(scheme::MULTFRC, Connections::Several(control))
    }

    pub(super) fn auto() -> Self {
        Self::new(scheme::AUTO, Connections::AUTO)
    }
}
