//! A flow under TFRC: its connections, and how many it should have.

use anabranch_congestion::aggregate::{Aggregate, Scheme};
use anabranch_congestion::tfrc::Parameters;
use anabranch_units::Bytes;

use crate::model::FlowId;

/// A flow under TFRC.
#[derive(Debug)]
pub(crate) struct TfrcFlow {
    pub(in crate::network) flow: FlowId,
    pub(in crate::network) size: Bytes,
    pub(in crate::network) parameters: Parameters,
    pub(in crate::network) aggregate: Aggregate,
    pub(in crate::network) paths: (u32, u32),
    /// All connections that it ever had, by their places in the network.
    pub(in crate::network) connections: Vec<u32>,
    /// The first so many of them are open.
    pub(in crate::network) open: usize,
}

impl TfrcFlow {
    pub(crate) fn new(
        flow: FlowId,
        size: Bytes,
        parameters: Parameters,
        scheme: Scheme,
        paths: (u32, u32),
    ) -> Self {
        let aggregate = Aggregate::new(scheme);
        Self { flow, size, parameters, aggregate, paths, connections: Vec::new(), open: 0 }
    }
}
