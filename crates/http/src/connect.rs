//! Making a connection: look the host up, try its addresses against each other, agree on TLS.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anabranch_quic::{Arrivals, client_endpoint, client_transport, shown_to};
use anabranch_sockets::Interface;
use anabranch_sockets::tls::TlsClient;
use anabranch_units::{Bytes, Duration};
use quinn::Endpoint;
use rustls_pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use url::Host;

use super::error::ConnectError;
use super::pool::Pool;
use super::proxy::{Proxies, Proxy};
use super::socket::Socket;
use super::stream::Stream;
use super::target::Origin;
use crate::tcp::ControlledSocket;

/// How much of the film is usually asked for at first: enough for most containers to tell their rate.
pub const FIRST_BYTES: Bytes = Bytes::kib(64);

/// How long an address is tried alone before the next one is tried beside it (RFC 8305, 5).
const NEXT_ATTEMPT: Duration = Duration::from_millis(250);

/// Most addresses of a host that are tried.
const MOST_ADDRESSES: usize = 8;

/// How to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The interface to leave by; `None`: what the system chooses.
    pub interface: Option<Interface>,
    /// Size of the kernel's receive buffer, set before connecting. It also fixes the scale of the window for
    /// the connection's life and turns off the tuning that overwrites a clamp, so that it must hold the
    /// largest window ever wanted. `None`: the system tunes it.
    pub receive_buffer: Option<Bytes>,
    /// Speak HTTP/3, over QUIC, and nothing else.
    pub http3: bool,
    /// Through which proxies to go. None is used with HTTP/3, which they do not carry.
    pub proxies: Proxies,
    /// Whom to trust.
    pub tls: TlsClient,
    /// How long looking up, connecting and TLS may take together.
    pub connect_timeout: Duration,
    /// How long a probe waits for something to come.
    pub response_timeout: Duration,
    /// Where the film begins in what a URL leads to: a probe asks from there on.
    pub start: u64,
    /// How much of the film a probe asks for, at least one byte.
    pub first_bytes: Bytes,
    /// Where connections go on that are done with what they were asked for; `None`: they are closed.
    pub pool: Option<Pool>,
}

impl Default for ConnectOptions {
    /// The system's interface, buffers and roots; 10 s to connect, 30 s for a response, as browsers and curl
    /// roughly do.
    fn default() -> Self {
        Self {
            interface: None,
            receive_buffer: None,
            http3: false,
            proxies: Proxies::default(),
            tls: TlsClient::default(),
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(30),
            start: 0,
            first_bytes: FIRST_BYTES,
            pool: None,
        }
    }
}

impl ConnectOptions {
    /// The last byte that a probe asks for.
    pub(super) fn last_first_byte(&self) -> u64 {
        self.start.saturating_add(self.first_bytes.get().max(1) - 1)
    }
}

/// A stream to the origin or to the proxy that forwards to it, and how long TCP's handshake took.
pub(super) async fn connect(
    origin: &Origin,
    proxy: Option<&Proxy>,
    options: &ConnectOptions,
) -> Result<(Stream, Duration), ConnectError> {
    in_time(origin, options, connect_untimed(origin, proxy, options)).await
}

