//! The algorithms as the chapter sets them.

use anabranch_film::multitcp::{AdvancedParameters, Parameters};
use anabranch_sim::model::Algorithm;
use anabranch_units::Bytes;

/// One connection with a window of 8 packets: 800 kbps at 80 ms.
pub(super) fn fixed() -> Algorithm {
    Algorithm::Fixed { connections: 1, window: Some(Bytes::new(8000)) }
}

pub(super) fn basic(parameters: Parameters, connections: u32) -> Algorithm {
    Algorithm::Basic(Parameters { connections, ..parameters })
}

pub(super) fn advanced() -> Algorithm {
    Algorithm::Advanced(AdvancedParameters::TABLE_8_3)
}
