//! `anabranch serve`: a directory over HTTP/1.1 and HTTP/3, with ranges, conditional requests, TLS, limits, and striping
//! (`docs/protocol.md`).

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;

use http::HeaderValue;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

mod answer;
mod arrivals;
mod body;
mod bounded;
mod conditional;
mod connection;
mod files;
mod http3;
mod io_guard;
mod limits;
mod log;
mod metrics;
mod range;
mod reply;
mod shape;
mod stripe;
mod weights;

use crate::quic::Sharing;
use arrivals::{Arrival, Listeners};
pub use body::Piece;
pub use conditional::Validators;
pub use files::media_type;
pub use http3::Http3;
pub use log::AccessLog;
pub use metrics::Metrics;
pub use reply::{Reply, Representation, content_reply, precondition_reply};
pub use shape::Shape;
pub use stripe::{SIZE_HEADER, TOKEN_HEADER};
pub use weights::{Weights, WeightsError};

/// Rest after the system could not give us another connection (no file descriptors left, for example).
const ACCEPT_REST: Duration = Duration::from_millis(50);

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
    /// What every answer says of other ways to get the same (RFC 7838).
    pub alt_svc: Option<HeaderValue>,
    /// Most connections; a further one gets 503.
    pub max_connections: usize,
    /// Most connections of one IPv4 address or IPv6 /64; a further one gets 503.
    pub max_connections_per_client: usize,
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
            alt_svc: None,
            max_connections: 4096,
            max_connections_per_client: 256,
            max_header_bytes: 16 * 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            stop_grace: Duration::from_secs(10),
            access_log: None,
            shape: None,
        }
    }
}

/// A server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The root cannot be served.
    #[error("cannot serve {}: {source}", path.display())]
    Root {
        /// The configured root.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The root is something else than a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// There is no address to listen at.
    #[error("no address to listen at")]
    NoAddress,
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {}", reason(source))]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The access log cannot be opened.
    #[error("cannot open the access log: {0}")]
    Log(io::Error),
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there".into(),
        io::ErrorKind::PermissionDenied => "not permitted (ports below 1024 need a privilege)".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address".into(),
        _ => error.to_string(),
    }
}

/// What all connections of a server share.
pub(crate) struct Shared {
    config: Config,
    /// The canonical root.
    root: Arc<Path>,
    metrics: Arc<Metrics>,
    pool: Arc<body::Pool>,
    shaper: Option<Arc<shape::Shaper>>,
    log: Option<log::Log>,
    groups: Arc<stripe::Groups>,
    /// The group of all connections, where they have weights.
    sharing: Option<Arc<Sharing>>,
}

/// A connection that was let in, or is only told that there are too many.
pub(crate) struct Visit {
    client: IpAddr,
    permit: limits::Permit,
    /// True when the server ends.
    stop: watch::Receiver<bool>,
}

/// A server that listens already.
pub struct Server {
    listeners: Listeners,
    shared: Arc<Shared>,
    log_writer: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at every address, within a tokio runtime with I/O and time. Nothing is answered before [`Self::run`].
    ///
    /// # Errors
    /// See [`BindError`]; nothing is listened at then.
    pub fn bind(config: Config) -> Result<Self, BindError> {
        let root = config
            .root
            .canonicalize()
            .map_err(|source| BindError::Root { path: config.root.clone(), source })?;
        if !root.is_dir() {
            return Err(BindError::NotADirectory(config.root));
        }
        root.read_dir().map_err(|source| BindError::Root { path: config.root.clone(), source })?;
        if config.listen.is_empty() {
            return Err(BindError::NoAddress);
        }
        let listeners =
            Listeners::bind(&config).map_err(|(address, source)| BindError::Listen { address, source })?;
        let metrics = Arc::new(Metrics::default());
        let opened =
            config.access_log.as_ref().map(|target| log::Log::open(target, metrics.clone())).transpose();
        let (log, log_writer) = opened.map_err(BindError::Log)?.unzip();
        let rate = config.shape.and_then(|shape| shape.rate);
        let shared = Shared {
            root: root.into(),
            metrics,
            pool: Arc::default(),
            shaper: rate.map(|rate| Arc::new(shape::Shaper::new(rate))),
            log,
            groups: Arc::default(),
            sharing: config.http3.as_ref().and_then(Http3::sharing),
            config,
        };
        Ok(Self { listeners, shared: Arc::new(shared), log_writer })
    }

    /// Where the server listens, in the order of the configuration, with the real ports.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.local_addrs()
    }

    /// The first of [`Self::local_addrs`].
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let first = self.local_addrs()?.into_iter().next();
        first.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// The counters, which go on counting.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.shared.metrics.clone()
    }

    /// Serves until `shutdown` is ready. Then nothing new is accepted, running responses get the grace time, and what
    /// is left is cut off. Dropping the future cuts everything off at once.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { mut listeners, shared, log_writer } = self;
        let Config { max_connections, max_connections_per_client, .. } = shared.config;
        let limits = limits::Limits::new(max_connections, max_connections_per_client, shared.metrics.clone());
        let (stop, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut helpers = JoinSet::new();
        if let Some(sharing) = shared.sharing.clone() {
            helpers.spawn(async move { sharing.run().await });
        }
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = listeners.next() => match accepted {
                    Ok((arrival, peer)) => {
                        let client = peer.ip().to_canonical();
                        let Some(permit) = limits.admit(client) else { continue };
                        let visit = Visit { client, permit, stop: stopped.clone() };
                        match arrival {
                            Arrival::Tcp(socket) => {
                                connections.spawn(connection::serve(shared.clone(), socket, visit));
                            }
                            Arrival::Quic(incoming) => {
                                connections.spawn(http3::serve(shared.clone(), *incoming, visit));
                            }
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_REST).await;
                    }
                },
            }
        }
        listeners.refuse();
        let grace = shared.config.stop_grace;
        stop.send_replace(true);
        let ended = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!(connections = connections.len(), "cut off after the grace time");
        }
        connections.shutdown().await;
        listeners.close().await;
        // With the last clone of the log its writer ends, and every line is on disk.
        drop(shared);
        if let Some(writer) = log_writer {
            let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        }
    }
}
