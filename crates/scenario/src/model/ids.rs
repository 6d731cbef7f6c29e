//! How the parts of a model refer to each other.

/// A node's place in [`Model::nodes`](super::Model::nodes).
pub type NodeId = usize;

/// A link's place in [`Model::links`](super::Model::links).
pub type LinkId = usize;

/// A flow's place in [`Model::flows`](super::Model::flows).
pub type FlowId = usize;
