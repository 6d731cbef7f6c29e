//! `anabranch serve`: a directory over HTTP/1.1 and HTTP/3, with ranges, conditional requests, TLS, limits,
//! and striping (`docs/protocol.md`).
//!
//! What a connection of QUIC may send is decided in `anabranch-quic`, what a stripe looks like in
//! `anabranch-protocol`; the command line, its signals and its metrics are the program's.
//!
//! ```no_run
//! # async fn serve() -> std::io::Result<()> {
//! use anabranch_server::{Config, Server};
//!
//! let server = Server::bind(Config::new("films", ([127, 0, 0, 1], 8000).into())).map_err(std::io::Error::other)?;
//! println!("http://{}/", server.local_addr()?);
//! server.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

mod answer;
mod answering;
mod arrivals;
mod body;
mod bounded;
mod caps;
mod conditional;
mod config;
mod connection;
mod context;
mod descriptors;
mod door;
mod files;
mod http3;
mod inherited;
mod io_guard;
mod limits;
mod line;
mod log;
mod metrics;
mod passage;
mod pieces;
mod range;
mod reload;
mod reply;
mod shape;
mod shared;
mod simple;
mod source;
mod stripe;
mod tcp_sharing;
mod visit;
mod weights;

use anabranch_sockets::ListenError;
pub use arrivals::AcceptRest;
use arrivals::{Arrival, Listeners};
pub use conditional::Validators;
pub use config::{Config, Http3};
pub use descriptors::{connections_within, raise_descriptor_limit};
pub use door::{Busy, Door, DoorLimits, Guest};
pub use files::media_type;
pub use inherited::{Inherited, listen};
use limits::Limits;
pub use log::{AccessLog, Listener, Rotation};
pub use metrics::Metrics;
pub use pieces::{Content, Piece, Pieces};
pub use range::unconditional_range;
pub use reply::{Reply, Representation, content_reply, precondition_reply};
pub use shape::{Caps, Shape};
use shared::Shared;
pub use tcp_sharing::{SocketGroups, SocketMember, TcpSharing};
use visit::{Admission, Visit};
pub use weights::{Weights, WeightsError};

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
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The access log cannot be opened.
    #[error("cannot open the access log: {0}")]
    Log(io::Error),
}

/// A server that listens already.
pub struct Server {
    listeners: Listeners,
    shared: Arc<Shared>,
    log_writer: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at every address, within a tokio runtime with I/O and time. Nothing is answered before
    /// [`Self::run`].
    ///
    /// # Errors
    /// See [`BindError`]; nothing is listened at then.
    pub fn bind(config: Config) -> Result<Self, BindError> {
        Self::bind_with(config, &mut Inherited::default())
    }

    /// The same at sockets that were listened at before the program began, where there are such.
    ///
    /// # Errors
    /// See [`BindError`]; nothing more is listened at then.
    pub fn bind_with(config: Config, inherited: &mut Inherited) -> Result<Self, BindError> {
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
        let listeners = Listeners::bind(&config, inherited)?;
        let metrics = Arc::new(Metrics::default());
        let targets = log::Targets {
            log: config.access_log.clone(),
            listener: config.listener.clone(),
            rotation: config.log_rotation.clone(),
        };
        let (log, log_writer) = log::Log::open(targets, metrics.clone()).map_err(BindError::Log)?.unzip();
        let rate = config.shape.and_then(|shape| shape.rate);
        let shaper = rate.map(|rate| Arc::new(shape::Shaper::new(rate)));
        let shared = Shared {
            root: root.into(),
            limits: Limits::new(config.max_connections, config.max_connections_per_client, metrics.clone()),
            metrics,
            pool: Arc::default(),
            links: caps::Links::new(config.caps, shaper.clone()),
            shaper,
            log,
            groups: Arc::default(),
            reloads: reload::Reloads::default(),
            pools: config.http3.as_ref().map(Http3::pools),
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

    /// The sockets that are listened at, for another run of the program: it serves whoever comes when this
    /// one does not any more. None of HTTP/3, whose connections all come over one socket.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        self.listeners.sockets()
    }

    /// The counters, which go on counting.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.shared.metrics.clone()
    }

    /// Serves until `shutdown` is ready. Then nothing new is accepted, running responses get the grace time,
    /// and what is left is cut off. Dropping the future cuts everything off at once.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let grace = self.shared.config.stop_grace;
        let shutdown = async {
            shutdown.await;
            Some(grace)
        };
        self.run_until(shutdown).await;
    }

    /// The same with the grace time that `shutdown` brings; `None`: running responses go on to their ends.
    pub async fn run_until(self, shutdown: impl Future<Output = Option<Duration>>) {
        let Self { mut listeners, shared, log_writer } = self;
        let (stop, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        let mut rest = AcceptRest::default();
        let grace = loop {
            tokio::select! {
                grace = &mut shutdown => break grace,
                Some(_) = connections.join_next() => {}
                accepted = listeners.next() => match accepted {
                    Ok((mut arrival, peer)) => {
                        let client = peer.ip().to_canonical();
                        let Some(admission) = Admission::of(client, &mut arrival, &shared.limits) else { continue };
                        let visit = Visit { client, admission, stop: stopped.clone() };
                        match arrival {
                            Arrival::Tcp(socket) => {
                                connections.spawn(connection::serve(shared.clone(), socket, visit));
                            }
                            Arrival::Quic(incoming, _) => {
                                connections.spawn(http3::serve(shared.clone(), *incoming, visit));
                            }
                        }
                    }
                    Err(error) => rest.after(&error).await,
                },
            }
        };
        listeners.refuse();
        stop.send_replace(true);
        let ending = async { while connections.join_next().await.is_some() {} };
        let is_over = match grace {
            Some(grace) => timeout(grace, ending).await.is_ok(),
            None => {
                ending.await;
                true
            }
        };
        if !is_over {
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
