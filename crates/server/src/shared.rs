//! What all connections of a server share.

use std::path::Path;
use std::sync::Arc;

use anabranch_quic::Pools;

use super::config::Config;
use super::limits::Limits;
use super::metrics::Metrics;
use super::reload::Reloads;
use super::stripe::Groups;
use super::{body, caps, log, shape};

/// What all connections of a server share.
pub(super) struct Shared {
    pub(super) config: Config,
    /// The canonical root.
    pub(super) root: Arc<Path>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) limits: Arc<Limits>,
    pub(super) pool: Arc<body::Pool>,
    /// What all stripe groups pass.
    pub(super) shaper: Option<Arc<shape::Shaper>>,
    /// What responses pass.
    pub(super) links: caps::Links,
    pub(super) log: Option<log::Log>,
    pub(super) groups: Arc<Groups>,
    /// The playlists that answers wait for.
    pub(super) reloads: Reloads,
    /// The pools of HTTP/3's clients.
    pub(super) pools: Option<Pools>,
}
