//! Where a server listens, and who comes.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;

use anabranch_quic::{Handshakes, Thrifty, Unproven};
use anabranch_sockets::ListenError;
use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, VarInt, default_runtime};
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep, timeout};

use super::config::Config;
use super::inherited::Inherited;

/// Handshakes over QUIC that wait to be looked at.
const MOST_INCOMING: usize = 256;
/// How long clients have to hear that their connections are closed.
const FAREWELL: Duration = Duration::from_secs(1);
/// HTTP/3's "nothing is wrong" (RFC 9114, section 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// Rest after the system could not give us another connection (no file descriptors left, for example).
const ACCEPT_REST: Duration = Duration::from_millis(50);
/// How often that is told at the most.
const ACCEPT_WARNING: Duration = Duration::from_secs(10);

/// What a listener does when it cannot accept.
#[derive(Debug, Default)]
pub struct AcceptRest {
    warned_at: Option<Instant>,
}

impl AcceptRest {
    /// Rests a moment, and says why if that was not said lately.
    pub async fn after(&mut self, error: &io::Error) {
        if self.warned_at.is_none_or(|at| at.elapsed() >= ACCEPT_WARNING) {
            self.warned_at = Some(Instant::now());
            tracing::warn!(%error, "cannot accept connections");
        }
        sleep(ACCEPT_REST).await;
    }
}

/// Somebody who wants a connection.
pub(super) enum Arrival {
    Tcp(TcpStream),
    /// And, where its address is not proven, what counts its handshake.
    Quic(Box<Incoming>, Option<Unproven>),
}

/// Sockets that are listened at already.
pub(super) enum Listeners {
    Tcp(Vec<TcpListener>),
    Quic {
        endpoints: Vec<Endpoint>,
        incoming: mpsc::Receiver<(Incoming, Option<Unproven>)>,
        acceptors: JoinSet<()>,
    },
}

impl Listeners {
    /// Listens at an address each of the configuration, or tells which one it cannot listen at.
    pub(super) fn bind(config: &Config, inherited: &mut Inherited) -> Result<Self, ListenError> {
        let Some(http3) = &config.http3 else {
            let listen_at = |&address: &SocketAddr| {
                inherited.listen(address).map_err(|error| ListenError::new(address, &error))
            };
            return Ok(Self::Tcp(config.listen.iter().map(listen_at).collect::<Result<_, _>>()?));
        };
        let mut server = ServerConfig::with_crypto(http3.identity.clone());
        server.max_incoming(MOST_INCOMING);
        let (sender, incoming) = mpsc::channel(1);
        let (mut endpoints, mut acceptors) = (Vec::new(), JoinSet::new());
        for address in &config.listen {
            let handshakes = Arc::new(Handshakes::default());
            let endpoint = endpoint(*address, &server, handshakes.clone())
                .map_err(|error| ListenError::new(*address, &error))?;
            endpoints.push(endpoint.clone());
            acceptors.spawn(accept_quic(endpoint, handshakes, sender.clone()));
        }
        Ok(Self::Quic { endpoints, incoming, acceptors })
    }

    pub(super) fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        match self {
            Self::Tcp(listeners) => listeners.iter().map(TcpListener::local_addr).collect(),
            Self::Quic { endpoints, .. } => endpoints.iter().map(Endpoint::local_addr).collect(),
        }
    }

    /// Those of TCP once more.
    pub(super) fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        match self {
            Self::Tcp(listeners) => {
                listeners.iter().map(|socket| socket.as_fd().try_clone_to_owned()).collect()
            }
            Self::Quic { .. } => Ok(Vec::new()),
        }
    }

    /// The next one, and where from. Cancel-safe.
    pub(super) async fn next(&mut self) -> io::Result<(Arrival, SocketAddr)> {
        match self {
            Self::Tcp(listeners) => {
                let (socket, peer) = accept_tcp(listeners).await?;
                Ok((Arrival::Tcp(socket), peer))
            }
            Self::Quic { incoming, .. } => {
                let (incoming, unproven) = incoming.recv().await.ok_or(io::ErrorKind::NotConnected)?;
                let peer = incoming.remote_address();
                Ok((Arrival::Quic(Box::new(incoming), unproven), peer))
            }
        }
    }

    /// Lets nobody in from now on.
    pub(super) fn refuse(&mut self) {
        match self {
            Self::Tcp(listeners) => listeners.clear(),
            Self::Quic { endpoints, acceptors, incoming } => {
                acceptors.abort_all();
                incoming.close();
                endpoints.iter().for_each(|endpoint| endpoint.set_server_config(None));
            }
        }
    }

    /// Closes what is left, and waits until clients can know it.
    pub(super) async fn close(self) {
        if let Self::Quic { endpoints, .. } = self {
            for endpoint in &endpoints {
                endpoint.close(NO_ERROR, b"the server ends");
            }
            for endpoint in endpoints {
                let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
            }
        }
    }
}

async fn accept_tcp(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    poll_fn(|cx| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    })
    .await
}

fn endpoint(address: SocketAddr, server: &ServerConfig, handshakes: Arc<Handshakes>) -> io::Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.bind(&address.into())?;
    let runtime = default_runtime().ok_or_else(|| io::Error::other("there is no runtime"))?;
    let socket = Arc::new(Thrifty { inner: runtime.wrap_udp_socket(socket.into())?, handshakes });
    Endpoint::new_with_abstract_socket(EndpointConfig::default(), Some(server.clone()), socket, runtime)
}

async fn accept_quic(
    endpoint: Endpoint,
    handshakes: Arc<Handshakes>,
    arrivals: mpsc::Sender<(Incoming, Option<Unproven>)>,
) {
    while let Some(incoming) = endpoint.accept().await {
        let mut unproven = None;
        let address = incoming.remote_address();
        if incoming.remote_address_validated() {
            handshakes.prove(address);
        } else {
            unproven = handshakes.begin(address);
            if unproven.is_none() {
                // Only one that was told to retry before may not be told so, and that has proven its address.
                let _ = incoming.retry();
                continue;
            }
        }
        if arrivals.send((incoming, unproven)).await.is_err() {
            return;
        }
    }
}
