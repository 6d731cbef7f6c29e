//! Where a server listens, and who comes.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, VarInt, default_runtime};
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use super::Config;

/// Pending connections that the system keeps for a listener.
const BACKLOG: u32 = 1024;
/// Handshakes over QUIC that wait to be looked at.
const MOST_INCOMING: usize = 256;
/// With more connections than these, an address has to be proven before a handshake is taken up (RFC 9000, section 8.1.2).
const TRUSTED_CONNECTIONS: usize = 256;
/// How long clients have to hear that their connections are closed.
const FAREWELL: Duration = Duration::from_secs(1);
/// HTTP/3's "nothing is wrong" (RFC 9114, section 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// Somebody who wants a connection.
pub(super) enum Arrival {
    Tcp(TcpStream),
    Quic(Box<Incoming>),
}

/// Sockets that are listened at already.
pub(super) enum Listeners {
    Tcp(Vec<TcpListener>),
    Quic { endpoints: Vec<Endpoint>, incoming: mpsc::Receiver<Incoming>, acceptors: JoinSet<()> },
}

impl Listeners {
    /// Listens at an address each of the configuration, or tells which one it cannot listen at.
    pub(super) fn bind(config: &Config) -> Result<Self, (SocketAddr, io::Error)> {
        let Some(http3) = &config.http3 else {
            let listen_at = |&address: &SocketAddr| listen(address).map_err(|error| (address, error));
            return Ok(Self::Tcp(config.listen.iter().map(listen_at).collect::<Result<_, _>>()?));
        };
        let mut server = ServerConfig::with_crypto(http3.identity.clone());
        server.max_incoming(MOST_INCOMING);
        let open = |&address: &SocketAddr| endpoint(address, &server).map_err(|error| (address, error));
        let endpoints: Vec<_> = config.listen.iter().map(open).collect::<Result<_, _>>()?;
        let (sender, incoming) = mpsc::channel(1);
        let mut acceptors = JoinSet::new();
        for endpoint in endpoints.iter().cloned() {
            acceptors.spawn(accept_quic(endpoint, sender.clone()));
        }
        Ok(Self::Quic { endpoints, incoming, acceptors })
    }

    pub(super) fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        match self {
            Self::Tcp(listeners) => listeners.iter().map(TcpListener::local_addr).collect(),
            Self::Quic { endpoints, .. } => endpoints.iter().map(Endpoint::local_addr).collect(),
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
                let incoming = incoming.recv().await.ok_or(io::ErrorKind::NotConnected)?;
                let peer = incoming.remote_address();
                Ok((Arrival::Quic(Box::new(incoming)), peer))
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

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart need not wait until the last connections of the run before are forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
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

fn endpoint(address: SocketAddr, server: &ServerConfig) -> io::Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.bind(&address.into())?;
    let runtime = default_runtime().ok_or_else(|| io::Error::other("there is no runtime"))?;
    Endpoint::new(EndpointConfig::default(), Some(server.clone()), socket.into(), runtime)
}

async fn accept_quic(endpoint: Endpoint, arrivals: mpsc::Sender<Incoming>) {
    while let Some(incoming) = endpoint.accept().await {
        if endpoint.open_connections() > TRUSTED_CONNECTIONS
            && !incoming.remote_address_validated()
            && incoming.may_retry()
        {
            // It may: nothing can be wrong with it.
            let _ = incoming.retry();
            continue;
        }
        if arrivals.send(incoming).await.is_err() {
            return;
        }
    }
}
