//! What is served, and how.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_quic::Pools;
use http::HeaderValue;
use quinn::crypto::rustls::QuicServerConfig;
use tokio::sync::watch;
use tokio::time::Duration;

use super::log::{AccessLog, Listener, Rotation};
use super::shape::{Caps, Shape};
use super::tcp_sharing::TcpSharing;
use super::weights::Weights;

/// What to serve, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory that is served; nothing outside of it and no hidden file is.
    pub root: PathBuf,
    /// Where to listen; port 0 is any free port.
    pub listen: Vec<SocketAddr>,
    /// Speak TLS, with this certificate.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Speak HTTP/3 in place of HTTP/1.1: the addresses are UDP's then.
    pub http3: Option<Http3>,
    /// Which connections of HTTP over TCP share by weights; where it is left out each sends on its own.
    pub tcp_sharing: Option<Arc<TcpSharing>>,
    /// What every answer says of other ways to get the same (RFC 7838).
    pub alt_svc: Option<HeaderValue>,
    /// Most connections; a further one gets the place of one whose client keeps the server waiting, or 503.
    pub max_connections: usize,
    /// The same for one IPv4 address or IPv6 /64.
    pub max_connections_per_client: usize,
    /// The most that responses get; with any there is no striping.
    pub caps: Caps,
    /// Longest head of a request; a longer one gets 431.
    pub max_header_bytes: usize,
    /// Longest time for a head (and a TLS handshake) to arrive.
    pub header_timeout: Duration,
    /// Longest time between two requests of a connection, and for a stripe group that wants nothing.
    pub idle_timeout: Duration,
    /// Longest time without a byte taken by a client that has something to take.
    pub write_timeout: Duration,
    /// How long running responses go on after a stop.
    pub stop_grace: Duration,
    /// Where requests are logged.
    pub access_log: Option<AccessLog>,
    /// Has the access log's file opened again.
    pub log_rotation: Rotation,
    /// Who is told of every response.
    pub listener: Option<Listener>,
    /// Make the server slow.
    pub shape: Option<Shape>,
}

impl Config {
    /// Serves `root` at `listen`, with limits that suit a public server of films.
    pub fn new(root: impl Into<PathBuf>, listen: SocketAddr) -> Self {
        Self {
            root: root.into(),
            listen: vec![listen],
            tls: None,
            http3: None,
            tcp_sharing: None,
            alt_svc: None,
            max_connections: 4096,
            max_connections_per_client: 256,
            caps: Caps::default(),
            max_header_bytes: 16 * 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            stop_grace: Duration::from_secs(10),
            access_log: None,
            log_rotation: Rotation::default(),
            listener: None,
            shape: None,
        }
    }
}

/// What a server needs to speak HTTP/3.
#[derive(Clone)]
pub struct Http3 {
    /// Who it is.
    pub identity: Arc<QuicServerConfig>,
    /// What decides how fast it sends. Under a paced control every connection sends on its own, whatever pools
    /// there are.
    pub congestion: Algorithm,
    /// Which of its clients share a bottleneck, and what they count there; whoever is in no pool sends on its
    /// own. Other weights hold for running answers too, other pools for the connections that begin.
    pub weights: Option<watch::Receiver<Arc<Weights>>>,
}

impl Http3 {
    /// The pools of its clients.
    pub(super) fn pools(&self) -> Pools {
        Pools::new(self.congestion)
    }
}

impl fmt::Debug for Http3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3").field("congestion", &self.congestion).finish_non_exhaustive()
    }
}
