//! A way out of this machine, and its socket. An interface can come later than the program, go, and come
//! again with another address: a socket is bound to one that was there when it was made, so a new one takes
//! its place when nothing comes through it.
//!
//! A datagram that left before its path carried less cannot be cut any more by its sender. Once the system
//! knows of that (ICMP, or the interface's own size) it may carry such datagrams in fragments.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_quic::client_socket;
use anabranch_sockets::{Interface, SocketError};
use quinn::{Endpoint, EndpointConfig};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, ip_mtu, ipv6_mtu, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::Socket;

use super::super::socket::{Quiet, QuietSocket};
use super::events::SendError;

/// Bytes of the shortest headers.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;

/// An interface, or what the system chooses.
#[derive(Debug)]
pub(super) struct Uplink {
    to: SocketAddr,
    interface: Option<Interface>,
    endpoint: Mutex<Option<(Endpoint, Arc<QuietSocket>)>>,
    /// The endpoint's socket, and whether what leaves it may go in fragments.
    socket: Mutex<Option<(Socket, bool)>>,
    /// How often another socket took the endpoint's place.
    renewals: AtomicU32,
    /// One that asks the system what the way carries: only one that is connected may.
    asks: Mutex<Option<Socket>>,
}

impl Uplink {
    pub(super) fn new(to: SocketAddr, interface: Option<Interface>) -> Self {
        Self {
            to,
            interface,
            endpoint: Mutex::new(None),
            socket: Mutex::new(None),
            renewals: AtomicU32::new(0),
            asks: Mutex::new(None),
        }
    }

    /// The interface, if one was given.
    pub(super) fn name(&self) -> Option<String> {
        self.interface.as_ref().map(ToString::to_string)
    }

    /// Whether a socket can be had.
    ///
    /// # Errors
    /// None can.
    pub(super) fn check(&self) -> Result<(), SendError> {
        client_socket(self.to, self.interface.as_ref()).map(drop).map_err(failure)
    }

    /// For a new connection: with a new socket, unless others have theirs on it.
    ///
    /// # Errors
    /// There is no socket, as when the interface is not there.
    pub(super) fn endpoint(&self) -> Result<Endpoint, SendError> {
        match self.current() {
            Some(endpoint) if endpoint.open_connections() > 0 => Ok(endpoint),
            Some(endpoint) => self.renew().map(|()| endpoint),
            None => {
                let failure = |error| failure(SocketError::Socket(error));
                let socket = Arc::new(QuietSocket::new(self.open()?.into()).map_err(failure)?);
                let config = EndpointConfig::default();
                let made = Endpoint::new_with_abstract_socket(config, None, socket.clone(), Arc::new(Quiet));
                let made = made.map_err(failure)?;
                let mut place = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(place.get_or_insert((made, socket)).0.clone())
            }
        }
    }

    /// All connections go on with a new socket (RFC 9000, section 9): the receiver finds the new address by the next
    /// datagram.
    ///
    /// # Errors
    /// There is none; the old one stays.
    pub(super) fn renew(&self) -> Result<(), SendError> {
        let place = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((_, socket)) = place else { return Ok(()) };
        self.renewals.fetch_add(1, Ordering::Relaxed);
        socket.replace(self.open()?.into()).map_err(|error| failure(SocketError::Socket(error)))
    }

    /// How often connections went on with a new socket. A handshake does not survive that (RFC 9000, section 9): the
    /// receiver drops what comes for it from another address.
    pub(super) fn renewals(&self) -> u32 {
        self.renewals.load(Ordering::Relaxed)
    }

    /// A socket for the endpoint.
    fn open(&self) -> Result<Socket, SendError> {
        let socket = client_socket(self.to, self.interface.as_ref()).map_err(failure)?;
        let same = socket.try_clone().map_err(|error| failure(SocketError::Socket(error)))?;
        // An endpoint's datagrams are not fragmented.
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some((same, false));
        Ok(socket)
    }

    /// How long a datagram may be that this way carries in one piece, as far as the system knows.
    pub(super) fn whole(&self) -> Option<usize> {
        let mut place = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        // It is connected anew, as the way may be another one. Where it cannot be, its address may be gone.
        let kept = place.take().filter(|socket| socket.connect(&self.to.into()).is_ok());
        let socket = kept.or_else(|| {
            let socket = client_socket(self.to, self.interface.as_ref()).ok()?;
            socket.connect(&self.to.into()).ok().map(|()| socket)
        })?;
        let socket = place.insert(socket);
        let (packet, headers) = match self.to.is_ipv4() {
            true => (ip_mtu(&*socket).ok()?, IPV4_HEADER + UDP_HEADER),
            false => (ipv6_mtu(&*socket).ok()?, IPV6_HEADER + UDP_HEADER),
        };
        usize::try_from(packet).ok()?.checked_sub(headers)
    }

    /// Whether datagrams that this way does not carry in one piece go in fragments, or not at all.
    pub(super) fn allow_fragments(&self, allowed: bool) {
        let mut place = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((socket, is_allowed)) = place.as_mut().filter(|(_, is_allowed)| *is_allowed != allowed)
        else {
            return;
        };
        let set = match (self.to.is_ipv4(), allowed) {
            (true, true) => set_ip_mtu_discover(&*socket, Ipv4PathMtuDiscovery::WANT),
            (true, false) => set_ip_mtu_discover(&*socket, Ipv4PathMtuDiscovery::PROBE),
            (false, true) => set_ipv6_mtu_discover(&*socket, Ipv6PathMtuDiscovery::WANT),
            (false, false) => set_ipv6_mtu_discover(&*socket, Ipv6PathMtuDiscovery::PROBE),
        };
        match set {
            Ok(()) => *is_allowed = allowed,
            Err(error) => tracing::debug!(%error, "fragments cannot be allowed or forbidden"),
        }
    }

    /// The endpoint, if it was needed.
    pub(super) fn current(&self) -> Option<Endpoint> {
        let place = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().map(|(endpoint, _)| endpoint.clone())
    }
}

fn failure(error: SocketError) -> SendError {
    match error {
        SocketError::Interface(error) => SendError::Interface(error.to_string()),
        SocketError::Socket(error) => SendError::Socket(error.to_string()),
    }
}
