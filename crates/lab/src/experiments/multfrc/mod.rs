//! MULTFRC: live streams over links that lose packets by themselves.

mod cellular;
mod control;
mod dumbbell;
mod dynamics;
mod fixed;
mod newcomers;
mod packets;
mod real;
mod steady;
mod table_iv;
mod table_v;
mod video;
mod wireless;

use congestion::aggregate::Scheme as Connections;
use congestion::multfrc::Parameters as Control;
use congestion::tfrc::{Filter, Parameters};

use super::describe;
use crate::experiment::Experiment;
use crate::real::Real;
use crate::scheme::{self, Scheme};

/// Every experiment of the paper, by figure and table.
pub(super) fn experiments() -> Vec<Experiment> {
    vec![
        fixed::figure_2(),
        cellular::table_i(),
        steady::figure_7i(),
        steady::figure_7ii(),
        dynamics::figure_8(),
        dynamics::figure_9(),
        cellular::table_ii(),
        steady::figure_10(),
        table_iv::table_iv(),
        newcomers::figure_12(),
        newcomers::figure_13(),
        table_v::table_v(),
        video::figure_17(),
        control::equation_10(),
    ]
}

/// Figure 7 (i) over QUIC.
pub(super) fn real_figure_7i() -> Real {
    real::figure_7i()
}

/// What the paper leaves open in all its simulations.
const ASSUMED: [&str; 2] = [
    "TFRC as RFC 5348 has it, packets of 1000 bytes on the wire; where ns-2's TFRC is looked at as well it is told",
    "a packet's mean round trip is that without a queue and the mean wait in the queue of the bottleneck",
];

/// How a scheme of the figures sends.
#[derive(Clone, Copy)]
struct Sending {
    look: Scheme,
    connections: Connections,
    tfrc: Parameters,
}

impl Sending {
    fn new(look: Scheme, connections: Connections) -> Self {
        Self { look, connections, tfrc: Parameters::RFC5348 }
    }

    fn multfrc(control: Control) -> Self {
        Self::new(scheme::MULTFRC, Connections::Several(control))
    }

    /// AIO-TFRC that looks at all virtual connections.
    fn aio_tfrc(control: Control) -> Self {
        Self::new(scheme::AIO_TFRC, Connections::AllInOne(control))
    }

    /// AIO-TFRC that looks at the first virtual connection.
    fn aio_tfrc_first(control: Control) -> Self {
        let tfrc = Parameters { filter: Filter::First, ..Parameters::RFC5348 };
        Self { tfrc, ..Self::new(scheme::AIO_TFRC_FIRST, Connections::AllInOne(control)) }
    }

    fn auto() -> Self {
        Self::new(scheme::AUTO, Connections::AUTO)
    }
}
