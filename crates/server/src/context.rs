//! What the requests of one connection share.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use hyper::upgrade::OnUpgrade;

use super::io_guard::Activity;
use super::log::Entry;
use super::passage::Passage;
use super::shared::Shared;
use super::stripe::Seat;
use super::tcp_sharing::{Counting, Sharer};

/// What the requests of one connection share.
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    pub(super) client: IpAddr,
    /// Whether there is room for this connection.
    pub(super) served: bool,
    /// What there is of HTTP/1.1 only.
    pub(super) http1: Option<Http1>,
}

/// What the requests of a connection of HTTP/1.1 share besides.
pub(super) struct Http1 {
    pub(super) activity: Arc<Activity>,
    /// How parts of files get to the socket without a copy, where nothing has to be done with their bytes.
    pub(super) passage: Option<Passage>,
    /// Where the connection shares by weights.
    pub(super) sharer: Option<Sharer>,
    /// A stripe group that this connection goes over to.
    pub(super) upgrade: Mutex<Option<Upgrade>>,
}

/// A promised change from HTTP to striping.
pub(super) struct Upgrade {
    pub(super) on_upgrade: OnUpgrade,
    pub(super) seat: Seat,
    pub(super) entry: Entry,
    pub(super) counting: Option<Counting>,
}