/// A connection of QUIC to the origin, and what comes over it.
pub(super) async fn connect_quic(
    origin: &Origin,
    options: &ConnectOptions,
) -> Result<(Endpoint, quinn::Connection, Arc<Arrivals>), ConnectError> {
    let host = origin.host().to_string();
    if !origin.is_secure() {
        return Err(ConnectError::NotSecure { host });
    }
    let tls = options.tls.http3().map_err(|error| ConnectError::from_tls(host, &error))?;
    let transport = Arc::new(client_transport());
    // As a certificate has it, without the brackets of a URL.
    let name = match origin.host() {
        Host::Domain(name) => name.clone(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let attempt = |address| {
        let (name, interface) = (name.clone(), options.interface.clone());
        let arrivals = Arc::<Arrivals>::default();
        let mut config = quinn::ClientConfig::new(shown_to(arrivals.clone(), tls.clone()));
        config.transport_config(transport.clone());
        async move {
            let endpoint = client_endpoint(address, interface.as_ref())?;
            let failed = |reason: String| ConnectError::Tls { host: name.clone(), reason };
            let connecting =
                endpoint.connect_with(config, address, &name).map_err(|error| failed(error.to_string()))?;
            let connection = connecting.await.map_err(|error| ConnectError::from_quic(&name, error))?;
            Ok((endpoint, connection, arrivals))
        }
    };
    in_time(origin, options, async {
        race(origin, alternate_families(addresses_of(origin).await?), attempt).await
    })
    .await
}

async fn in_time<T>(
    origin: &Origin,
    options: &ConnectOptions,
    connecting: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    tokio::time::timeout(options.connect_timeout.into(), connecting).await.unwrap_or_else(|_| {
        Err(ConnectError::Timeout { host: origin.host().to_string(), after: options.connect_timeout })
    })
}

async fn connect_untimed(
    origin: &Origin,
    proxy: Option<&Proxy>,
    options: &ConnectOptions,
) -> Result<(Stream, Duration), ConnectError> {
    let (mut tcp, rtt) = match proxy {
        None => connect_tcp(origin, options).await?,
        Some(proxy) => connect_tcp(&proxy.origin, options).await.map_err(|error| proxy.failed(error))?,
    };
    let socket = ControlledSocket::new(&tcp).map_err(ConnectError::Socket)?;
    if !origin.is_secure() {
        return Ok((Stream::plain(Socket::new(tcp), socket), rtt));
    }
    if let Some(proxy) = proxy {
        proxy.tunnel(&mut tcp, origin).await?;
    }
    let host = origin.host().to_string();
    let config = options.tls.config().map_err(|error| ConnectError::from_tls(host.clone(), &error))?;
    let tls = TlsConnector::from(config)
        .connect(server_name(origin)?, Socket::new(tcp))
        .await
        .map_err(|error| ConnectError::from_handshake(&host, &error))?;
    Ok((Stream::secure(tls, socket), rtt))
}

async fn connect_tcp(
    origin: &Origin,
    options: &ConnectOptions,
) -> Result<(TcpStream, Duration), ConnectError> {
    let addresses = alternate_families(addresses_of(origin).await?);
    let attempt = |address| {
        let (interface, receive_buffer) = (options.interface.clone(), options.receive_buffer);
        async move { attempt(address, interface.as_ref(), receive_buffer).await }
    };
    race(origin, addresses, attempt).await
}

fn server_name(origin: &Origin) -> Result<ServerName<'static>, ConnectError> {
    match origin.host() {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|error| ConnectError::UnknownHost { host: name.clone(), reason: error.to_string() }),
        Host::Ipv4(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Ipv6(address) => Ok(ServerName::IpAddress((*address).into())),
    }
}

async fn addresses_of(origin: &Origin) -> Result<Vec<SocketAddr>, ConnectError> {
    let port = origin.port();
    let name = match origin.host() {
        Host::Ipv4(address) => return Ok(vec![(*address, port).into()]),
        Host::Ipv6(address) => return Ok(vec![(*address, port).into()]),
        Host::Domain(name) => name,
    };
    let unknown = |reason: String| ConnectError::UnknownHost { host: name.clone(), reason };
    let found: Vec<_> =
        lookup_host((name.as_str(), port)).await.map_err(|error| unknown(error.to_string()))?.collect();
    if found.is_empty() { Err(unknown("it has no address".into())) } else { Ok(found) }
}

/// The resolver's order, but with the families taking turns (RFC 8305, 4).
fn alternate_families(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (mut preferred, mut other): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first_is_v4);
    let mut ordered = VecDeque::new();
    while ordered.len() < MOST_ADDRESSES && !(preferred.is_empty() && other.is_empty()) {
        ordered.extend(preferred.pop_front());
        ordered.extend(other.pop_front());
    }
    ordered
}

/// Tries the addresses one after the other, each with a head start; the first connection wins (RFC 8305, 5).
/// When all fail, the first failure is told: it is that of the preferred address.
async fn race<T, A>(
    origin: &Origin,
    mut addresses: VecDeque<SocketAddr>,
    attempt: impl Fn(SocketAddr) -> A,
) -> Result<T, ConnectError>
where
    T: Send + 'static,
    A: Future<Output = Result<T, ConnectError>> + Send + 'static,
{
    let mut attempts = JoinSet::new();
    let mut first_failure = None;
    loop {
        if let Some(address) = addresses.pop_front() {
            attempts.spawn(attempt(address));
        }
        let finished = if addresses.is_empty() {
            attempts.join_next().await
        } else {
            match tokio::time::timeout(NEXT_ATTEMPT.into(), attempts.join_next()).await {
                Ok(finished) => finished,
                Err(_) => continue,
            }
        };
        match finished {
            Some(Ok(Ok(connected))) => return Ok(connected),
            Some(Ok(Err(failure))) => {
                first_failure.get_or_insert(failure);
            }
            Some(Err(panic)) => {
                first_failure.get_or_insert(ConnectError::Socket(io::Error::other(panic)));
            }
            None => {
                return Err(first_failure.unwrap_or_else(|| ConnectError::UnknownHost {
                    host: origin.host().to_string(),
                    reason: "it has no address".into(),
                }));
            }
        }
    }
}

async fn attempt(
    address: SocketAddr,
    interface: Option<&Interface>,
    receive_buffer: Option<Bytes>,
) -> Result<(TcpStream, Duration), ConnectError> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }
        .map_err(ConnectError::Socket)?;
    if let Some(size) = receive_buffer {
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX).min(i32::MAX as u32);
        socket.set_recv_buffer_size(size).map_err(ConnectError::Socket)?;
    }
    if let Some(interface) = interface {
        interface.bind(&socket2::SockRef::from(&socket), address)?;
    }
    socket.set_nodelay(true).map_err(ConnectError::Socket)?;
    let start = Instant::now();
    let stream = socket.connect(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::ConnectionRefused => ConnectError::Refused { address },
        _ => ConnectError::Unreachable { address, source },
    })?;
    Ok((stream, start.elapsed().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let v4 = |last| SocketAddr::from(([10, 0, 0, last], 80));
        let v6 = |last| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, last], 80));
        assert_eq!(
            alternate_families(vec![v6(1), v6(2), v6(3), v4(1), v4(2)]),
            [v6(1), v4(1), v6(2), v4(2), v6(3)]
        );
        assert_eq!(alternate_families(vec![v4(1), v6(1)]), [v4(1), v6(1)]);
        assert_eq!(alternate_families((0..100).map(v4).collect()).len(), MOST_ADDRESSES);
    }
}
